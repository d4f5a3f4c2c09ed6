"""Which model plays which role, and when: routes and their entries."""

from typing import ClassVar, Self

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from tools_admin.language_models import LanguageModel


class RouteQuerySet(models.QuerySet["Route"]):
    def visible_to(self, user: User) -> Self:
        """Routes with a chat model that this person may use now."""
        if not user.is_active:
            return self.none()
        usable = LanguageModel.objects.usable().visible_to(user).filter(kind=LanguageModel.Kind.CHAT)
        granted = Q(groups=None) | Q(groups__in=user.groups.all())
        entries = RouteEntry.objects.filter(granted, model__in=usable.order_by().values("pk"))
        return self.filter(enabled=True, pk__in=entries.values("route"))


class Route(models.Model):
    """A role and the models that may play it, in order: the first that fits answers, the others stand in for it."""

    name = models.CharField(
        max_length=40,
        unique=True,
        validators=[RegexValidator(r"\A[a-z][a-z0-9_-]*\Z", _("Lower-case letters, digits, - and _."))],
        help_text=_("The role, such as general, fast or reasoning."),
    )
    description = models.CharField(_("description"), max_length=200, blank=True, help_text=_("What it is for."))
    enabled = models.BooleanField(
        _("enabled"), default=True, help_text=_("Disabled, its agents take the default model instead.")
    )

    objects: ClassVar[RouteQuerySet] = RouteQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class RouteEntry(models.Model):
    """A model of a route, and when it may be chosen. Empty conditions always hold."""

    class Need(TextChoices):
        ANY = "", _("any")
        WITH = "with", _("only with")
        WITHOUT = "without", _("only without")

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="entries")
    model = models.ForeignKey(
        LanguageModel,
        on_delete=models.CASCADE,
        related_name="entries",
        verbose_name=_("model"),
        help_text=_("Answers when the conditions hold and nothing above it does."),
    )
    position = models.PositiveIntegerField(
        _("position"), default=0, db_index=True, help_text=_("The lowest is asked first.")
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text=_("Only for these people; none means everybody.")
    )
    tools = models.CharField(max_length=7, choices=Need, blank=True, help_text=_("Runs with or without tools."))
    images = models.CharField(max_length=7, choices=Need, blank=True, help_text=_("Runs with or without images."))
    min_tokens = models.PositiveIntegerField(
        _("from tokens"), null=True, blank=True, help_text=_("Conversations of at least this size.")
    )
    max_tokens = models.PositiveIntegerField(
        _("up to tokens"), null=True, blank=True, help_text=_("Conversations of at most this size.")
    )
    min_budget = models.PositiveSmallIntegerField(
        _("budget left"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Per cent that must be left of the person's budget."),
    )
    from_time = models.TimeField(_("from"), null=True, blank=True, help_text=_("Time of day, in the site's time zone."))
    until_time = models.TimeField(_("until"), null=True, blank=True, help_text=_("May lie after midnight."))

    class Meta:
        verbose_name = _("model of the route")
        verbose_name_plural = _("models of the route, in order")
        ordering = ["route", "position", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(from_time=None, until_time=None) | Q(from_time__isnull=False, until_time__isnull=False),
                name="route_times_come_in_pairs",
                violation_error_message=_("Give both times or none."),
            ),
        ]

    def __str__(self) -> str:
        return str(self.model)
