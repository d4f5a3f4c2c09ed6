"""What administrators configure: agents, models, connectors and their tools, each in a module of its own."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Budget
from tools_admin.agents import Agent, Workflow
from tools_admin.connector_models import Connector, Document, Tool
from tools_admin.credential_models import AuthScheme, Credential
from tools_admin.knowledge_models import EmbeddingUse, KnowledgeDocument, Passage
from tools_admin.language_models import LanguageModel, Provider
from tools_admin.route_models import Route, RouteEntry
from tools_admin.version_models import AgentVersion

__all__ = [
    "Agent",
    "AgentBudget",
    "AgentVersion",
    "AuthScheme",
    "Connector",
    "Credential",
    "Document",
    "EmbeddingUse",
    "KnowledgeDocument",
    "LanguageModel",
    "Passage",
    "Provider",
    "Route",
    "RouteEntry",
    "Tool",
    "Workflow",
]


class AgentBudget(Budget):
    """What all runs of an agent together may spend in a period."""

    agent = models.OneToOneField(
        Agent, on_delete=models.CASCADE, related_name="budget", help_text=_("All its runs together, whoever asks.")
    )

    class Meta:
        verbose_name = _("agent's budget")

    @property
    def owner(self) -> str:
        return str(self.agent)
