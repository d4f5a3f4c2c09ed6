"""The forms of the kinds sql and mcp: what is entered becomes the settings that their connectors take."""

import pytest

from tools_admin.connectors.mcp.forms import McpForm
from tools_admin.connectors.sql.forms import SqlForm
from tools_admin.connectors.sql.settings import SqlSettings

SQL = {
    "name": "Shop",
    "timeout": "20",
    "enabled": "on",
    "dialect": "postgresql",
    "host": "db.example.org",
    "port": "5433",
    "database": "shop",
    "tls": "require",
    "schemas": "public, sales",
    "tables": "orders\ncustomers",
    "max_rows": "100",
    "max_bytes": "50000",
}


@pytest.mark.django_db
def test_a_database_is_entered():
    form = SqlForm(SQL)
    assert form.is_valid(), form.errors
    settings = SqlSettings.model_validate(form.instance.settings)
    assert (settings.schemas, settings.tables) == (["public", "sales"], ["orders", "customers"])
    assert form.instance.origin == "postgresql://db.example.org:5433"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "changes",
    [{"host": ""}, {"database": ""}, {"dialect": "mysql"}, {"dialect": "sqlite", "database": "../x.db"}, {"port": "0"}],
)
def test_what_is_no_database_is_refused_with_words(changes):
    form = SqlForm({**SQL, **changes})
    assert not form.is_valid()
    assert form.errors


@pytest.mark.django_db
def test_a_server_is_an_address_or_an_allowed_command(settings):
    settings.MCP_COMMANDS = {"time": ["mcp-server-time"]}
    common = {"name": "Time", "timeout": "20", "enabled": "on"}
    assert McpForm({**common, "command": "time"}).is_valid()
    assert McpForm({**common, "base_url": "https://mcp.example.org/mcp"}).is_valid()
    for wrong in ({}, {"command": "bash"}, {"command": "time", "base_url": "https://mcp.example.org/mcp"}):
        assert not McpForm({**common, **wrong}).is_valid()
