"""What administrators configure: agents; models are in `language_models.py`, tools in `connector_models.py`."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices

from accounts.models import Budget
from tools_admin.connector_models import AuthScheme, Connector, Credential, Document, Tool
from tools_admin.language_models import LanguageModel, Provider, Route, RouteEntry
from tools_admin.validators import validate_examples, validate_texts

__all__ = [
    "Agent",
    "AgentBudget",
    "AuthScheme",
    "Connector",
    "Credential",
    "Document",
    "LanguageModel",
    "Provider",
    "Route",
    "RouteEntry",
    "Tool",
]


class Agent(models.Model):
    """How an agent behaves: instructions, tools, worked examples, limits."""

    class Mode(TextChoices):
        REACT = "react", "ReAct: think, act, look, repeat"

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(max_length=300, blank=True)
    instructions = models.TextField(blank=True)
    mode = models.CharField(max_length=20, choices=Mode, default=Mode.REACT)
    model = models.ForeignKey(LanguageModel, on_delete=models.SET_NULL, null=True, blank=True, related_name="agents")
    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, blank=True, related_name="agents")
    tools = models.ManyToManyField(Tool, blank=True, related_name="agents")
    connectors = models.ManyToManyField(
        Connector, blank=True, related_name="agents", help_text="All tools of these, those added later too."
    )
    examples = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_examples],
        help_text="Worked exchanges shown to small models: a list of lists of {role, content}.",
    )
    starters = models.JSONField(
        default=list, blank=True, validators=[validate_texts], help_text="Questions offered on an empty page."
    )
    max_iterations = models.PositiveSmallIntegerField(
        default=50, validators=[MinValueValidator(1), MaxValueValidator(1_000)]
    )
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField("default", default=False, help_text="The agent of new conversations.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_agent"),
        ]

    def __str__(self) -> str:
        return self.name


class AgentBudget(Budget):
    """What all runs of an agent together may spend in a period."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, related_name="budget")

    class Meta:
        verbose_name = "agent's budget"

    @property
    def owner(self) -> str:
        return str(self.agent)
