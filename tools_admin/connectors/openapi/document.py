"""An OpenAPI document as plain JSON values, whatever was pasted: JSON or YAML, bounded in size, depth and aliases."""

import json
from typing import Any

import yaml

from tools_admin.connectors.base import ConnectorError

MAX_BYTES = 10_000_000
# A few times what a document of that size holds; an alias bomb is beyond it after a few lines.
MAX_NODES = 3_000_000
MAX_DEPTH = 200


class _Loader(yaml.CSafeLoader):
    """Only what JSON has: dates stay text."""

    yaml_implicit_resolvers = {
        letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def read(text: str) -> dict[str, Any]:
    """The document; raises ConnectorError in words for whoever pasted it."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise ConnectorError(f"The document is larger than {MAX_BYTES // 1_000_000} MB.")
    value = _parse(text)
    if not isinstance(value, dict):
        raise ConnectorError("This is no OpenAPI document: it does not begin with names and values.")
    version = str(value.get("openapi") or value.get("swagger") or "")
    if not version.startswith(("2.", "3.0", "3.1")):
        raise ConnectorError(
            f"OpenAPI {version[:20]!r} is not known here; 2.0, 3.0 and 3.1 are."
            if version
            else "This is no OpenAPI document: it has neither “openapi” nor “swagger”."
        )
    return value


def _parse(text: str) -> Any:
    try:
        return _plain(json.loads(text.removeprefix("\ufeff")))
    except RecursionError:
        raise ConnectorError("The document is nested too deeply.") from None
    except ValueError as error:
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            problem = f"{error}"
            try:
                return _parse_yaml(text)  # flow style that is not quite JSON
            except ConnectorError:
                raise ConnectorError(f"The document is no JSON: {problem}") from None
        return _parse_yaml(text)


def _parse_yaml(text: str) -> Any:
    try:
        _check_depth(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise ConnectorError("The document is empty.")
            _count(node, {}, set())
            return _plain(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConnectorError(f"The document is neither JSON nor YAML: {' '.join(str(error).split())[:300]}") from None
    except (RecursionError, ValueError, TypeError, OverflowError):
        raise ConnectorError("The document holds something that cannot be read.") from None


def _check_depth(text: str) -> None:
    """Before anything recurses over it."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConnectorError("The document is nested too deeply.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _count(node: Any, known: dict[int, int], open_nodes: set[int]) -> int:
    """How many nodes there are when each alias is written out; each node is looked at once."""
    if (size := known.get(id(node))) is not None:
        return size
    if id(node) in open_nodes:
        raise ConnectorError("The document contains itself.")
    open_nodes.add(id(node))
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_count(part, known, open_nodes) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_count(part, known, open_nodes) for part in node.value)
    if size > MAX_NODES:
        raise ConnectorError("The document becomes too large when its aliases are written out.")
    open_nodes.discard(id(node))
    known[id(node)] = size
    return size


def _plain(value: Any) -> Any:
    """JSON values that a database can hold: names are texts (`200:` is "200"), what JSON has not becomes text."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_name(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return value if value is None or isinstance(value, int) else _clean(str(value))


def _name(key: Any) -> str:
    return _clean({True: "true", False: "false", None: "null"}.get(key, str(key)) if not isinstance(key, str) else key)


def _clean(text: str) -> str:
    """Without NUL and halves of surrogate pairs."""
    return text if text.isascii() and "\0" not in text else text.replace("\0", "").encode(errors="replace").decode()
