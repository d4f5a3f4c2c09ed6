"""What a program asked for that no page can: its own conversation, tools and options of the model."""

from django.db import models

from conversations.models.record import Run

RELAY = "relay"  # the mode of runs in which a route's model gets exactly what was asked, and nobody else takes part


class Asked(models.Model):
    """Of a run that came by `/v1/chat/completions`. All JSON is in that interface's own form, and checked."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="asked")
    route = models.CharField(max_length=40, blank=True, help_text="Empty: an agent was asked.")
    awaited_until = models.DateTimeField(
        null=True, help_text="Until then its web process was there; null: nobody waits."
    )
    messages = models.JSONField()
    call = models.JSONField(default=dict, help_text="tools, tool_choice, response_format.")
    options = models.JSONField(default=dict, help_text="temperature, stop …: part of each request to the model.")

    def __str__(self) -> str:
        return f"Asked for {self.run_id}"
