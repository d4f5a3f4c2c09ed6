"""Canaries: a secret that has been entered comes out nowhere: no page, no answer of the API, no mail, no log line."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.apps import apps
from django.conf import settings as site_settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import invitations, services
from accounts.models import ApiKey, SetupLink, User
from agentapp.encryption import EncryptedTextField
from tests.factories import make_conversation, make_message, make_run
from tests.rows import make_row
from tests.test_access import ROUTES, _filled
from tools_admin.models import Provider

OURS = ("accounts", "tools_admin", "conversations")
CANARY = "canary-7f3a"
PASSWORD = f"{CANARY}-password"
TOTP_KEY = "JBSWY3DPEHPK3PXPCANARYJBSWY3DPEH"


@pytest.fixture
def planted(db: None, settings: Any) -> dict[str, str]:
    """Every secret that an installation can hold, in clear and, where that opens something, as it is stored."""
    settings.EMAIL_HOST_PASSWORD = f"{CANARY}-smtp"
    settings.OPENAI_API_KEY = f"{CANARY}-environment"
    settings.DEMO_MODEL_KEY = f"{CANARY}-demo"
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][:] = [
        {"provider_id": "sso", "name": "ID", "client_id": "us", "secret": f"{CANARY}-oidc", "settings": _ISSUER}
    ]
    ada = User.objects.create_superuser("ada", "ada@example.org", PASSWORD)
    key, text = services.create_api_key(ada, "CI")
    invitation, link = invitations.invite(ada)
    setup = SetupLink.objects.create(digest="c0ffee" * 10, created_at=timezone.now())
    TOTP.activate(ada, TOTP_KEY)
    codes = RecoveryCodes.activate(ada)
    fields = list(encrypted_fields())
    for model, name in fields:
        make_row(model, secrets=f"{CANARY}-{model._meta.label}-{name}")
    make_row(Provider, secrets=f"{CANARY}-locked", source="environment")
    return {
        "canary": CANARY,
        "secret key": site_settings.SECRET_KEY,
        "encryption key": site_settings.ENCRYPTION_KEYS[0],
        "database password": site_settings.DATABASES["default"]["PASSWORD"] or "no password",
        "API key": text,
        "fingerprint of the API key": key.digest,
        "invitation": link.split("/")[2],
        "fingerprint of the invitation": invitation.digest,
        "fingerprint of the set-up link": setup.digest,
        "hash of the password": ada.password,
        "key of the authenticator app": TOTP_KEY,
        "recovery code": codes.generate_codes()[0],
    }


_ISSUER = {"server_url": "http://127.0.0.1:1", "scope": ["openid"]}


@pytest.fixture(autouse=True)
def without_sign_in_elsewhere() -> Iterator[None]:
    yield
    site_settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"].clear()


def encrypted_fields() -> Iterator[tuple[Any, str]]:
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            yield from ((model, field.name) for field in model._meta.fields if isinstance(field, EncryptedTextField))


def addresses() -> list[str]:
    """Every address of the site with what there is, and the pages of every row in the admin."""
    ada = User.objects.get(username="ada")
    run = make_run(make_message(make_conversation(ada)), "failed", error="It broke.")
    ids: dict[str, Any] = {"conversation_id": run.conversation_id, "message_id": run.message_id, "run_id": run.id}
    found = [_filled(route, ids) for route in ROUTES if "logout" not in route]
    for model, page in admin.site._registry.items():
        prefix = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        for row in page.model._default_manager.all()[:20]:
            found += [reverse(f"{prefix}_{name}", args=[row.pk]) for name in ("change", "history", "delete")]
            if model is Provider:
                found.append(reverse("admin:tools_admin_provider_check", args=[row.pk]))
            if model is User:
                found.append(f"/admin/accounts/user/{row.pk}/password/")
    return [path for path in found if not path.startswith("/account/second-factor/totp/activate")]


def leaks(planted: dict[str, str], text: str) -> list[str]:
    return [name for name, secret in planted.items() if secret in text]


def body(answer: Any) -> str:
    content = b"".join(answer.streaming_content) if answer.streaming and not answer.is_async else b""
    text = (content or getattr(answer, "content", b"")).decode(errors="replace")
    return text + json.dumps(dict(answer.headers)) if not answer.cookies else text


def test_the_walk_plants_in_every_encrypted_field() -> None:
    assert {model._meta.model_name for model, _name in encrypted_fields()} >= {"provider", "credential"}


@pytest.mark.django_db(transaction=True)  # asynchronous endpoints look at the rows from other threads
@pytest.mark.parametrize("visitor", ["ada", "member", "nobody"])
def test_no_page_answer_mail_or_log_line_holds_a_secret(
    planted: dict[str, str], caplog: pytest.LogCaptureFixture, visitor: str
) -> None:
    caplog.set_level(logging.DEBUG)
    User.objects.create_user("member", "member@example.org", PASSWORD)
    client = Client(raise_request_exception=False)
    if visitor != "nobody":
        client.force_login(
            User.objects.get(username=visitor), backend="allauth.account.auth_backends.AuthenticationBackend"
        )
    answers = {path: client.get(path) for path in addresses()}
    assert [(path, found) for path, answer in answers.items() if (found := leaks(planted, body(answer)))] == []
    if visitor == "ada":
        assert sum(answer.status_code == 200 for answer in answers.values()) > 80, "the walk sees the site"
        key = planted["API key"]
        for route in (route for route in ROUTES if route.startswith("api/")):
            answer = client.get(_filled(route, {}), headers={"Authorization": f"Bearer {key}"})
            assert leaks(planted, body(answer)) == [], route
    assert leaks(planted, caplog.text) == []
    assert leaks(planted, str(list(LogEntry.objects.values()))) == []


@pytest.mark.django_db(transaction=True)
def test_a_form_that_is_wrong_or_breaks_gives_no_secret_back(
    planted: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get(username="ada"), backend="allauth.account.auth_backends.AuthenticationBackend")
    provider = Provider.objects.filter(source="admin").first()
    assert provider is not None
    path = reverse("admin:tools_admin_provider_change", args=[provider.pk])
    forms = [
        (path, {"name": "", "new_api_key": f"{CANARY}-new"}),
        ("/account/login/", {"login": "ada", "password": PASSWORD + "x"}),
        (
            "/account/password/change/",
            {"oldpassword": PASSWORD, "password1": f"{CANARY}-1", "password2": f"{CANARY}-2"},
        ),
        ("/account/reauthenticate/", {"password": PASSWORD + "x"}),
        ("/account/password/reset/", {"email": "ada@example.org"}),
        ("/account/oidc/sso/login/", {}),
        (f"/account/oidc/sso/login/callback/?code={CANARY}&state=x", {}),
    ]
    for address, data in forms:
        assert leaks(planted, body(client.post(address, data))) == [], address

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(Provider, "save", broken)
    monkeypatch.setattr(ApiKey.objects, "create", broken)
    monkeypatch.setattr("accounts.forms.ProfileForm.save", broken)
    edit = {"name": "Acme", "base_url": provider.base_url, "preset": provider.preset, "timeout": "60"}
    breaking: list[tuple[str, dict[str, Any]]] = [
        (path, {**edit, "new_api_key": f"{CANARY}-new", "extra_headers": "{}", "extra_body": "{}"}),
        ("/account/keys/", {"name": "x", "days": "30", "scopes": ["chat"]}),
        ("/account/", {"first_name": "A"}),
    ]
    for address, data in breaking:
        assert client.post(address, data).status_code == 500, address
        assert leaks(planted, body(client.post(address, data))) == [], address
    assert leaks(planted, caplog.text) == []
    assert leaks(planted, "".join(str(message.message()) for message in mail.outbox)) == []


def test_printing_a_row_shows_no_secret(planted: dict[str, str]) -> None:
    for model, name in encrypted_fields():
        row = model._default_manager.first()
        assert getattr(row, name).get_secret_value().startswith(CANARY)
        assert leaks(planted, f"{row!r} {row} {row.__dict__} {list(model._default_manager.values())}") == []


def test_secrets_are_ciphertext_in_the_database(planted: dict[str, str]) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for model, name in [*encrypted_fields(), (apps.get_model("mfa", "Authenticator"), "data")]:
            cursor.execute(f"SELECT string_agg({name}::text, ' ') FROM {model._meta.db_table}")  # noqa: S608
            assert leaks(planted, cursor.fetchone()[0]) == [], model
