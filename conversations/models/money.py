"""What a run has drawn from the budgets of those who pay for it."""

from django.db import models

from accounts.models import Budget
from conversations.models.record import Run


class Allotment(models.Model):
    """A run's share of a budget in one of its periods. It stays when it is returned: it says which budgets paid."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="allotments")
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="allotments")
    amount = models.BigIntegerField(help_text="Drawn and not returned: micro-units or tokens.")
    period_start = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "budget"], name="one_allotment_per_budget")]

    def __str__(self) -> str:
        return f"{self.amount} of {self.budget_id}"
