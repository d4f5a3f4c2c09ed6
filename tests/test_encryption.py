"""Secrets at rest: keys that change, and keys that are lost."""

from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from pydantic import SecretStr

from agentapp.encryption import UndecryptableSecret
from tools_admin.models import Provider

pytestmark = pytest.mark.django_db
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def provider(name: str, key: str) -> Provider:
    return Provider.objects.create(name=name, base_url="https://api.example.org/v1", api_key=SecretStr(key))


def reencrypt() -> str:
    out = StringIO()
    call_command("reencrypt", stdout=out)
    return out.getvalue()


def stored(row: Provider) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key FROM tools_admin_provider WHERE id = %s", [row.pk])
        return str(cursor.fetchone()[0])


def test_after_the_command_the_old_key_is_not_needed_any_more(settings):
    settings.ENCRYPTION_KEYS = [OLD]
    row, without = provider("Acme", "sk-canary"), provider("Local", "")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert Provider.objects.get(pk=row.pk).api_key.get_secret_value() == "sk-canary"
    assert "1 secrets" in reencrypt()
    settings.ENCRYPTION_KEYS = [NEW]
    assert Provider.objects.get(pk=row.pk).api_key.get_secret_value() == "sk-canary"
    assert (stored(without), "sk-canary" in stored(row)) == ("", False)


def test_a_secret_whose_key_is_lost_is_named_and_the_others_are_done(settings):
    settings.ENCRYPTION_KEYS = [OLD]
    lost = provider("Lost", "sk-lost")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    kept = provider("Kept", "sk-kept")
    settings.ENCRYPTION_KEYS = [NEW, *settings.ENCRYPTION_KEYS]
    with pytest.raises(CommandError, match=f"Provider {lost.pk}"):
        reencrypt()
    settings.ENCRYPTION_KEYS = [NEW]
    assert Provider.objects.get(pk=kept.pk).api_key.get_secret_value() == "sk-kept"


def test_a_row_whose_secret_cannot_be_read_can_be_shown_saved_and_given_a_new_one(settings, admin_client):
    settings.ENCRYPTION_KEYS = [OLD]
    row = provider("Acme", "sk-lost")
    settings.ENCRYPTION_KEYS = [NEW]
    found = Provider.objects.get(pk=row.pk)
    with pytest.raises(UndecryptableSecret):
        found.api_key.get_secret_value()
    found.save()
    assert "sk-lost" not in f"{found.api_key} {found.api_key!r}"
    page = admin_client.get("/admin/tools_admin/provider/")
    assert "cannot be read" in page.content.decode()
    form = {"preset": "other", "name": "Acme", "base_url": row.base_url, "timeout": "60", "new_api_key": "sk-new"}
    admin_client.post(f"/admin/tools_admin/provider/{row.pk}/change/", form)
    assert Provider.objects.get(pk=row.pk).api_key.get_secret_value() == "sk-new"
