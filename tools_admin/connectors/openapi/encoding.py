"""Arguments into a request, in all styles of OpenAPI: path, query, header, cookie, and bodies."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from agentapp.outbound import check_segment
from tools_admin.connectors.base import ToolError

_RESERVED = ":/?#[]@!$&'()*+,;="
_SEPARATORS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}


def path_of(template: str, parameters: list[dict[str, Any]], arguments: Mapping[str, Any]) -> str:
    """The encoded path; each value stays within its place. Raises ToolError and outbound's Refused."""
    placed = {entry["name"]: entry for entry in parameters if entry["in"] == "path"}

    def fill(found: re.Match[str]) -> str:
        entry = placed.get(found.group(1))
        if entry is None or entry["argument"] not in arguments:
            raise ToolError(f"The path needs a value for {found.group(1)!r}.")
        return _path_value(entry, arguments[entry["argument"]])

    pieces = re.split(r"(\{[^{}]+\})", template)
    encoded = [
        re.sub(r"\{([^{}]+)\}", fill, p) if p.startswith("{") else quote(p, safe="/%~!$&'()*+,;=:@") for p in pieces
    ]
    path = "".join(encoded)
    for segment in path.split("/"):
        if segment:
            check_segment(segment)
    return path


def _path_value(entry: dict[str, Any], value: Any) -> str:
    for text in _texts(value):
        check_segment(text)
    name, style, explode = quote(entry["name"], safe=""), entry["style"], entry["explode"]
    if style == "label":
        return "." + _joined(value, "." if explode else ",", explode)
    if style == "matrix":
        if isinstance(value, list) and explode:
            return "".join(f";{name}={_encoded(item)}" for item in value)
        if isinstance(value, dict) and explode:
            return "".join(f";{quote(key, safe='')}={_encoded(item)}" for key, item in value.items())
        return f";{name}={_joined(value, ',', False)}"
    return _joined(value, ",", explode)


def query_of(parameters: list[dict[str, Any]], arguments: Mapping[str, Any]) -> str:
    """The encoded query of the arguments that are given."""
    parts: list[str] = []
    for entry in parameters:
        if entry["in"] == "query" and arguments.get(entry["argument"]) is not None:
            parts += _query_parts(entry, arguments[entry["argument"]])
    return "&".join(parts)


def _query_parts(entry: dict[str, Any], value: Any) -> list[str]:
    name, style = quote(entry["name"], safe="[]"), entry["style"]
    safe = _RESERVED.replace("&", "").replace("#", "").replace("+", "") if entry.get("reserved") else ""
    if entry.get("json"):
        return [f"{name}={quote(_json(value), safe='')}"]
    if isinstance(value, dict):
        if style == "deepObject":
            return [f"{name}[{quote(k, safe='')}]={_encoded(v, safe)}" for k, v in _deep(value)]
        if entry["explode"]:
            return [f"{quote(key, safe='')}={_encoded(item, safe)}" for key, item in value.items()]
    if isinstance(value, list) and (entry["explode"] or style == "deepObject"):
        return [f"{name}={_encoded(item, safe)}" for item in value]
    return [f"{name}={_joined(value, _SEPARATORS.get(style, ','), False, safe)}"]


def _deep(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, item) for key, part in value.items() for item in (part if isinstance(part, list) else [part])]


def headers_of(parameters: list[dict[str, Any]], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Header and cookie parameters that are given."""
    headers, cookies = dict[str, str](), list[str]()
    for entry in parameters:
        value = arguments.get(entry["argument"])
        if value is None:
            continue
        if entry["in"] == "header":
            headers[entry["name"]] = _json(value) if entry.get("json") else _plain_joined(value, entry["explode"])
        elif entry["in"] == "cookie":
            cookies += [part.replace("&", "; ") for part in _query_parts(entry, value)]
    return {**headers, "Cookie": "; ".join(cookies)} if cookies else headers


def body_of(body: dict[str, Any], arguments: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """The body and its content type; None when it is not given."""
    value, kind = arguments.get(body["argument"]), str(body["type"])
    if value is None:
        return None
    if kind == "application/x-www-form-urlencoded":
        entry = {"name": "body", "style": "form", "explode": True}
        pairs = value if isinstance(value, dict) else {"body": value}
        parts = [part for name, item in pairs.items() for part in _form_parts({**entry, "name": str(name)}, item)]
        return "&".join(parts).encode(), kind
    if kind == "multipart/form-data":
        return _multipart(value if isinstance(value, dict) else {"body": value}, set(body.get("files", ())))
    if "json" in kind:
        return _json(value).encode(), kind
    return _bytes(value)[0], kind


def _form_parts(entry: dict[str, Any], value: Any) -> list[str]:
    return _query_parts({**entry, "json": True} if isinstance(value, dict) else entry, value)


def _multipart(fields: dict[str, Any], files: set[str]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
            if name in files:
                content, kind = _bytes(item)
                head += f'; filename="{_quoted(name)}"\r\nContent-Type: {kind}'
            elif isinstance(item, dict | list):
                content, head = _json(item).encode(), f"{head}\r\nContent-Type: application/json"
            else:
                content = _text(item).encode()
            parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _bytes(value: Any) -> tuple[bytes, str]:
    """A file's content and type: the text itself, or what a data: URL holds."""
    text = _text(value)
    found = re.fullmatch(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w=.-]+)*?)(;base64)?,(.*)", text, re.DOTALL)
    if not found:
        return text.encode(), "application/octet-stream" if not isinstance(value, str) else "text/plain"
    kind = found.group(1) or "text/plain"
    try:
        content = unquote_to_bytes(found.group(4))
        return (base64.b64decode(content, validate=True) if found.group(3) else content), kind
    except (binascii.Error, ValueError):
        raise ToolError("The data: URL holds no valid base64.") from None


def _joined(value: Any, separator: str, explode: bool, safe: str = "") -> str:
    if isinstance(value, list):
        return separator.join(_encoded(item, safe) for item in value)
    if isinstance(value, dict):
        between = "=" if explode else separator
        return separator.join(f"{quote(key, safe='')}{between}{_encoded(item, safe)}" for key, item in value.items())
    return _encoded(value, safe)


def _plain_joined(value: Any, explode: bool) -> str:
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{key}{'=' if explode else ','}{_text(item)}" for key, item in value.items())
    return _text(value)


def _encoded(value: Any, safe: str = "") -> str:
    return quote(_text(value).encode(errors="replace"), safe=safe)


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return [_text(item) for pair in value.items() for item in pair] if isinstance(value, dict) else [_text(value)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
