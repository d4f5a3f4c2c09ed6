"""Every address of the site, walked: who gets in, and that a stranger finds nothing."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts.models import User
from accounts.scopes import Scope
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
    "v1/docs",
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
Ids = dict[str, UUID | int]
Answer = tuple[str, Any]
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


def _filled(route: str, ids: Ids) -> str:
    def value(match: re.Match[str]) -> str:
        kind, _, name = match.group(1).rpartition(":")
        return str(ids.get(name, uuid4() if kind.startswith("uuid") else "1"))

    return "/" + re.sub(r"<([^>]+)>", value, route)


@pytest.fixture
def owned(db: None) -> Ids:
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


PAGES_AND_CALLS = [route for route in ROUTES if route not in PUBLIC and not route.startswith("admin/")]
CALLS = [route for route in PAGES_AND_CALLS if route.startswith(("api/v1/", "v1/")) and not route.endswith("v1/")]
OF_A_ROW = [route for route in PAGES_AND_CALLS if "_id>" in route]
# What says nothing but who one is and whether the service works.
OPEN_TO_ANY_KEY = {"api/v1/me", "api/v1/status"}


def _answers(client: Client, routes: Iterable[str], ids: Ids, methods: Iterable[str] = METHODS) -> Iterator[Answer]:
    """How each method of each address is answered, as JSON and as a stream; but not 405."""
    for route in routes:
        for method in methods:
            for accept in ("text/event-stream", "*/*") if route.endswith("/events") else ("*/*",):
                answer = client.generic(
                    method.upper(),
                    _filled(route, ids),
                    "{}",
                    content_type="application/json",
                    headers={"Accept": accept},
                )
                answer.close()
                if answer.status_code != 405:
                    yield f"{method} {route}", answer


def _is_closed(answer: Any) -> bool:
    to_sign_in = answer.status_code == 302 and "/account/login/" in answer["Location"]
    return to_sign_in or answer.status_code in (401, 403, 404)


COOKIES = ("none", "of a disabled person", "of somebody who signed out")


@pytest.mark.django_db(transaction=True)  # asynchronous endpoints look at the rows from other threads
@pytest.mark.parametrize("cookie", COOKIES)
def test_no_cookie_no_page(client: Client, owned: Ids, cookie: str) -> None:
    owner = User.objects.get(username="owner")
    if cookie != "none":
        client.force_login(owner)
    if cookie == "of a disabled person":
        User.objects.filter(pk=owner.pk).update(is_active=False)
    if cookie == "of somebody who signed out":
        Session.objects.all().delete()
    before = _state()
    open_ = [where for where, answer in _answers(client, PAGES_AND_CALLS, owned) if not _is_closed(answer)]
    assert open_ == []
    assert _state() == before


@pytest.mark.django_db(transaction=True)
def test_a_cookie_alone_changes_nothing(owned: Ids) -> None:
    """Another site can make a browser send it, but not the page's token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="owner"))
    before = _state()
    unsafe = _answers(client, PAGES_AND_CALLS, owned, ("post", "put", "patch", "delete"))
    assert [where for where, answer in unsafe if answer.status_code not in (403, 404)] == []
    assert _state() == before


@pytest.mark.django_db(transaction=True)
def test_a_stranger_finds_nothing_and_changes_nothing(client: Client, owned: Ids) -> None:
    client.force_login(make_user("stranger"))
    before = _state()
    found = [where for where, answer in _answers(client, OF_A_ROW, owned) if answer.status_code not in (404, 422)]
    assert found == []
    assert _state() == before


@pytest.mark.django_db(transaction=True)
def test_a_key_opens_calls_and_no_pages(owned: Ids) -> None:
    key = create_api_key(User.objects.get(username="owner"), "x")[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    pages = [route for route in PAGES_AND_CALLS if route not in CALLS]
    assert [where for where, answer in _answers(client, pages, owned) if not _is_closed(answer)] == []


CASTS = ("anonymous", "stranger", "too small a scope", "expired", "revoked", "elsewhere", "disabled")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cast", CASTS)
def test_no_key_opens_what_is_not_its(owned: Ids, cast: str) -> None:
    """Each method of each call, with a key of the owner that lacks something, or with somebody else's."""
    key, expected = _key_of(cast, User.objects.get(username="owner"))
    before, client = _state(), Client(headers={"Authorization": f"Bearer {key}"} if key else {})
    routes = [route for route in CALLS if route in OF_A_ROW] if cast == "stranger" else CALLS
    if cast == "too small a scope":
        routes = [route for route in CALLS if route not in OPEN_TO_ANY_KEY]
    wrong = [
        f"{where}: {answer.status_code}"
        for where, answer in _answers(client, routes, owned)
        if answer.status_code not in expected
    ]
    assert wrong == []
    assert _state() == before


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


APPROVING = {
    "get api/v1/approvals",
    "head api/v1/approvals",
    "post api/v1/approvals/<uuidstr:approval_id>",
    "post api/v1/runs/<uuidstr:run_id>/resolve",
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scope", Scope.values)
def test_a_key_does_what_its_scope_says_and_no_more(owned: Ids, scope: str) -> None:
    key = create_api_key(User.objects.get(username="owner"), "x", scopes=[scope])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    wrong = []
    for where, answer in _answers(client, CALLS, owned):
        method, route = where.split()
        allowed = {
            Scope.CHAT: where not in APPROVING or method in ("get", "head"),
            Scope.RUNS_READ: method in ("get", "head"),
            Scope.APPROVE: where in APPROVING,
            Scope.ADMIN_READ: False,
        }[Scope(scope)]
        if (answer.status_code != 403) != (allowed or route in OPEN_TO_ANY_KEY):
            wrong.append(f"{where}: {answer.status_code}")
    assert wrong == []


@pytest.mark.parametrize("cast", ["anonymous", "member"])
def test_the_admin_is_for_staff(client: Client, db: None, cast: str) -> None:
    if cast == "member":
        client.force_login(make_user("member"))
    wrong = []
    for route in (route for route in ROUTES if route.startswith("admin/")):
        for method in ("get", "post"):
            answer = getattr(client, method)(_filled(route, {}))
            allowed = {302, 403, 404, 405} | ({200} if route in PUBLIC or route == "admin/jsi18n/" else set())
            elsewhere = answer.get("Location", "/login/")
            if answer.status_code not in allowed or not (
                "/login/" in elsewhere or route in PUBLIC or "account" in elsewhere
            ):
                wrong.append(f"{method} {route}: {answer.status_code} {elsewhere}")
    assert wrong == []


def _state() -> tuple[object, ...]:
    tables = (Conversation, Message, Run, Webhook, Delivery, KnowledgeDocument)
    return tuple(list(table.objects.order_by("pk").values()) for table in tables)
