"""Tools that come with the product and need neither settings nor a network."""

from tools_admin.connectors.builtin.connector import BuiltinConnector, builtin_tools

__all__ = ["BuiltinConnector", "builtin_tools"]
