"""What administrators configure: tools and agents; providers, models and routes are in `language_models.py`."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices

from tools_admin.language_models import LanguageModel, Provider, Route, RouteEntry
from tools_admin.validators import validate_examples, validate_texts

__all__ = ["Agent", "LanguageModel", "Provider", "Route", "RouteEntry", "Tool"]


class Tool(models.Model):
    """A tool that agents may call. Builtin ones are put here after each migration (`tools_admin.services`)."""

    class EffectClass(TextChoices):
        PURE = "pure", "Pure: same answer, no trace"
        READ = "read", "Reads"
        IDEMPOTENT = "idempotent", "Writes, may be repeated with its key"
        ONCE = "once", "Writes, never repeated by itself"

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=20, default="builtin", editable=False)
    description = models.TextField()
    parameters = models.JSONField(default=dict, help_text="JSON Schema of the arguments.")
    effect_class = models.CharField(max_length=10, choices=EffectClass, default=EffectClass.ONCE)
    enabled = models.BooleanField(default=True, help_text="Takes effect with the next run.")
    needs_approval = models.BooleanField(default=False, help_text="Each call waits until a person approves it.")
    timeout = models.FloatField(
        default=60.0, validators=[MinValueValidator(0.1), MaxValueValidator(3600)], help_text="Seconds."
    )
    max_result_chars = models.PositiveIntegerField(
        "longest result", default=50_000, validators=[MinValueValidator(100)], help_text="Characters; more is cut."
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


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
