"""Forms of the sign-in pages."""

from django.contrib.auth.forms import BaseUserCreationForm

from accounts.models import User


class SetupForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """Validates the first administrator's name, address and password; the service creates the account."""

    class Meta:
        model = User
        fields = ("username", "email")
