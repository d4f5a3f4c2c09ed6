"""What administrators type into structured fields, checked before it reaches a run."""

import json
import re
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

import jsonschema
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic import ValidationError as Invalid

from agentapp.addresses import is_inner, is_public


class ExampleMessage(BaseModel):
    """One message of a worked exchange."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "assistant"]
    content: str


_EXAMPLES = TypeAdapter(list[list[ExampleMessage]])
_TEXTS = TypeAdapter(list[str])
_OBJECT = TypeAdapter(dict[str, Any])
_HEADERS = TypeAdapter(dict[str, str])
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_SECRET_NAME = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)
_OWN_HEADERS = {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"}


def validate_examples(value: Any) -> None:
    """Worked exchanges: each a list of messages that begins with a user's and ends with an assistant's."""
    _check(_EXAMPLES, value, 'a list of exchanges, each a list of {"role": "user" or "assistant", "content": "…"}')
    for number, exchange in enumerate(value, 1):
        roles = [message["role"] for message in exchange]
        if not roles or roles[0] != "user" or roles[-1] != "assistant":
            raise ValidationError(
                _("Exchange %(number)d must begin with a user's message and end with an assistant's.")
                % {"number": number}
            )


def validate_pattern(value: str) -> None:
    """A regular expression that can be compiled."""
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValidationError(_("This is no regular expression: %s") % error) from None


def validate_form(value: Any) -> None:
    """Nothing, or a JSON Schema of an object."""
    _check(_OBJECT, value, "a JSON Schema, which is an object")
    if not value:
        return
    try:
        jsonschema.Draft202012Validator.check_schema(value)
    except jsonschema.SchemaError as error:
        raise ValidationError(_("This is no JSON Schema: %s") % error.message) from None
    if value.get("type") != "object":
        raise ValidationError(_('The form of an answer is an object: begin with {"type": "object", "properties": …}.'))


class Bounds(BaseModel):
    """Of a figure."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    min: float | None = None
    max: float | None = None


class Policy(BaseModel):
    """What may be published."""

    model_config = ConfigDict(extra="forbid")

    limits: dict[str, Bounds] = {}
    allowed: dict[str, list[Any]] = {}


_POLICY = TypeAdapter(Policy)


def validate_policy(value: Any) -> None:
    """Bounds of figures and values that a field may have."""
    _check(_POLICY, value, '{"limits": {"amount": {"min": 0, "max": 1000}}, "allowed": {"target": ["a", "b"]}}')


def validate_texts(value: Any) -> None:
    _check(_TEXTS, value, 'a list of texts, such as ["What sold best last month?"]')


def validate_object(value: Any) -> None:
    _check(_OBJECT, value, 'an object, such as {"temperature": 0}')


def validate_headers(value: Any) -> None:
    """Headers for every request. A key has its own field, as these are shown."""
    _check(_HEADERS, value, 'an object of texts, such as {"X-Title": "Team chat"}')
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name) or not text.isascii() or not text.isprintable():
            raise ValidationError(_("%s: a header is made of printable ASCII characters.") % name[:40])
        if name.lower() in _OWN_HEADERS:
            raise ValidationError(_("%s: this header is set by the product itself.") % name)
        if _SECRET_NAME.search(name) and "{key}" not in text:
            raise ValidationError(_("%s: enter the secret as the key, and write {key} here in its place.") % name)


def validate_endpoint(value: str) -> None:
    """The address of an endpoint. Names without a dot are fine: services of an inner network have such."""
    try:
        parts = urlsplit(value)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ValidationError(_("This is no address; write it like https://api.example.org/v1.")) from None
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in value):
        raise ValidationError(_("Write the whole address, such as https://api.example.org/v1."))
    with suppress(ValueError):
        address = ip_address(host)
        if not (is_public(address) or is_inner(address)):
            raise ValidationError(_("No endpoint lives at this address: it is reserved for other things."))
    if parts.username is not None or parts.query or parts.fragment:
        raise ValidationError(_("The address must hold no password, query or fragment; the key has its own field."))


def _check(adapter: TypeAdapter[Any], value: Any, wanted: str) -> None:
    try:
        # The database stores neither NaN nor NUL characters nor halves of surrogate pairs.
        if b"\\u0000" in json.dumps(value, allow_nan=False, ensure_ascii=False).encode().replace(b"\\\\", b""):
            raise ValidationError(_("A text in it holds a NUL character."))
    except ValueError:
        raise ValidationError(_("It holds a number or a character that cannot be stored.")) from None
    try:
        adapter.validate_python(value)
    except Invalid as error:
        first = error.errors()[0]
        place = " → ".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"]) or "the value"
        raise ValidationError(f"This must be {wanted}. At {place}: {first['msg']}.") from None


def validate_schema(value: Any) -> None:
    """The JSON Schema of a tool's arguments."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    validate_object(value)
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError as error:
        raise ValidationError(_("This is no JSON Schema: %s") % error.message) from None
    if value and value.get("type") != "object":
        raise ValidationError(_('A tool takes an object: write {"type": "object", "properties": {…}}.'))
