"""Which models there are and where they live: providers and models."""

from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agentapp.encryption import EncryptedTextField
from tools_admin.presets import PRESETS
from tools_admin.validators import validate_endpoint, validate_headers, validate_object


class Provider(models.Model):
    """An OpenAI-compatible endpoint and its key."""

    class Source(TextChoices):
        ADMIN = "admin", _("Administrator")
        ENVIRONMENT = "environment", _("Environment (locked)")
        DEMO = "demo", _("Embedded demo model (locked)")

    preset = models.CharField(
        _("kind"),
        max_length=20,
        choices=[(preset.name, preset.label) for preset in PRESETS.values()],
        default="other",
        help_text=_("Whose endpoint it is: decides its peculiarities."),
    )
    name = models.CharField(_("name"), max_length=100, unique=True, help_text=_("As it is listed here."))
    base_url = models.CharField(
        _("base URL"),
        max_length=500,
        validators=[validate_endpoint],
        help_text=_("Such as https://api.example.org/v1."),
    )
    api_key = EncryptedTextField(blank=True)
    source = models.CharField(max_length=12, choices=Source, default=Source.ADMIN, editable=False)
    enabled = models.BooleanField(
        _("enabled"),
        default=True,
        help_text=_("Disabled, none of its models answers; takes effect with the next call."),
    )
    timeout = models.FloatField(
        default=120.0,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("Seconds without a byte until a call is given up."),
    )
    max_concurrent = models.PositiveIntegerField(
        _("calls at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Of all workers together; further calls wait. Empty means no limit."),
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(60_000)],
        help_text=_("Of all workers together; further calls wait. Empty means no limit."),
    )
    extra_headers = models.JSONField(
        default=dict,
        blank=True,
        validators=[validate_headers],
        help_text=_("Sent with each request; {key} stands for the key. Put no secret here: it is shown."),
    )
    extra_body = models.JSONField(
        default=dict, blank=True, validators=[validate_object], help_text=_("Merged into each request's body.")
    )
    last_check = models.JSONField(default=dict, editable=False)  # what the last check found (checking.py)
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
    def usable(self) -> Self:
        """Enabled models of enabled providers, the default one first."""
        return (
            self.filter(enabled=True, provider__enabled=True)
            .select_related("provider")
            .order_by("-is_default", "provider__name", "name")
        )

    def visible_to(self, user: User) -> Self:
        """Models without groups are everybody's, the others those of their groups' members."""
        if not user.is_active:
            return self.none()
        granted = Q(groups=None) | Q(groups__in=user.groups.all())
        return self.filter(pk__in=self.model.objects.filter(granted).values("pk"))


class LanguageModel(models.Model):
    """A model of a provider and what it can do."""

    class Kind(TextChoices):
        CHAT = "chat", _("Chat")
        EMBEDDING = "embedding", _("Embeddings")

    provider = models.ForeignKey(
        Provider,
        on_delete=models.CASCADE,
        related_name="models",
        verbose_name=_("provider"),
        help_text=_("The endpoint that serves it."),
    )
    name = models.CharField(max_length=200, help_text=_("The name that the endpoint knows it by."))
    label = models.CharField(max_length=200, blank=True, help_text=_("The name people see; empty means the same."))
    kind = models.CharField(
        _("use"),
        max_length=10,
        choices=Kind,
        default=Kind.CHAT,
        help_text=_("Whether it answers or turns text into vectors."),
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Takes effect with the next call."))
    is_default = models.BooleanField(
        _("default"), default=False, help_text=_("Answers when neither an agent nor a route names a model.")
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text=_("Who may use it; none means everybody.")
    )
    tool_call = models.BooleanField(
        _("native tool calls"), default=True, help_text=_("The endpoint takes tools and answers with calls.")
    )
    parallel_calls = models.BooleanField(
        _("several calls at once"), default=False, help_text=_("One answer may call more than one tool.")
    )
    json_mode = models.BooleanField(
        _("JSON mode"), default=True, help_text=_("It can be held to answer with a JSON object.")
    )
    json_schema = models.BooleanField(
        _("JSON Schema output"), default=False, help_text=_("It can be held to a schema.")
    )
    streaming = models.BooleanField(_("streaming"), default=True, help_text=_("Answers arrive word by word."))
    stream_usage = models.BooleanField(
        _("usage in streams"), default=True, help_text=_("Streams end with the tokens that were used.")
    )
    vision = models.BooleanField(_("vision"), default=False, help_text=_("It understands images."))
    small = models.BooleanField(
        default=False,
        help_text=_("One tool step with schema-constrained output: for models of a few billion parameters."),
    )
    context_size = models.PositiveIntegerField(
        default=128_000, validators=[MinValueValidator(1_000)], help_text=_("Tokens.")
    )
    max_output_tokens = models.PositiveIntegerField(
        default=4_096, validators=[MinValueValidator(16)], help_text=_("Tokens.")
    )
    # Micro-units of the currency for a million tokens.
    input_price = models.PositiveBigIntegerField(
        _("input price"), default=0, help_text=_("Millionths of the currency for a million tokens.")
    )
    cached_price = models.PositiveBigIntegerField(null=True, blank=True, help_text=_("Empty means as input."))
    output_price = models.PositiveBigIntegerField(
        _("output price"), default=0, help_text=_("Millionths of the currency for a million tokens.")
    )
    reasoning_price = models.PositiveBigIntegerField(null=True, blank=True, help_text=_("Empty means as output."))
    extra_body = models.JSONField(
        default=dict, blank=True, validators=[validate_object], help_text=_("Merged into each request's body.")
    )
    quirks = models.JSONField(default=dict, editable=False)  # abilities of the adapter that a check has learnt
    last_check = models.JSONField(default=dict, editable=False)  # what the last check found (checking.py)

    objects: ClassVar[LanguageModelQuerySet] = LanguageModelQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        ordering = ["provider__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="model_name_once_per_provider"),
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_model"),
        ]

    def __str__(self) -> str:
        return self.label or self.name

    ABILITIES = (
        "tool_call",
        "parallel_calls",
        "json_mode",
        "json_schema",
        "streaming",
        "stream_usage",
        "vision",
        "small",
    )

    @classmethod
    def ability_label(cls, name: str) -> str:
        field: Any = cls._meta.get_field(name)
        return str(field.verbose_name)

    @property
    def prices(self) -> tuple[int, int, int, int]:
        """Input, cached, output, reasoning: micro-units for a million tokens."""
        cached = self.input_price if self.cached_price is None else self.cached_price
        reasoning = self.output_price if self.reasoning_price is None else self.reasoning_price
        return self.input_price, cached, self.output_price, reasoning

    @property
    def abilities(self) -> dict[str, bool]:
        """What the engine may use of this model (`ChatModel.abilities`), and how its endpoint wants it."""
        return {**PRESETS[self.provider.preset].quirks, **self.quirks, **{n: getattr(self, n) for n in self.ABILITIES}}
