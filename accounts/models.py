"""People and their keys."""

import ipaddress
import zoneinfo
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.budgets import Budget as Budget
from accounts.scopes import Scope, covers, every_scope, scope_for
from agentapp.encryption import EncryptedTextField


def validate_time_zone(name: str) -> None:
    if name not in zoneinfo.available_timezones():
        raise ValidationError(_("“%(name)s” is no time zone; write it like Europe/Berlin."), params={"name": name})


def validate_network(text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValidationError(
            _("“%(text)s” is no address; write it like 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32."),
            params={"text": text},
        ) from None


class User(AbstractUser):
    """A person. Budgets and preferences hang on this row."""

    # The API key by which they came in just now, and what it allows; no columns.
    by_key_id: int | None = None
    key_scopes: frozenset[str] | None = None

    is_service = models.BooleanField(
        _("service account"),
        default=False,
        help_text=_("For programs: it works by API keys and cannot sign in. This cannot be changed later."),
    )

    language = models.CharField(
        _("language"),
        max_length=10,
        blank=True,
        choices=settings.LANGUAGES,
        help_text=_("Of all pages and mails. Empty means: what the browser asks for."),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        validators=[validate_time_zone],
        help_text=_("Such as Europe/Berlin: how times are shown and when days begin. Empty means: the site's."),
    )

    class Meta(AbstractUser.Meta):
        permissions = [
            ("manage_people", "Can manage people"),
            ("configure", "Can configure systems, models, tools and agents"),
            ("approve", "Can decide on calls of other people's runs"),
        ]
        constraints = [
            # One signs in with either, in any case: neither may mean two people.
            models.UniqueConstraint(
                Lower("username"), name="one_user_per_name", violation_error_message=_("This user name is taken.")
            ),
            models.UniqueConstraint(
                Lower("email"),
                condition=~Q(email=""),
                name="one_user_per_email",
                violation_error_message=_("Another account has this e-mail address."),
            ),
        ]

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """A key of too small a scope has less than its user."""
        return covers(self.key_scopes, [scope_for(perm)]) and super().has_perm(perm, obj)

    def may(self, *scopes: str) -> bool:
        """Whether one of the scopes is held: always, unless they came in by a key that has none of them."""
        return covers(self.key_scopes, scopes)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def visible_to(self, user: User) -> "ApiKeyQuerySet":
        return self.filter(user_id=user.pk) if user.is_active else self.none()

    def usable(self) -> "ApiKeyQuerySet":
        """Keys that open the door now: not revoked, not expired, of an active user."""
        return self.filter(revoked_at=None, user__is_active=True).exclude(expires_at__lte=timezone.now())


class ApiKey(models.Model):
    """A bearer key `aa_<secret>`; only its SHA-256 is stored, `prefix` is what people recognise it by."""

    user = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        related_name="api_keys",
        verbose_name=_("user"),
        help_text=_("The key has this person's rights."),
    )
    name = models.CharField(_("name"), max_length=100, help_text=_("What it is for, such as “nightly report”."))
    scopes = ArrayField(
        models.CharField(max_length=20, choices=Scope),
        default=every_scope,
        verbose_name=_("scopes"),
        help_text=_("What a program may do with it, of what the account may do."),
    )
    addresses = ArrayField(
        models.CharField(max_length=43, validators=[validate_network]),
        default=list,
        blank=True,
        size=20,
        verbose_name=_("allowed addresses"),
        help_text=_("From where it may be used, separated by commas: 192.0.2.7, 10.0.0.0/8. Empty means anywhere."),
    )
    prefix = models.CharField(max_length=12, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True, help_text=_("Empty means never."))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)

    objects: ClassVar[ApiKeyQuerySet] = ApiKeyQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def admits(self, address: str) -> bool:
        """Whether it may be used from there. An address that cannot be read is outside all networks."""
        if not self.addresses:
            return True
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        found = getattr(found, "ipv4_mapped", None) or found
        return any(found in ipaddress.ip_network(network, strict=False) for network in self.addresses)


class IdempotentAnswer(models.Model):
    """What a request with an `Idempotency-Key` was answered; without `status` it is being worked on."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64, help_text="SHA-256 of method, address and body.")
    status = models.PositiveSmallIntegerField(null=True)
    answer = EncryptedTextField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_idempotency_key")]

    def __str__(self) -> str:
        return self.key


class SetupLink(models.Model):
    """The one-time link that lets its holder create the first administrator. Only its SHA-256 is stored."""

    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # A new link supersedes the unused one by taking its row.
            models.UniqueConstraint(
                fields=["used_at"], condition=Q(used_at=None), nulls_distinct=False, name="one_unused_setup_link"
            ),
        ]

    def __str__(self) -> str:
        return f"Set-up link of {self.created_at:%Y-%m-%d %H:%M}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    # No `visible_to`: invitations are seen in the admin only, by its own permissions.

    def open(self) -> "InvitationQuerySet":
        """Those that make an account now: not used, not withdrawn, not too old, of an inviter who still may."""
        return self.filter(used_at=None, withdrawn_at=None, expires_at__gt=timezone.now(), invited_by__is_active=True)


class Invitation(models.Model):
    """A link that makes one account, with the groups its sender chose. Only its SHA-256 is stored."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(
        _("e-mail address"),
        blank=True,
        help_text=_(
            "The link is mailed there and the account gets this address. Empty: you hand the link over yourself."
        ),
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="invitations",
        verbose_name=_("groups"),
        help_text=_("The new account is in these from the start."),
    )
    invited_by = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="invitations", editable=False, verbose_name=_("invited by")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    used_at = models.DateTimeField(_("used"), null=True, editable=False)
    used_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, editable=False, related_name="+", verbose_name=_("account")
    )
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True, editable=False)

    objects: ClassVar[InvitationQuerySet] = InvitationQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.email or _("Invitation of %(date)s") % {"date": f"{self.created_at:%Y-%m-%d %H:%M}"}
