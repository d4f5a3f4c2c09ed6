from django.apps import AppConfig


class AgentAppConfig(AppConfig):
    name = "agentapp"
    verbose_name = "Agent chat"
