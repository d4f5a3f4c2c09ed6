"""Connectors: where an agent's tools come from. One folder a kind, all of the same shape."""

from tools_admin.connectors.builtin.connector import BuiltinConnector

KINDS = {"builtin": BuiltinConnector}
