"""Looks at runs of other people, each on record."""

from collections.abc import Iterable

from accounts.models import User
from conversations.models import Inspection, Run


def record_inspection(run: Run, user: User) -> None:
    """A look at somebody else's run is on record."""
    record_inspections([run], user)


def record_inspections(runs: Iterable[Run], user: User) -> None:
    """The same for a list of them, in one query."""
    others = {run.pk: run for run in runs if run.user_id != user.pk}
    if others:
        Inspection.objects.bulk_create(Inspection(run=run, user=user) for run in others.values())
