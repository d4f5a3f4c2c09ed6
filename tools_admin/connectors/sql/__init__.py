"""SQL databases as tools that can only read: the guard in front, the database's own means behind it."""

from tools_admin.connectors.sql.connector import SqlConnector
from tools_admin.connectors.sql.source import SqlSettings

__all__ = ["SqlConnector", "SqlSettings"]
