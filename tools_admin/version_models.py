"""Every version of an agent."""

from django.conf import settings
from django.db import models

from tools_admin.agents import Agent

# What a version keeps of an agent. Who may use or edit it, and whether it is on, are no part of it.
VALUES = (
    "name",
    "icon",
    "description",
    "instructions",
    "mode",
    "model_id",
    "route_id",
    "starters",
    "examples",
    "max_iterations",
    "max_model_calls",
    "max_tool_calls",
    "max_tokens",
    "max_cost",
    "max_seconds",
    "evaluates",
    "sign_off",
    "output_schema",
    "publish_policy",
    "publish_tool_id",
)
LISTS = ("tools", "connectors", "delegates")


class AgentVersion(models.Model):
    """An agent as it was: never changed, so that what a run used stays on record."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.JSONField()
    note = models.CharField(max_length=100, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number")]

    def __str__(self) -> str:
        return f"{self.definition['name']} {self.number}"

    def as_agent(self) -> Agent:
        """The agent of that time; not to be saved."""
        agent = Agent(pk=self.agent_id, **{name: self.definition.get(name) for name in VALUES})
        agent.then = self
        return agent
