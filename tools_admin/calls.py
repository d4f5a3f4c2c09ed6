"""A call of a connector's tool: the row as it is now, the person's credentials, the breaker, no secret in the result.

Import it only where tools are called.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from agentapp.database import in_thread
from agentapp.engine import ToolResult
from tools_admin import breaker, credentials, oauth
from tools_admin.connector_models import Connector, Tool
from tools_admin.connectors.base import (
    Authorization,
    ConnectorError,
    ConnectorUnavailable,
    Setup,
    ToolChanged,
    ToolError,
    ToolSpec,
)
from tools_admin.connectors.base import Connector as ConnectorProtocol
from tools_admin.connectors.kinds import KINDS
from tools_admin.credential_models import AuthScheme

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    """A connector made from its row for one person, and every secret it was handed."""

    row: Connector
    user_id: int | None
    schemes: list[AuthScheme]
    secrets: set[str] = field(default_factory=set)
    sent: list[str] | None = None

    def connector(self) -> ConnectorProtocol:
        """Raises ConnectorError for settings that are not the kind's."""
        setup = Setup(
            settings=self.row.settings,
            allowed_hosts=allowed_hosts(self.row),
            timeout=self.row.timeout,
            authorize=self._authorize,
            id=self.row.pk or 0,
            version=str(self.row.updated_at),
            user_id=self.user_id,
            note=self._note,
            refused=self._refused,
            signs_in=bool(self.schemes),
        )
        return KINDS[self.row.kind].load()(setup)

    async def _authorize(self, url: str, wanted: Sequence[Sequence[str]] | None = None) -> Authorization:
        if not credentials.goes_to(self.row, url):
            return Authorization()
        pairs = credentials.chosen(self.schemes, self.user_id, wanted)
        found = [(scheme, await oauth.fresh(scheme, credential, self.row)) for scheme, credential in pairs]
        made = credentials.authorization(found)
        self.secrets.update(made.secrets)
        return made

    async def _refused(self, signed: Authorization) -> bool:
        """A token may be withdrawn before its time; whether there is a newer one to try."""

        def expire() -> bool:
            again = [oauth.expire(scheme, self.user_id, signed.secrets) for scheme in self.schemes]
            self.schemes = schemes_of(self.row)
            return any(again)

        return await in_thread(expire)

    def _note(self, text: str) -> None:
        if self.sent is not None:
            self.sent.append(self.redacted(text))

    def redacted(self, text: str) -> str:
        return credentials.redact(text, self.secrets)


def allowed_hosts(row: Connector) -> frozenset[str]:
    """Hosts of the inner network that this connector may reach."""
    own = {row.origin.partition("://")[2]} if row.inner and row.origin else set()
    return frozenset(settings.OUTBOUND_ALLOWED_HOSTS | own)


def open_connector(connector_id: int, user_id: int | None) -> Opened:
    """Reads the row and its credentials; raises ToolError while it is switched off or paused."""
    row = Connector.objects.filter(pk=connector_id, enabled=True).first()
    if row is None:
        raise ToolError("This connector is switched off.")
    if row.is_paused:
        raise ToolError(f"{row.name} has failed repeatedly and is left alone for a while. Last error: {row.last_error}")
    return opened(row, user_id)


def opened(row: Connector, user_id: int | None) -> Opened:
    return Opened(row, user_id, schemes_of(row))


def schemes_of(row: Connector) -> list[AuthScheme]:
    schemes = list(row.schemes.prefetch_related("credentials")) if row.pk else []
    for scheme in schemes:
        scheme.connector = row
    return schemes


def leave_alone(connector_id: int, key: str, why: str) -> None:
    """Takes a tool out of use until an administrator has looked at what became of it (`choosing.choose`)."""
    if Tool.objects.filter(connector=connector_id, key=key, changed=False).update(changed=True):
        Connector.objects.filter(pk=connector_id).update(last_error=why[:500])
        log.warning("Connector %d: %s", connector_id, why)


class Calls:
    """Calls of one connector for one person, as `engine_tool` wants them; `sent` collects what is sent."""

    def __init__(self, connector_id: int, user_id: int | None, sent: list[str] | None = None) -> None:
        self._connector_id, self._user_id, self._sent = connector_id, user_id, sent

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        opened = await in_thread(open_connector, self._connector_id, self._user_id)
        opened.sent = self._sent
        try:
            result = await opened.connector().call(spec, arguments)
        except ConnectorUnavailable as error:
            await in_thread(breaker.failed, self._connector_id, opened.redacted(str(error)))
            return ToolResult(opened.redacted(str(error)), is_error=True)
        except ToolChanged as error:
            await in_thread(leave_alone, self._connector_id, spec.key, str(error))
            return ToolResult(opened.redacted(str(error)), is_error=True)
        except (ToolError, ConnectorError) as error:
            return ToolResult(opened.redacted(str(error)), is_error=True)
        except Exception as error:  # noqa: BLE001 (the engine would tell the same, unmasked)
            # Its text may hold anything, so neither the log nor the model gets it unseen.
            log.error("%s of %s: %s", spec.name, opened.row, opened.redacted(repr(error)))
            return ToolResult(opened.redacted(f"{type(error).__name__}: {error}"), is_error=True)
        if opened.row.failures:
            await in_thread(breaker.recovered, self._connector_id)
        return replace(result, content=opened.redacted(result.content))
