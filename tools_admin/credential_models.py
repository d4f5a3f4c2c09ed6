"""How connectors sign in to their systems: ways to do so, and the secrets of people and of all."""

from typing import TYPE_CHECKING, ClassVar

from django.db import models
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agentapp.encryption import EncryptedTextField
from tools_admin.connector_models import Connector, Tool, origin_of
from tools_admin.validators import validate_endpoint

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager


class AuthSchemeQuerySet(models.QuerySet["AuthScheme"]):
    def visible_to(self, user: User) -> "AuthSchemeQuerySet":
        """Those for which this person may connect an account: of connectors that have a tool for them, and all for
        those who set connectors up, as some servers show their tools only to somebody who has signed in."""
        if user.is_active and user.has_perm("tools_admin.change_connector"):
            return self.filter(per_user=True)
        connectors = Tool.objects.visible_to(user).values("connector")
        return self.filter(per_user=True, connector__in=connectors)


class AuthScheme(models.Model):
    """A way to sign in to a connector's system."""

    class Type(TextChoices):
        BEARER = "bearer", _("Bearer token")
        BASIC = "basic", _("User name and password")
        API_KEY = "api_key", _("API key")
        OAUTH_CODE = "oauth_code", _("OAuth 2, each person agrees (authorization code)")
        OAUTH_CLIENT = "oauth_client", _("OAuth 2 of the installation (client credentials)")

    class Place(TextChoices):
        HEADER = "header", _("Header")
        QUERY = "query", _("Query")
        COOKIE = "cookie", _("Cookie")

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="schemes")
    name = models.CharField(_("name"), max_length=100, default="default")
    type = models.CharField(_("type"), max_length=12, choices=Type, default=Type.BEARER)
    place = models.CharField(_("place"), max_length=6, choices=Place, default=Place.HEADER)
    parameter = models.CharField(_("parameter"), max_length=100, blank=True, help_text=_("Such as X-API-Key."))
    authorize_url = models.CharField(_("authorization URL"), max_length=500, blank=True, validators=[validate_endpoint])
    token_url = models.CharField(_("token URL"), max_length=500, blank=True, validators=[validate_endpoint])
    client_id = models.CharField(_("client ID"), max_length=300, blank=True)
    scopes = models.CharField(_("scopes"), max_length=1_000, blank=True, help_text=_("Separated by spaces."))
    found = models.JSONField(
        default=dict,
        editable=False,
        help_text="What the server itself says of its sign-in (`connectors/mcp/sign_in.py`).",
    )
    per_user = models.BooleanField(
        _("each person their own"),
        default=False,
        help_text=_("People connect their own account on the page “My connections”."),
    )
    shared_fallback = models.BooleanField(
        _("shared one for the others"),
        default=False,
        help_text=_("Whoever has not connected an account uses the shared credential."),
    )

    credentials: "RelatedManager[Credential]"

    objects: ClassVar[AuthSchemeQuerySet] = AuthSchemeQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["name"]
        verbose_name = _("sign-in")
        verbose_name_plural = _("sign-ins")
        constraints = [models.UniqueConstraint(fields=["connector", "name"], name="scheme_once_per_connector")]

    def __str__(self) -> str:
        return self.name

    @property
    def binding(self) -> str:
        """All places that see the secret. A credential made for others does not count any more."""
        places = [self.connector.origin, origin_of(self.authorize_url), origin_of(self.token_url)]
        places += [str(self.found.get(name, "")) for name in ("issuer", "resource")]
        return " ".join(place for place in places if place)


class CredentialQuerySet(models.QuerySet["Credential"]):
    def visible_to(self, user: User) -> "CredentialQuerySet":
        """A person's own; shared ones are nobody's to see."""
        return self.filter(user=user)


class Credential(models.Model):
    """A secret for a scheme, of one person or shared by all (no user): JSON, whose keys are the scheme type's."""

    scheme = models.ForeignKey(AuthScheme, on_delete=models.CASCADE, related_name="credentials")
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="connections")
    secret = EncryptedTextField()
    binding = models.CharField(max_length=2_800, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[CredentialQuerySet] = CredentialQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scheme", "user"], nulls_distinct=False, name="credential_once_per_scheme_and_user"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scheme_id}/{self.user_id or 'shared'}"
