"""The admin's page on the installation itself: every part it needs, and in words what is wrong and what to do."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.roles import CONFIGURE
from agentapp.valkey import sync_client
from conversations.live import WORKERS_KEY
from conversations.models import Run
from tools_admin.endpoints import reach_all
from tools_admin.health import present_health
from tools_admin.models import LanguageModel, Provider

OLD_QUEUE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """`state` is ok, warn or bad; `text` says how it stands and, unless it is ok, what to do."""

    part: str
    state: str
    text: str


@never_cache
@require_safe
def health_page(request: HttpRequest) -> HttpResponse:
    """Below the admin's own guard. The page itself looks whether WebSockets reach the site from here."""
    if not request.user.has_perm(CONFIGURE):
        raise PermissionDenied
    findings = [finding for look in _LOOKS for finding in look(request)]
    context = {**admin.site.each_context(request), "title": _("Health"), "findings": findings}
    return TemplateResponse(request, "admin/health.html", context)


def _database(_request: HttpRequest) -> Iterator[Finding]:
    begun = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version')")
            version = cursor.fetchone()[0]
        milliseconds = (time.monotonic() - begun) * 1_000
        yield Finding(_("Database"), "ok", f"PostgreSQL {version.split()[0]} · {milliseconds:.0f} ms")
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        yield Finding(_("Database"), "bad", _("It does not answer. Look at DATABASE_URL and at the server's log."))
        return
    if pending:
        yield Finding(_("Migrations"), "bad", _("Some have not been applied. Run `manage.py migrate`."))
    else:
        yield Finding(_("Migrations"), "ok", _("All applied."))


def _valkey(_request: HttpRequest) -> Iterator[Finding]:
    begun = time.monotonic()
    try:
        about: Any = sync_client().info("server")
    except redis.RedisError:
        text = _("It does not answer: nothing runs and nobody can sign in. Look at REDIS_URL and at its log.")
        yield Finding("Valkey", "bad", text)
        return
    name = "Valkey" if "valkey_version" in about else "Redis"
    version = about.get("valkey_version") or about["redis_version"]
    yield Finding("Valkey", "ok", f"{name} {version} · {(time.monotonic() - begun) * 1_000:.0f} ms")


def _workers(_request: HttpRequest) -> Iterator[Finding]:
    since = time.time() - 3 * settings.RUN_HEARTBEAT_SECONDS
    try:
        seen = int(sync_client().zcount(WORKERS_KEY, since, "+inf"))
    except redis.RedisError:
        seen = 0
    if seen:
        text = ngettext("%d worker gives signs of life.", "%d workers give signs of life.", seen) % seen
        yield Finding(_("Workers"), "ok", text)
    else:
        text = _("None has given a sign of life: questions wait in the queue. Start one, or look at the worker's log.")
        yield Finding(_("Workers"), "bad", text)
    oldest = Run.objects.filter(status=Run.Status.QUEUED, retry_at=None).order_by("created_at").first()
    if oldest and oldest.created_at < timezone.now() - OLD_QUEUE:
        minutes = round((timezone.now() - oldest.created_at).total_seconds() / 60)
        text = _("The oldest question has been waiting for %(minutes)d min. More workers would help.")
        yield Finding(_("Queue"), "warn", text % {"minutes": minutes})


def _models(_request: HttpRequest) -> Iterator[Finding]:
    if not LanguageModel.objects.usable().exists():
        yield Finding(_("Model endpoints"), "bad", _("No model is connected: nothing can be answered."))
    for found in async_to_sync(reach_all)(list(Provider.objects.filter(enabled=True))):
        part = _("Model endpoint") + f" {found.provider.name}"
        if found.problem:
            yield Finding(part, "bad", found.problem)
        else:
            yield Finding(part, "ok", _("It answers.") + f" {found.milliseconds} ms")
    paused = {model: state for model, state in present_health().items() if state.is_open}
    for model in LanguageModel.objects.filter(pk__in=paused).select_related("provider"):
        text = _("It failed %(count)d times in a row and is left alone for a while; other models of its route answer.")
        yield Finding(f"{_('Model')} {model}", "warn", text % {"count": paused[model.pk].failures})


def _site(request: HttpRequest) -> Iterator[Finding]:
    here = f"{request.scheme}://{request.get_host()}"
    if settings.PUBLIC_URL and here != settings.PUBLIC_URL:
        text = _(
            "You came by %(here)s, but PUBLIC_URL is %(public)s. Links in mails lead to where the mail was asked for."
        )
        yield Finding(_("Address"), "warn", text % {"here": here, "public": settings.PUBLIC_URL})
    elif not settings.PUBLIC_URL and request.get_host().split(":")[0] not in ("localhost", "127.0.0.1"):
        text = _("PUBLIC_URL is not set. Behind a proxy, sign-in limits count the proxy instead of people.")
        yield Finding(_("Address"), "warn", text)
    else:
        yield Finding(_("Address"), "ok", here)
    if settings.EMAIL_BACKEND.endswith("console.EmailBackend"):
        text = _("Mail is printed to the log of the web process. Set EMAIL_URL to send it.")
        yield Finding(_("Mail"), "warn", text)
    else:
        yield Finding(_("Mail"), "ok", f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}")


_LOOKS: tuple[Callable[[HttpRequest], Iterator[Finding]], ...] = (_database, _valkey, _workers, _models, _site)
