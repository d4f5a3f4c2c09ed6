"""Every address of the site, walked: who gets in, and that a stranger finds nothing."""

import re
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts.models import User
from accounts.services import create_api_key, revoke_api_key
from conversations.files import save_file
from conversations.models import Approval, Artifact, Attachment, Conversation, Delivery, Message, Run, Webhook
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.tools_admin.knowledge.collection import make_collection, stored
from tools_admin.models import KnowledgeDocument

# All that somebody without an account may see.
PUBLIC = {
    "healthz",
    "readyz",
    "jsi18n/",
    "api/v1/openapi.json",
    "api/v1/docs",
    "v1/openapi.json",
    "setup/<str:token>/",
    "invitation/<str:token>/",
    "account/oidc/<str:provider_id>/login/",
    "account/oidc/<str:provider_id>/login/callback/",
    "account/sso/login/cancelled/",
    "account/sso/login/error/",
    "account/login/",
    "account/logout/",
    "account/signup/",
    "account/inactive/",
    "account/password/reset/",
    "account/password/reset/done/",
    "account/password/reset/key/<uidb36>-<key>/",
    "account/password/reset/key/done/",
    "admin/login/",
    "admin/logout/",
}
METHODS = ("get", "head", "post", "put", "patch", "delete")


def _routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for entry in patterns:
        route = prefix + _readable(str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from _routes(entry.url_patterns, route)
        else:
            yield route


def _readable(pattern: str) -> str:
    pattern = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", pattern)
    return pattern.removeprefix("^").removesuffix("$").removesuffix("\\Z").replace("\\", "")


ROUTES = sorted(set(_routes(get_resolver().url_patterns)))


def _filled(route: str, ids: dict[str, UUID | int]) -> str:
    def value(match: re.Match[str]) -> str:
        kind, _, name = match.group(1).rpartition(":")
        return str(ids.get(name, uuid4() if kind.startswith("uuid") else "1"))

    return "/" + re.sub(r"<([^>]+)>", value, route)


@pytest.fixture
def owned(db: None) -> dict[str, UUID | int]:
    """Rows of somebody else."""
    run = make_run(make_message(make_conversation(make_user("owner"))), "completed")
    file = Artifact.objects.create(run=run, key="react/1/tool/0", filename="x.txt", content_type="text/plain", size=1)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_bytes(b"x")
    attached = Attachment(user=run.user, filename="x.txt", content_type="text/plain")
    save_file(attached, b"x")
    ids = {"conversation_id": run.conversation_id, "message_id": run.message_id, "run_id": run.id}
    approval = Approval.objects.create(
        run=run, key="react/1/tool/0", tool_name="send", arguments={}, digest="x", expires_at=timezone.now()
    )
    webhook = Webhook.objects.create(user=run.user, url="https://hooks.example/", events=["run.finished"])
    delivery = Delivery.objects.create(webhook=webhook, event="ping", payload={}, state="delivered")
    hooks = {"webhook_id": webhook.id, "delivery_id": delivery.id}
    document = make_document(User.objects.get(username="owner"))
    numbers = {"collection_id": document.collection_id, "passage_id": document.passages.get().pk}
    ids |= hooks | {"document_id": document.id}
    files = {"artifact_id": file.id, "attachment_id": attached.id}
    return {**ids, **numbers, **files, "approval_id": approval.id}


def make_document(owner: User) -> KnowledgeDocument:
    """In a collection of the owner's group."""
    group = Group.objects.create(name="Readers")
    owner.groups.add(group)
    collection = make_collection()
    collection.tools.get().groups.add(group)
    return stored(collection, "Text.", owner)


def test_the_walk_sees_the_site() -> None:
    assert {
        "",
        "c/<uuid:conversation_id>/",
        "runs/<uuid:run_id>/",
        "api/v1/runs",
        "api/v1/messages/<uuidstr:message_id>",
    } <= set(ROUTES)


@pytest.mark.parametrize("route", [r for r in ROUTES if r not in PUBLIC and not r.startswith("admin/")])
def test_without_sign_in_every_address_is_closed(client: Client, owned: dict[str, UUID | int], route: str) -> None:
    for method in METHODS:
        answer = getattr(client, method)(_filled(route, owned))
        to_sign_in = answer.status_code == 302 and "/account/login/" in answer["Location"]
        assert to_sign_in or answer.status_code in (401, 403, 404, 405), f"{method} {route}: {answer.status_code}"


@pytest.mark.parametrize("route", [r for r in ROUTES if r.startswith("admin/")])
@pytest.mark.parametrize("cast", ["anonymous", "member"])
def test_the_admin_is_for_staff(client: Client, db: None, route: str, cast: str) -> None:
    if cast == "member":
        client.force_login(make_user("member"))
    for method in ("get", "post"):
        answer = getattr(client, method)(_filled(route, {}))
        allowed = {302, 403, 404, 405} | ({200} if route in PUBLIC or route == "admin/jsi18n/" else set())
        assert answer.status_code in allowed, f"{method} {route}: {answer.status_code}"
        if answer.status_code == 302:
            assert "/login/" in answer["Location"] or route in PUBLIC or "account" in answer["Location"]


@pytest.mark.django_db(transaction=True)  # asynchronous endpoints look at the rows from other threads
@pytest.mark.parametrize("route", [r for r in ROUTES if "_id>" in r and not r.startswith("admin/")])
def test_a_stranger_finds_nothing_and_changes_nothing(client: Client, owned: dict[str, UUID | int], route: str) -> None:
    client.force_login(make_user("stranger"))
    before = _state()
    for method in METHODS:
        answer = client.generic(method.upper(), _filled(route, owned), "{}", content_type="application/json")
        assert answer.status_code in (404, 405, 422), f"{method} {route}: {answer.status_code}"
    assert _state() == before


@pytest.mark.parametrize("route", [r for r in ROUTES if r not in PUBLIC and not r.startswith("admin/")])
def test_a_disabled_user_is_out_with_the_next_request(client: Client, owned: dict[str, UUID | int], route: str) -> None:
    owner = User.objects.get(username="owner")
    client.force_login(owner)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    answer = client.get(_filled(route, owned))
    assert answer.status_code in (302, 401, 403, 404, 405), f"{route}: {answer.status_code}"


API_ROUTES = [route for route in ROUTES if route.startswith("api/v1/") and route not in {*PUBLIC, "api/v1/"}]


CASTS = ("anonymous", "stranger", "too small a scope", "expired", "revoked", "elsewhere", "disabled")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cast", CASTS)
def test_no_key_opens_what_is_not_its(owned: dict[str, UUID | int], cast: str) -> None:
    """Each method of each call, with a key of the owner that lacks something, or with somebody else's."""
    key, expected = _key_of(cast, User.objects.get(username="owner"))
    before, client = _state(), Client(headers={"Authorization": f"Bearer {key}"} if key else {})
    for route in API_ROUTES:
        if (cast == "too small a scope" and route in OPEN_TO_ANY_KEY) or (cast == "stranger" and "_id>" not in route):
            continue
        for method in METHODS:
            answer = client.generic(method.upper(), _filled(route, owned), "{}", content_type="application/json")
            if answer.status_code != 405:
                assert answer.status_code in expected, f"{method} {route}: {answer.status_code}"
    assert _state() == before


# What says nothing but who one is and whether the service works.
OPEN_TO_ANY_KEY = {"api/v1/me", "api/v1/status"}


def _key_of(cast: str, owner: User) -> tuple[str, set[int]]:
    """A key, and how every call answers it."""
    if cast == "anonymous":
        return "", {401}
    if cast == "stranger":
        return create_api_key(make_user("stranger"), "x")[1], {404, 422}
    if cast == "too small a scope":
        return create_api_key(owner, "x", scopes=["nothing"])[1], {403}
    if cast == "elsewhere":
        return create_api_key(owner, "x", addresses=["192.0.2.0/24"])[1], {403}
    key, text = create_api_key(owner, "x", timezone.now() - timedelta(seconds=1) if cast == "expired" else None)
    if cast == "revoked":
        revoke_api_key(key)
    if cast == "disabled":
        User.objects.filter(pk=owner.pk).update(is_active=False)
    return text, {401}


def _state() -> tuple[object, ...]:
    tables = (Conversation, Message, Run, Webhook, Delivery, KnowledgeDocument)
    return tuple(list(table.objects.order_by("pk").values()) for table in tables)
