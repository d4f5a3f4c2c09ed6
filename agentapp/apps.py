from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class AgentAppConfig(AppConfig):
    name = "agentapp"
    verbose_name = "Agent chat"


class AdminConfig(DjangoAdminConfig):
    default_site = "accounts.admin_site.AdminSite"
