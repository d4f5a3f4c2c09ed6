"""Canaries: a secret that has been entered appears on no page of the admin."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone
from pydantic import SecretStr

from accounts import services
from accounts.models import ApiKey, SetupLink, User
from tools_admin.models import Agent, LanguageModel, Provider, Tool

CANARY = "sk-canary-7f3a"


@pytest.fixture
def planted(db) -> list[str]:
    """Every secret that the database can hold, in clear and as it is stored."""
    link = SetupLink.objects.create(digest="c0ffee" * 10, created_at=timezone.now())
    grace = User.objects.create_user("grace", password="a password of hers")
    key, text = services.create_api_key(grace, "CI")
    provider = Provider.objects.create(name="Acme", base_url="https://x.example/v1", api_key=SecretStr(CANARY))
    LanguageModel.objects.create(provider=provider, name="gpt")
    locked = Provider.objects.create(
        name="Env", base_url="https://y.example/v1", api_key=SecretStr(f"{CANARY}-env"), source="environment"
    )
    LanguageModel.objects.create(provider=locked, name="gpt")
    return [CANARY, text, key.digest, link.digest, grace.password]


def pages() -> list[str]:
    """Every list, form, history and deletion page of every registered model, with the rows that there are."""
    found = ["/admin/"]
    for model, model_admin in admin.site._registry.items():
        prefix = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"{prefix}_changelist"))
        found.append(reverse(f"{prefix}_add"))
        for row in model_admin.model._default_manager.all():
            found += [reverse(f"{prefix}_{page}", args=[row.pk]) for page in ("change", "history", "delete")]
    found += [reverse("admin:tools_admin_provider_check", args=[row.pk]) for row in Provider.objects.all()]
    return found


def test_no_page_of_the_admin_shows_a_secret(admin_client, planted):
    provider = Provider.objects.get(name="Acme")
    edit = {
        "preset": "other",
        "name": "Acme 2",
        "base_url": provider.base_url,
        "new_api_key": f"{CANARY}-new",
        "timeout": "60",
    }
    admin_client.post(reverse("admin:tools_admin_provider_change", args=[provider.pk]), edit)
    wrong = {**edit, "timeout": "never"}
    answer = admin_client.post(reverse("admin:tools_admin_provider_change", args=[provider.pk]), wrong)
    assert CANARY not in answer.content.decode(), "a form with a mistake does not give the key back either"

    assert {Provider, LanguageModel, Tool, Agent, User, ApiKey} <= set(admin.site._registry)
    for path in pages():
        answer = admin_client.get(path)
        assert answer.status_code in (200, 403), path
        text = answer.content.decode()
        assert [secret for secret in planted if secret in text] == [], path
    assert CANARY not in str(LogEntry.objects.values_list("object_repr", "change_message"))


def test_printing_a_row_shows_no_secret(planted):
    provider = Provider.objects.get(name="Acme")
    assert provider.api_key.get_secret_value() == CANARY
    assert CANARY not in f"{provider!r} {provider} {provider.__dict__} {list(Provider.objects.values())}"
