from django.apps import AppConfig


class ToolsAdminConfig(AppConfig):
    name = "tools_admin"
    verbose_name = "Tools, models and agents"
