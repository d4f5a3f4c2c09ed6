from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import jmespath
from pydantic import BaseModel, ConfigDict, ValidationError

from agentapp.engine import ToolResult
from agentapp.outbound import Refused, parse
from tools_admin.connectors.base import ConnectorError, Setup, ToolError, ToolSpec
from tools_admin.connectors.http.template import Missing, fill, fill_path, fill_text
from tools_admin.connectors.request import Request, result_of, send


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    base_url: str
    headers: dict[str, str] = {}


class Action(BaseModel):
    """What a hand-made tool does; `{name}` stands for an argument wherever there is text.

    An entry of `query`, `headers` or `body` whose argument is not given is left out.
    """

    model_config = ConfigDict(extra="forbid")

    method: str
    path: str
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: Any = None
    select: str = ""


class HttpConnector:
    """A web service. Its tools are actions written by an administrator, so there is nothing to discover."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        try:
            self._settings = Settings.model_validate(setup.settings)
            self._base = str(parse(self._settings.base_url)).rstrip("/")
        except (ValidationError, Refused) as error:
            raise ConnectorError(f"The settings are wrong: {error}") from None

    async def check(self) -> str:
        response = await send(self._setup, Request("GET", f"{self._base}/", headers=self._settings.headers))
        return f"The server answers: HTTP {response.status_code} {response.reason_phrase}."

    async def discover(self) -> Sequence[ToolSpec]:
        return []

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            action = Action.model_validate(spec.definition)
            select = jmespath.compile(action.select).search if action.select else None
        except (ValidationError, jmespath.exceptions.JMESPathError):
            raise ToolError(f"The action {spec.name!r} is not written properly; an administrator repairs it.") from None
        try:
            response = await send(self._setup, self._request(action, arguments))
            return result_of(response, select)
        except Refused as error:
            raise ToolError(str(error)) from None
        except Missing as error:
            raise ToolError(f"The argument {error} is needed.") from None
        except jmespath.exceptions.JMESPathError as error:
            raise ToolError(f"The answer could not be reduced to {action.select!r}: {error}") from None

    def _request(self, action: Action, arguments: Mapping[str, Any]) -> Request:
        headers = {**self._settings.headers, **_given(action.headers, arguments)}
        query = "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in _given(action.query, arguments).items()
        )
        content = None
        if action.body is not None:
            content = json.dumps(fill(action.body, arguments), ensure_ascii=False).encode()
            headers = {"Content-Type": "application/json", **headers}
        return Request(action.method, self._base + fill_path(action.path, arguments), query, headers, content)


def _given(templates: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    filled = {}
    for name, template in templates.items():
        try:
            filled[name] = fill_text(template, arguments)
        except Missing:
            continue
    return filled
