from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class AgentAppConfig(AppConfig):
    name = "agentapp"
    verbose_name = "Agent chat"


class AdminConfig(SimpleAdminConfig):
    """Its pages are found when the addresses are loaded, so that workers do without them: 10 MB."""

    default_site = "accounts.admin_site.AdminSite"
