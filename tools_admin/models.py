"""What administrators configure: agents; models are in `language_models.py`, tools in `connector_models.py`."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Budget
from tools_admin.connector_models import AuthScheme, Connector, Credential, Document, Tool
from tools_admin.language_models import LanguageModel, Provider, Route, RouteEntry
from tools_admin.modes import Mode
from tools_admin.validators import validate_examples, validate_pattern, validate_texts

__all__ = [
    "Agent",
    "AgentBudget",
    "AuthScheme",
    "Connector",
    "Credential",
    "Document",
    "LanguageModel",
    "Mode",
    "Provider",
    "Route",
    "RouteEntry",
    "Tool",
    "Workflow",
]


class Agent(models.Model):
    """How an agent behaves: instructions, tools, worked examples, limits."""

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(max_length=300, blank=True)
    instructions = models.TextField(blank=True)
    mode = models.CharField(
        max_length=20, choices=Mode, default=Mode.REACT, help_text="How it works where a person chooses nothing else."
    )
    model = models.ForeignKey(LanguageModel, on_delete=models.SET_NULL, null=True, blank=True, related_name="agents")
    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, blank=True, related_name="agents")
    tools = models.ManyToManyField(Tool, blank=True, related_name="agents")
    connectors = models.ManyToManyField(
        Connector, blank=True, related_name="agents", help_text="All tools of these, those added later too."
    )
    delegates = models.ManyToManyField(
        "self",
        symmetrical=False,
        blank=True,
        related_name="+",
        help_text="Agents that it may hand parts of its work to; each is offered to it as a tool.",
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


class Workflow(models.Model):
    """A lookup that needs no plan: code recognises the question, names the call, and words the answer."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="workflows")
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=300, blank=True, help_text="What it answers, for the router.")
    pattern = models.CharField(
        max_length=500,
        blank=True,
        validators=[validate_pattern],
        help_text="A regular expression for questions; its named groups, such as (?P<place>.+), are arguments. "
        "A match costs no model call.",
    )
    examples = models.JSONField(default=list, blank=True, validators=[validate_texts], help_text="Questions.")
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="+")
    template = models.TextField(
        blank=True, help_text="The answer, with {result} and the arguments in braces; empty: the model words it."
    )
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["agent", "name"]
        constraints = [models.UniqueConstraint(fields=["agent", "name"], name="workflow_once_per_agent")]

    def __str__(self) -> str:
        return self.name
