from allauth.socialaccount import apps as social
from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class AgentAppConfig(AppConfig):
    name = "agentapp"
    verbose_name = "Agent chat"


class AdminConfig(SimpleAdminConfig):
    """Its pages are found when the addresses are loaded, so that workers do without them: 10 MB."""

    default_site = "accounts.admin_site.AdminSite"


class SocialAccountConfig(social.SocialAccountConfig):  # type: ignore[misc]
    """Its providers are found when the addresses are loaded, so that workers do without their HTTP client: 5 MB."""

    def ready(self) -> None:
        from allauth.socialaccount import checks  # noqa: F401 - registers them
