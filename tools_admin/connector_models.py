"""Connectors and the tools they offer."""

import hashlib
import json
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q, TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

    from tools_admin.credential_models import AuthScheme


class Connector(models.Model):
    """A system whose operations agents use as tools. What `settings` holds is the kind's (`connectors.KINDS`)."""

    kind = models.CharField(_("kind"), max_length=20, editable=False)
    name = models.CharField(_("name"), max_length=60, unique=True, help_text=_("As it is listed here."))
    prefix = models.CharField(
        _("prefix"),
        max_length=20,
        blank=True,
        validators=[RegexValidator(r"^[a-z][a-z0-9_]*$", _("Lower-case letters, digits and _, a letter first."))],
        help_text=_("Begins the names of its tools, such as shop_ in shop_list_orders. Tools keep the name they have."),
    )
    settings = models.JSONField(default=dict, editable=False)
    inner = models.BooleanField(
        _("in the inner network"),
        default=False,
        help_text=_("Allows this very host although its address is not one of the public internet."),
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Takes effect with the next call."))
    timeout = models.FloatField(
        _("timeout"),
        default=30.0,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("Seconds until a call is given up."),
    )
    # The circuit breaker (`breaker.py`), shared by all workers.
    failures = models.PositiveIntegerField(default=0, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False)
    last_error = models.TextField(blank=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    schemes: "RelatedManager[AuthScheme]"
    tools: "RelatedManager[Tool]"

    class Meta:
        ordering = ["name"]
        verbose_name = _("connector")
        verbose_name_plural = _("connectors")
        constraints = [
            models.UniqueConstraint(fields=["kind"], condition=Q(kind="builtin"), name="one_builtin_connector"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Where its credentials may go: scheme, host and port of its address; empty for kinds without one."""
        return origin_of(str(self.settings.get("base_url", "")))

    @property
    def shown_address(self) -> str:
        """Its origin as people write it."""
        return self.origin.removesuffix(":443" if self.origin.startswith("https") else ":80")

    @property
    def is_paused(self) -> bool:
        return self.paused_until is not None and self.paused_until > timezone.now()


def origin_of(url: str) -> str:
    """`https://host:443` of an address, in one spelling; empty when there is none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}" if parts.hostname and port else ""


class Document(models.Model):
    """The text that a connector's tools were made from, such as an OpenAPI document. Only discovery reads it."""

    connector = models.OneToOneField(Connector, on_delete=models.CASCADE, related_name="document")
    content = models.TextField()
    imported_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.connector_id}"


class ToolQuerySet(models.QuerySet["Tool"]):
    def visible_to(self, user: User) -> "ToolQuerySet":
        """Tools that this person may use now: switched on, with their connector, and granted to a group or to all."""
        if not user.is_active:
            return self.none()
        granted = Q(groups__isnull=True) | Q(groups__in=user.groups.all())
        return self.filter(granted, enabled=True, changed=False, connector__enabled=True).distinct()


class Tool(models.Model):
    """An operation of a connector that agents may call. Builtin ones are put here after each migration."""

    class EffectClass(TextChoices):
        PURE = "pure", _("Pure: same answer, no trace")
        READ = "read", _("Reads")
        IDEMPOTENT = "idempotent", _("Writes, may be repeated with its key")
        ONCE = "once", _("Writes, never repeated by itself")

    class Approval(TextChoices):
        NEVER = "never", _("Never")
        WRITES = "writes", _("When it writes")
        ALWAYS = "always", _("Always")

    WRITING = (EffectClass.IDEMPOTENT, EffectClass.ONCE)

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="tools")
    key = models.CharField(max_length=500, editable=False, help_text="What the connector knows it by.")
    name = models.CharField(_("name"), max_length=64, unique=True)
    description = models.TextField(_("description"))
    parameters = models.JSONField(_("parameters"), default=dict, help_text=_("JSON Schema of the arguments."))
    definition = models.JSONField(default=dict, editable=False, help_text="What the connector needs to call it.")
    effect_class = models.CharField(
        _("effect"),
        max_length=10,
        choices=EffectClass,
        default=EffectClass.ONCE,
        help_text=_("What a call does to the world. What may have been done is never repeated without being asked."),
    )
    approval = models.CharField(
        _("approval"),
        max_length=6,
        choices=Approval,
        default=Approval.WRITES,
        help_text=_("When a call waits until a person approves it."),
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="tools", verbose_name=_("groups"), help_text=_("Empty means everybody.")
    )
    approvers = models.ForeignKey(
        Group,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("approvers"),
        help_text=_(
            "The group whose members decide on calls that need approval, never on their own. "
            "Empty means the person who asked."
        ),
    )
    direct = models.BooleanField(
        _("always offered"),
        default=False,
        help_text=_("Also when its connector has so many tools that agents search among them."),
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Takes effect with the next call."))
    changed = models.BooleanField(
        _("changed at its source"),
        default=False,
        editable=False,
        help_text=_("Its system describes it differently now; it is not used until somebody has looked at that."),
    )
    timeout = models.FloatField(
        _("timeout"),
        default=60.0,
        validators=[MinValueValidator(0.1), MaxValueValidator(3600)],
        help_text=_("Seconds."),
    )
    max_result_chars = models.PositiveIntegerField(
        _("longest result"),
        default=50_000,
        validators=[MinValueValidator(100)],
        help_text=_("Characters; more is cut."),
    )
    price = models.PositiveBigIntegerField(
        _("price of a call"),
        default=0,
        help_text=_("Micro-units of the currency; a refused call costs nothing."),
    )

    objects: ClassVar[ToolQuerySet] = ToolQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["name"]
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        constraints = [models.UniqueConstraint(fields=["connector", "key"], name="tool_once_per_connector")]

    def __str__(self) -> str:
        return self.name

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what a person says yes to: which tool of which system this is, and all it says of itself."""
        connector = self.connector
        whole = [self.pk, connector.pk, connector.kind, connector.settings, self.key, self.definition]
        shown = [self.name, self.description, self.parameters, self.effect_class]
        return hashlib.sha256(json.dumps([whole, shown], sort_keys=True).encode()).hexdigest()

    @property
    def asks_first(self) -> bool:
        """Whether a call waits for a person's word; said in SQL in `conversations/permission.py`, too."""
        if self.approval == self.Approval.WRITES:
            return self.effect_class in self.WRITING
        return self.approval == self.Approval.ALWAYS
