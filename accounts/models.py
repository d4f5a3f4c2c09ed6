"""People and their keys."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone


class User(AbstractUser):
    """A person. Budgets and preferences hang on this row."""

    class Meta(AbstractUser.Meta):
        constraints = [
            # One signs in with either, in any case: neither may mean two people.
            models.UniqueConstraint(
                Lower("username"), name="one_user_per_name", violation_error_message="This user name is taken."
            ),
            models.UniqueConstraint(
                Lower("email"),
                condition=~Q(email=""),
                name="one_user_per_email",
                violation_error_message="Another account has this e-mail address.",
            ),
        ]


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> "ApiKeyQuerySet":
        """Keys that open the door now: not revoked, not expired, of an active user."""
        return self.filter(revoked_at=None, user__is_active=True).exclude(expires_at__lte=timezone.now())


class ApiKey(models.Model):
    """A bearer key `aa_<secret>`; only its SHA-256 is stored, `prefix` is what people recognise it by."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty means never.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects: ClassVar[ApiKeyQuerySet] = ApiKeyQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


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
