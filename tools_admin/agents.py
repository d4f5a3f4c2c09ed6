"""Agents: what one is made of, and whom it serves."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from tools_admin.connector_models import Connector, Tool
from tools_admin.language_models import LanguageModel
from tools_admin.modes import Mode
from tools_admin.route_models import Route
from tools_admin.validators import (
    validate_examples,
    validate_form,
    validate_pattern,
    validate_policy,
    validate_texts,
)

if TYPE_CHECKING:
    from tools_admin.version_models import AgentVersion


class AgentQuerySet(models.QuerySet["Agent"]):
    def visible_to(self, user: User) -> Self:
        """Agents that this person may use now: switched on, and granted to everybody or to one of their groups."""
        if not user.is_active:
            return self.none()
        granted = Q(groups=None) | Q(groups__in=user.groups.all())
        return self.filter(enabled=True, pk__in=self.model.objects.filter(granted).values("pk"))

    def editable_by(self, user: User) -> Self:
        """All with `configure`, else those that name a group of theirs as editors."""
        if user.is_active and user.has_perm("accounts.configure"):
            return self
        return self.filter(pk__in=self.model.objects.filter(editors__in=user.groups.all()).values("pk"))

    def default_first(self) -> Self:
        return self.order_by("-is_default", "name")


def _limit(name: Any, help_text: Any) -> Any:
    return models.PositiveBigIntegerField(
        name, null=True, blank=True, validators=[MinValueValidator(1)], help_text=help_text
    )


class Agent(models.Model):
    """How an agent behaves: instructions, tools, worked examples, limits."""

    class Icon(TextChoices):
        BOT = "bot", _("Robot")
        BOOK = "book-open", _("Book")
        BRIEFCASE = "briefcase", _("Briefcase")
        CHART = "chart-column", _("Chart")
        CODE = "code", _("Code")
        DATABASE = "database", _("Database")
        GLOBE = "globe", _("Globe")
        LIFE_BUOY = "life-buoy", _("Life buoy")
        MAIL = "mail", _("Mail")
        PEN = "pen-line", _("Pen")
        SEARCH = "search", _("Magnifying glass")
        WRENCH = "wrench", _("Wrench")

    name = models.CharField(_("name"), max_length=100, unique=True, help_text=_("As people choose it."))
    icon = models.CharField(_("icon"), max_length=20, choices=Icon, default=Icon.BOT, help_text=_("Beside its name."))
    description = models.CharField(
        _("description"), max_length=300, blank=True, help_text=_("One sentence for those who choose an agent.")
    )
    instructions = models.TextField(
        _("instructions"), blank=True, help_text=_("Who the agent is, what it does, how it answers.")
    )
    mode = models.CharField(
        _("mode"),
        max_length=20,
        choices=Mode,
        default=Mode.REACT,
        help_text=_("How it works where a person chooses nothing else."),
    )
    model = models.ForeignKey(
        LanguageModel,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
        verbose_name=_("model"),
        help_text=_("Always this one. Usually empty: then the route decides."),
    )
    route = models.ForeignKey(
        Route,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
        verbose_name=_("route"),
        help_text=_("Empty means the route “general”."),
    )
    tools = models.ManyToManyField(
        Tool,
        blank=True,
        related_name="agents",
        verbose_name=_("tools"),
        help_text=_("What it may call, for people who may use it themselves."),
    )
    connectors = models.ManyToManyField(
        Connector,
        blank=True,
        related_name="agents",
        verbose_name=_("connectors"),
        help_text=_("All tools of these, those added later too."),
    )
    delegates = models.ManyToManyField(
        "self",
        symmetrical=False,
        blank=True,
        related_name="+",
        verbose_name=_("delegates"),
        help_text=_("Agents that it may hand parts of its work to; each is offered to it as a tool."),
    )
    examples = models.JSONField(
        _("worked examples"),
        default=list,
        blank=True,
        validators=[validate_examples],
        help_text=_("Worked exchanges shown to small models: a list of lists of {role, content}."),
    )
    starters = models.JSONField(
        _("starter questions"),
        default=list,
        blank=True,
        validators=[validate_texts],
        help_text=_("Questions offered on an empty page: a list of texts, of which six are shown."),
    )
    max_iterations = models.PositiveSmallIntegerField(
        _("steps"),
        default=50,
        validators=[MinValueValidator(1), MaxValueValidator(1_000)],
        help_text=_("Of one run; then it answers with what it has."),
    )
    max_model_calls = _limit(_("model calls"), _("Of one run. Empty means no limit, here and below."))
    max_tool_calls = _limit(_("tool calls"), _("Of one run."))
    max_tokens = _limit(_("tokens"), _("Of one run, in and out, of all its model calls."))
    max_cost = _limit(_("cost"), _("Of one run, in millionths of the currency."))
    max_seconds = _limit(_("seconds of work"), _("Of one run; waiting for a person does not count."))
    evaluates = models.BooleanField(
        _("check answers"), default=False, help_text=_("A second look at each answer, by a judge that saw no work.")
    )
    sign_off = models.BooleanField(
        _("needs a signature"), default=False, help_text=_("Each answer waits until a person has signed it.")
    )
    output_schema = models.JSONField(
        _("form of the answer"),
        default=dict,
        blank=True,
        validators=[validate_form],
        help_text=_("A JSON Schema of an object. Empty: the answer is a text."),
    )
    publish_policy = models.JSONField(
        _("bounds of the answer"),
        default=dict,
        blank=True,
        validators=[validate_policy],
        help_text=_(
            "Anything else is never published, whoever signs: "
            '{"limits": {"amount": {"max": 1000}}, "allowed": {"to": ["sales"]}}.'
        ),
    )
    publish_tool = models.ForeignKey(
        Tool,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("goes to"),
        help_text=_("A tool that is called with the signed answer. Empty: it only goes into the conversation."),
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Disabled, nobody can choose it."))
    is_default = models.BooleanField(_("default"), default=False, help_text=_("The agent of new conversations."))
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="agents",
        verbose_name=_("who may use it"),
        help_text=_("Empty means everybody."),
    )
    editors = models.ManyToManyField(
        Group,
        blank=True,
        related_name="edited_agents",
        verbose_name=_("who may edit it"),
        help_text=_("Besides those who may configure everything. Editors do not change who may use or edit it."),
    )
    current = models.ForeignKey(
        "AgentVersion", on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )

    objects: ClassVar[AgentQuerySet] = AgentQuerySet.as_manager()  # type: ignore[assignment]
    then: "AgentVersion | None" = None  # the version that this object was made from, instead of from its row

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ["name"]
        permissions = [("edit_agents", _("Edits the agents whose editors include a group of theirs"))]
        constraints = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_agent"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def given(self) -> Q:
        """Which tools it has, as a condition on tools."""
        if self.then is not None:
            return Q(pk__in=self.then.definition["tools"]) | Q(connector__in=self.then.definition["connectors"])
        return Q(agents=self) | Q(connector__agents=self)

    @property
    def helpers(self) -> AgentQuerySet:
        """The agents that it may hand work to now."""
        named: Any = self.then.definition["delegates"] if self.then is not None else self.delegates.values("pk")
        return Agent.objects.filter(pk__in=named, enabled=True).exclude(pk=self.pk)

    @property
    def lookups(self) -> "list[Workflow]":
        """Its enabled workflows, with their tools."""
        if self.then is None:
            return list(self.workflows.filter(enabled=True).select_related("tool"))
        kept = [values for values in self.then.definition["workflows"] if values["enabled"]]
        tools = Tool.objects.in_bulk([values["tool"] for values in kept]) if kept else {}
        return [
            Workflow(**{**values, "tool": tools[values["tool"]], "agent": self})
            for values in kept
            if values["tool"] in tools
        ]


class Workflow(models.Model):
    """A lookup that needs no plan: code recognises the question, names the call, and words the answer."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="workflows")
    name = models.CharField(_("name"), max_length=60, help_text=_("As it is listed here."))
    description = models.CharField(
        _("description"), max_length=300, blank=True, help_text=_("What it answers, for the router.")
    )
    pattern = models.CharField(
        max_length=500,
        blank=True,
        validators=[validate_pattern],
        help_text="A regular expression for questions; its named groups, such as (?P<place>.+), are arguments. "
        "A match costs no model call.",
    )
    examples = models.JSONField(default=list, blank=True, validators=[validate_texts], help_text="Questions.")
    tool = models.ForeignKey(
        Tool,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("tool"),
        help_text=_("What is called; it must be one of the agent's."),
    )
    template = models.TextField(
        blank=True, help_text="The answer, with {result} and the arguments in braces; empty: the model words it."
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Disabled, the agent works it out itself."))

    class Meta:
        ordering = ["agent", "name"]
        constraints = [models.UniqueConstraint(fields=["agent", "name"], name="workflow_once_per_agent")]

    def __str__(self) -> str:
        return self.name
