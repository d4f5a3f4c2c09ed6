"""One default model, one default agent: making a row the default takes the mark from the one before."""

from django.db import transaction
from django.db.models import Model

from tools_admin.models import Agent, LanguageModel


def save_as_default(row: LanguageModel | Agent) -> None:
    """Saves a row as the default of its table."""
    table: type[Model] = type(row)
    with transaction.atomic():
        table._default_manager.filter(is_default=True).exclude(pk=row.pk).update(is_default=False)
        row.is_default = True
        row.save()
