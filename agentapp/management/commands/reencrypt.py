"""`manage.py reencrypt`: after a new key was put before the others in ENCRYPTION_KEYS.

All secrets are then encrypted with the new key, and the old ones may be removed.
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db.models import F, Model, TextField
from django.db.models.functions import Cast

from agentapp.encryption import EncryptedTextField, StoredSecret, UndecryptableSecret, rotated


class Command(BaseCommand):
    help = "Encrypts all stored secrets anew with the first of ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        changed, unreadable = 0, []
        for table, name in encrypted_fields():
            rows = table._base_manager.annotate(token=Cast(F(name), TextField())).exclude(token="")
            for pk, token in rows.values_list("pk", "token"):
                try:
                    secret = StoredSecret(rotated(token))
                except UndecryptableSecret:
                    unreadable.append(f"{table._meta.label} {pk} ({name})")
                    continue
                # A secret that was entered in this moment is newer than ours.
                changed += rows.filter(pk=pk, token=token).update(**{name: secret})
        self.stdout.write(f"{changed} secrets are encrypted with the newest key.")
        if unreadable:
            raise CommandError(
                "These cannot be read with any of ENCRYPTION_KEYS; enter them anew, or put their key back: "
                + ", ".join(unreadable)
            )


def encrypted_fields() -> Iterator[tuple[type[Model], str]]:
    for table in apps.get_models():
        for field in table._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield table, field.name
