"""The kinds of connectors.

A kind is loaded when one of its connectors is used: web processes do without the libraries of most.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.functional import Promise
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from tools_admin.connectors.base import Connector


@dataclass(frozen=True, slots=True)
class Kind:
    """`connector` and `form` are dotted names; without a form it is not for administrators to add.
    `signs_in`: its credentials are sign-ins (`AuthScheme`)."""

    label: str | Promise
    description: str | Promise
    connector: str
    form: str = ""
    signs_in: bool = True

    def load(self) -> "type[Connector]":
        loaded: type[Connector] = import_string(self.connector)
        return loaded

    def load_form(self) -> Any:
        return import_string(self.form)


KINDS = {
    "builtin": Kind(
        _("Built in"),
        _("Tools that come with the program."),
        "tools_admin.connectors.builtin.connector.BuiltinConnector",
    ),
    "http": Kind(
        _("HTTP"),
        _("Actions of a web service, written by hand."),
        "tools_admin.connectors.http.connector.HttpConnector",
        "tools_admin.connectors.http.forms.HttpForm",
    ),
    "openapi": Kind(
        _("OpenAPI"),
        _("A web service with an OpenAPI (Swagger) document: choose which of its operations agents may use."),
        "tools_admin.connectors.openapi.connector.OpenApiConnector",
        "tools_admin.connectors.openapi.forms.OpenApiForm",
    ),
    "sql": Kind(
        _("SQL database"),
        _("Tables of PostgreSQL or SQLite, to be read only."),
        "tools_admin.connectors.sql.connector.SqlConnector",
        "tools_admin.connectors.sql.forms.SqlForm",
    ),
    "knowledge": Kind(
        _("Documents"),
        _("A collection of documents that agents search and cite: PDF, Word, HTML, Markdown, text, CSV."),
        "tools_admin.connectors.knowledge.connector.KnowledgeConnector",
        "tools_admin.connectors.knowledge.forms.KnowledgeForm",
        signs_in=False,
    ),
    "mcp": Kind(
        _("MCP server"),
        _("Tools that a server offers by the Model Context Protocol."),
        "tools_admin.connectors.mcp.connector.McpConnector",
        "tools_admin.connectors.mcp.forms.McpForm",
    ),
}
