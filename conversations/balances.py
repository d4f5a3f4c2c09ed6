"""Budgets compared with the record: the amounts stand on the calls, so each sum can be made again from them."""

from typing import NamedTuple

from django.db import connection, transaction

from accounts.models import Budget

# Of each budget: what it says is used, and what calls, allotments that are still out, comparisons of routes and
# vectors of texts add up to.
SUMS = """
SELECT budget.id, budget.used,
    coalesce((
        SELECT sum(CASE budget.unit WHEN 'cost' THEN call.cost
            ELSE coalesce((call.usage->>'input_tokens')::bigint, 0)
                + coalesce((call.usage->>'output_tokens')::bigint, 0)
            END)
        FROM conversations_call call JOIN conversations_allotment paid ON paid.run_id = call.run_id
        WHERE paid.budget_id = budget.id AND call.started_at >= budget.period_start
    ), 0)::bigint + coalesce((
        SELECT sum(CASE budget.unit WHEN 'cost' THEN run.allotted_cost - run.cost
                                    ELSE run.allotted_tokens - run.tokens END)
        FROM conversations_run run JOIN conversations_allotment paid ON paid.run_id = run.id
        WHERE paid.budget_id = budget.id AND paid.amount > 0 AND paid.period_start = budget.period_start
    ), 0)::bigint + coalesce((
        SELECT sum(CASE budget.unit WHEN 'cost' THEN attempt.cost + attempt.judge_cost
                                    ELSE attempt.input_tokens + attempt.output_tokens + attempt.judge_tokens END)
        FROM conversations_comparisonattempt attempt JOIN conversations_comparison_payers paid USING (comparison_id)
        WHERE paid.budget_id = budget.id AND attempt.ended_at >= budget.period_start
    ), 0)::bigint + coalesce((
        SELECT sum(CASE budget.unit WHEN 'cost' THEN use.cost ELSE use.tokens END)
        FROM tools_admin_embeddinguse use JOIN tools_admin_embeddinguse_payers paid ON paid.embeddinguse_id = use.id
        WHERE paid.budget_id = budget.id AND use.created_at >= budget.period_start
    ), 0)::bigint
FROM accounts_budget budget ORDER BY budget.id
"""


class Balance(NamedTuple):
    """`used` as the budget has it, `recorded` as the calls have it: less only after a conversation was deleted."""

    budget: int
    used: int
    recorded: int


def balances() -> list[Balance]:
    with connection.cursor() as cursor:
        cursor.execute(SUMS)
        return [Balance(*row) for row in cursor.fetchall()]


@transaction.atomic(durable=True)
def rebuild() -> int:
    """Sets every budget to what is on record; how many were changed. Runs at work are waited for and wait."""
    budgets = {budget.pk: budget for budget in Budget.objects.select_for_update(of=("self",)).order_by("id")}
    wrong = [balance for balance in balances() if balance.used != balance.recorded]
    for balance in wrong:
        budgets[balance.budget].used = max(0, balance.recorded)
        budgets[balance.budget].save(update_fields=["used"])
    return len(wrong)
