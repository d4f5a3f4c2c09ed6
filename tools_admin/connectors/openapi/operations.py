"""The operations of an OpenAPI document (2.0, 3.0, 3.1) as tools."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from agentapp.engine import EffectClass
from tools_admin.connectors.base import ToolSpec
from tools_admin.connectors.openapi.schema import Converter, checked

METHODS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
READING = ("get", "head", "options")
MAX_OPERATIONS = 5_000
MAX_DESCRIPTION = 1_000
_DEFAULT_STYLES = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}
_COLLECTION_STYLES = {"ssv": "spaceDelimited", "pipes": "pipeDelimited", "tsv": "tabDelimited"}
# Header parameters that the document must not name, because others are in charge of them.
_RESERVED_HEADERS = {"accept", "content-type", "authorization", "host", "content-length", "cookie"}
_BODY_TYPES = ("application/json", "multipart/form-data", "application/x-www-form-urlencoded")


class Reader:
    """Follows references within the document. What lies outside of it is not fetched."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.is_2 = "swagger" in document
        resource: Resource[Any] = Resource.opaque(document)
        self._resolver = Registry().with_resource("", resource).resolver()

    def look(self, value: Any) -> Any:
        """The value, or what it refers to, through any number of references; None for what is not there."""
        for _ in range(20):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value
            if not value["$ref"].startswith("#"):
                return None
            try:
                value = self._resolver.lookup(value["$ref"]).contents
            except (Unresolvable, ValueError, TypeError, KeyError, IndexError, AttributeError):
                return None
        return None

    def mapping(self, value: Any) -> dict[str, Any]:
        found = self.look(value)
        return found if isinstance(found, dict) else {}

    def items(self, value: Any) -> list[Any]:
        found = self.look(value)
        return found if isinstance(found, list) else []

    def operations(self) -> Iterator[ToolSpec]:
        """All operations, in the document's order."""
        count = 0
        for path, entry in self.mapping(self.document.get("paths")).items():
            item = self.mapping(entry)
            for method in METHODS:
                if isinstance(item.get(method), dict) and str(path).startswith("/"):
                    yield self._operation(str(path), method, item, item[method])
                    count += 1
                    if count >= MAX_OPERATIONS:
                        return

    def _operation(self, path: str, method: str, item: dict[str, Any], operation: dict[str, Any]) -> ToolSpec:
        converter, properties, required = Converter(self.look), dict[str, Any](), list[str]()
        parameters, body = list[dict[str, Any]](), None
        for parameter in self._parameters(item, operation):
            place, name = parameter.get("in"), parameter.get("name")
            if place == "body" and self.is_2:
                schema, needed = parameter.get("schema"), parameter.get("required")
                body = self._body({"application/json": {"schema": schema}}, needed, converter, properties, required)
            elif place == "formData" and self.is_2:
                continue
            elif place in _DEFAULT_STYLES and isinstance(name, str) and name:
                if place == "header" and name.lower() in _RESERVED_HEADERS:
                    continue
                argument = _argument(name, str(place), properties)
                properties[argument] = self._argument_schema(parameter, converter)
                if parameter.get("required") is True or place == "path":
                    required.append(argument)
                parameters.append(self._placement(parameter, argument))
        if self.is_2:
            body = body or self._form_data(item, operation, converter, properties, required)
        elif request := self.mapping(operation.get("requestBody")):
            body = self._body(
                self.mapping(request.get("content")), request.get("required"), converter, properties, required
            )
        definition: dict[str, Any] = {"method": method.upper(), "path": path, "parameters": parameters}
        definition |= {"body": body} if body else {}
        definition |= {"server": server} if (server := self._own_server(item, operation)) else {}
        security = self._security(operation)
        definition |= {"security": security} if security is not None else {}
        return ToolSpec(
            _name(operation, method, path),
            _description(operation, method, path),
            _object(properties, required, converter.definitions),
            effect_class=EffectClass.READ if method in READING else EffectClass.ONCE,
            key=f"{method.upper()} {path}"[:500],
            definition=definition,
            tags=tuple(tag for tag in self.items(operation.get("tags")) if isinstance(tag, str)),
        )

    # Parameters -------------------------------------------------------------------------------------------------------

    def _parameters(self, item: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
        """Those of the path and of the operation; the operation's win."""
        found = {}
        for entry in [*self.items(item.get("parameters")), *self.items(operation.get("parameters"))]:
            parameter = self.mapping(entry)
            found[str(parameter.get("in")), str(parameter.get("name"))] = parameter
        return list(found.values())

    def _argument_schema(self, parameter: dict[str, Any], converter: Converter) -> dict[str, Any]:
        schema = parameter if self.is_2 else parameter.get("schema")
        if schema is None and (content := self.mapping(parameter.get("content"))):
            schema = self.mapping(next(iter(content.values()))).get("schema")
        if self.is_2:
            schema = {name: value for name, value in parameter.items() if name != "required"}
        made = converter.convert(schema)
        told = parameter.get("description")
        if isinstance(told, str) and told.strip() and "$ref" not in made:
            made["description"] = " ".join(told.split())[:500]
        return made

    def _placement(self, parameter: dict[str, Any], argument: str) -> dict[str, Any]:
        """Where and how the argument goes into the request."""
        place = str(parameter["in"])
        style = parameter.get("style")
        if self.is_2:
            collection = parameter.get("collectionFormat")
            style, explode = _COLLECTION_STYLES.get(str(collection)), collection == "multi"
        else:
            given = parameter.get("explode")
            explode = given if isinstance(given, bool) else (style or _DEFAULT_STYLES[place]) in ("form", "deepObject")
        made = {"name": parameter["name"], "in": place, "argument": argument, "explode": explode}
        made["style"] = style if isinstance(style, str) else _DEFAULT_STYLES[place]
        if parameter.get("allowReserved") is True:
            made["reserved"] = True
        if "schema" not in parameter and self.mapping(parameter.get("content")):
            made["json"] = True
        return made

    # Bodies -----------------------------------------------------------------------------------------------------------

    def _body(
        self,
        content: dict[str, Any],
        needed: Any,
        converter: Converter,
        properties: dict[str, Any],
        required: list[str],
    ) -> dict[str, Any] | None:
        """The request's body as one argument; JSON is preferred, then forms, then what is there."""
        kinds = {str(kind).split(";")[0].strip().lower(): kind for kind in content}
        chosen = next((kind for kind in _BODY_TYPES if kind in kinds), None)
        chosen = chosen or next((kind for kind in kinds if "json" in kind), None) or next(iter(kinds), None)
        if chosen is None:
            return None
        media = self.mapping(content[kinds[chosen]])
        schema = converter.convert(media.get("schema"))
        argument = _argument("body", "request", properties)
        properties[argument] = schema
        if needed is True:
            required.append(argument)
        sent = "application/octet-stream" if chosen == "*/*" else chosen
        return {"argument": argument, "type": sent, **self._files(media.get("schema"))}

    def _files(self, schema: Any) -> dict[str, Any]:
        """Which properties of a multipart body are files."""
        properties = self.mapping(self.mapping(schema).get("properties"))
        files = [str(name) for name, part in properties.items() if _is_file(self.mapping(part), self)]
        return {"files": files} if files else {}

    def _form_data(
        self,
        item: dict[str, Any],
        operation: dict[str, Any],
        converter: Converter,
        properties: dict[str, Any],
        required: list[str],
    ) -> dict[str, Any] | None:
        """Swagger 2.0 names the fields of a form one by one."""
        fields = [parameter for parameter in self._parameters(item, operation) if parameter.get("in") == "formData"]
        if not fields:
            return None
        consumes = [str(kind) for kind in self.items(operation.get("consumes", self.document.get("consumes")))]
        has_file = any(field.get("type") == "file" for field in fields)
        kind = "multipart/form-data" if has_file or "multipart/form-data" in consumes else _BODY_TYPES[2]
        schema = {
            "type": "object",
            "properties": {
                str(field.get("name")): {name: value for name, value in field.items() if name != "required"}
                for field in fields
            },
            "required": [str(field.get("name")) for field in fields if field.get("required") is True],
        }
        return self._body({kind: {"schema": schema}}, bool(schema["required"]), converter, properties, required)

    # Where and as whom ------------------------------------------------------------------------------------------------

    def base_url(self, source: str = "") -> str:
        """The document's first server, relative to where the document came from; empty when it names none."""
        if self.is_2:
            host = self.document.get("host")
            schemes = self.items(self.document.get("schemes")) or ["https"]
            scheme = "https" if "https" in schemes else str(schemes[0])
            path = str(self.document.get("basePath") or "")
            return f"{scheme}://{host}{path}".rstrip("/") if isinstance(host, str) else _joined(source, path)
        servers = self.items(self.document.get("servers"))
        return _joined(source, self._server(servers[0]) if servers else "/")

    def _own_server(self, item: dict[str, Any], operation: dict[str, Any]) -> str:
        servers = self.items(operation.get("servers")) or self.items(item.get("servers"))
        url = self._server(servers[0]) if servers else ""
        return url.rstrip("/") if url.startswith(("http://", "https://")) else ""

    def _server(self, entry: Any) -> str:
        server = self.mapping(entry)
        variables = self.mapping(server.get("variables"))
        fill = re.compile(r"\{([^{}]*)\}")
        url = server.get("url")
        defaults = {name: str(self.mapping(variable).get("default", "")) for name, variable in variables.items()}
        return fill.sub(lambda found: defaults.get(found.group(1), ""), url) if isinstance(url, str) else ""

    def _security(self, operation: dict[str, Any]) -> list[list[str]] | None:
        """Alternatives of scheme names. None when the document knows no schemes: then what is set up is used."""
        wanted = operation.get("security", self.document.get("security"))
        if not self.security_schemes():
            return None
        return [[str(name) for name in need] for need in self.items(wanted) if isinstance(need, dict)]

    def security_schemes(self) -> dict[str, Any]:
        holder = self.document if self.is_2 else self.mapping(self.document.get("components"))
        return self.mapping(holder.get("securityDefinitions" if self.is_2 else "securitySchemes"))


def _is_file(schema: dict[str, Any], reader: Reader) -> bool:
    if schema.get("type") == "array":
        return _is_file(reader.mapping(schema.get("items")), reader)
    binary = schema.get("format") in ("binary", "byte") or "contentMediaType" in schema
    return schema.get("type") == "file" or (schema.get("type") == "string" and binary)


def _joined(source: str, url: str) -> str:
    try:
        return (urljoin(source, url) if source else url if "://" in url else "").rstrip("/")
    except ValueError:
        return ""


def _argument(name: str, place: str, taken: dict[str, Any]) -> str:
    """A name that every provider takes as a property, and that is free."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:60] or place
    if plain in taken:
        plain = f"{plain[:50]}_{place}"
    number, made = 2, plain
    while made in taken:
        made, number = f"{plain[:55]}_{number}", number + 1
    return made


def _name(operation: dict[str, Any], method: str, path: str) -> str:
    given = operation.get("operationId")
    if isinstance(given, str) and re.search(r"[A-Za-z]", given):
        return given[:200]
    return f"{method}_{path.strip('/') or 'root'}"[:200]


def _description(operation: dict[str, Any], method: str, path: str) -> str:
    told = [operation.get("summary"), operation.get("description")]
    texts = list(dict.fromkeys(" ".join(text.split()) for text in told if isinstance(text, str) and text.strip()))
    text = " — ".join(texts) or f"{method.upper()} {path}"
    text = f"(deprecated) {text}" if operation.get("deprecated") is True else text
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"


def _object(properties: dict[str, Any], required: list[str], definitions: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    made |= {"required": required} if required else {}
    made |= {"$defs": definitions} if definitions else {}
    if checked(made):
        return made
    made["properties"] = {name: checked(schema) for name, schema in properties.items()}
    if definitions:
        made["$defs"] = {name: checked(schema) for name, schema in definitions.items()}
    return made
