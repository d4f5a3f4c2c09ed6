"""What administrators configure: providers, models, tools and agents."""

from typing import ClassVar
from urllib.parse import urlsplit

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices

from agentapp.encryption import EncryptedTextField
from tools_admin.validators import validate_endpoint, validate_examples, validate_object, validate_texts


class Provider(models.Model):
    """An OpenAI-compatible endpoint and its key."""

    class Source(TextChoices):
        ADMIN = "admin", "Administrator"
        ENVIRONMENT = "environment", "Environment (locked)"
        DEMO = "demo", "Embedded demo model (locked)"

    name = models.CharField(max_length=100, unique=True)
    base_url = models.CharField(
        "base URL", max_length=500, validators=[validate_endpoint], help_text="Such as https://api.example.org/v1."
    )
    api_key = EncryptedTextField(blank=True)
    source = models.CharField(max_length=12, choices=Source, default=Source.ADMIN, editable=False)
    enabled = models.BooleanField(default=True)
    timeout = models.FloatField(
        default=120.0,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text="Seconds without a byte until a call is given up.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=~Q(source="admin"), name="one_provider_per_locked_source"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_locked(self) -> bool:
        """Set by the environment: the admin shows it and does not change it."""
        return self.source != self.Source.ADMIN

    @property
    def origin(self) -> tuple[str, str | None, int | None]:
        """Where its key may go: scheme, host and port."""
        parts = urlsplit(self.base_url)
        return parts.scheme, parts.hostname, parts.port


class LanguageModelQuerySet(models.QuerySet["LanguageModel"]):
    def usable(self) -> "LanguageModelQuerySet":
        """Enabled models of enabled providers, the default one first."""
        return (
            self.filter(enabled=True, provider__enabled=True)
            .select_related("provider")
            .order_by("-is_default", "provider__name", "name")
        )


class LanguageModel(models.Model):
    """A model of a provider and what it can do."""

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=200, help_text="The name that the endpoint knows it by.")
    label = models.CharField(max_length=200, blank=True, help_text="The name people see; empty means the same.")
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField("default", default=False, help_text="Answers when an agent names no model.")
    tool_call = models.BooleanField("native tool calls", default=True)
    json_mode = models.BooleanField("JSON mode", default=True)
    json_schema = models.BooleanField("JSON Schema output", default=False)
    streaming = models.BooleanField(default=True)
    vision = models.BooleanField(default=False)
    small = models.BooleanField(
        default=False, help_text="One tool step with schema-constrained output: for models of a few billion parameters."
    )
    context_size = models.PositiveIntegerField(
        default=128_000, validators=[MinValueValidator(1_000)], help_text="Tokens."
    )
    max_output_tokens = models.PositiveIntegerField(
        default=4_096, validators=[MinValueValidator(16)], help_text="Tokens."
    )
    extra_body = models.JSONField(
        default=dict, blank=True, validators=[validate_object], help_text="Merged into each request's body."
    )

    objects: ClassVar[LanguageModelQuerySet] = LanguageModelQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = "model"
        ordering = ["provider__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="model_name_once_per_provider"),
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_model"),
        ]

    def __str__(self) -> str:
        return self.label or self.name

    @property
    def abilities(self) -> dict[str, bool]:
        """What the engine may use of this model (`ChatModel.abilities`)."""
        names = ("tool_call", "json_mode", "json_schema", "streaming", "vision", "small")
        return {name: getattr(self, name) for name in names}


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
