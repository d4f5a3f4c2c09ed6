"""The kind sql on real databases: what it gives, and what they refuse by themselves when the guard is not asked."""

import asyncio
import json
import sqlite3
from typing import Any

import psycopg
import pytest
import sqlalchemy
from pydantic import SecretStr, ValidationError

from tests.product import eventually
from tests.tools_admin.connectors.contract import check_contract
from tests.tools_admin.connectors.sql.databases import (
    PASSWORD,
    READER,
    SHARED,
    TABLES,
    connector_of,
    make_sqlite,
    postgresql,
    statements,
)
from tools_admin.connectors.base import ConnectorError, Setup, ToolError, ToolSpec
from tools_admin.connectors.sql import reading
from tools_admin.connectors.sql.connector import SqlConnector
from tools_admin.connectors.sql.guard import Table, check_query
from tools_admin.connectors.sql.settings import SqlSettings
from tools_admin.connectors.sql.source import Login, Source


def tool(name: str) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object"})


async def ask(connector: SqlConnector, sql: str, **parameters) -> str:
    return (await connector.call(tool("query"), {"sql": sql, "parameters": parameters})).content


async def test_the_contract_of_connectors(shop_connector):
    await check_contract(shop_connector())
    assert await shop_connector().check() == f"Connected; {len(TABLES)} tables can be read."


async def test_tables_can_be_found_out(shop_connector):
    connector = shop_connector()
    listed = (await connector.call(tool("list_tables"), {})).content
    assert "track" in listed
    assert "secret" not in listed
    described = (await connector.call(tool("describe_table"), {"table": "Track"})).content
    assert "track_id: INTEGER, primary key" in described
    assert "album_id: INTEGER, references album.album_id" in described
    assert "name: VARCHAR(200), not null" in described
    with pytest.raises(ToolError, match=r"no table 'secret'. The tables are: .*album"):
        await connector.call(tool("describe_table"), {"table": "secret"})


async def test_rows_come_as_a_table(shop_connector):
    sql = "SELECT name, composer, price FROM track WHERE price >= :least ORDER BY price"
    result = await shop_connector().call(tool("query"), {"sql": sql, "parameters": {"least": 1}})
    assert result.content_type == "text/markdown"
    assert result.content == (
        "| name | composer | price |\n| --- | --- | --- |\n| Long_Night | Bo | 1.29 |\n| Float | NULL | 1.99 |"
    )
    assert await ask(shop_connector(), "SELECT name FROM track WHERE price < 0") == "No rows."


async def test_values_are_never_part_of_the_statement(shop_connector):
    evil = "x' OR 'a' = 'a"
    assert await ask(shop_connector(), "SELECT name FROM track WHERE name = :name", name=evil) == "No rows."
    with pytest.raises(ToolError, match="without a value: name"):
        await ask(shop_connector(), "SELECT name FROM track WHERE name = :name")


async def test_texts_with_signs_of_drivers_arrive_unchanged(shop_connector):
    text = await ask(shop_connector(), "SELECT ':a', '100%', '%s %(x)s', 'a|b', '12:30' WHERE 1 = :one", one=1)
    assert text.splitlines()[2] == "| :a | 100% | %s %(x)s | a\\|b | 12:30 |"


async def test_harmless_statements_give_what_the_database_gives_by_itself_postgresql(postgresql_shop, shop):
    connector = postgresql_shop()
    with psycopg.connect(**shop) as plain:
        for sql in statements("harmless_common") + statements("harmless_postgresql"):
            rows = plain.execute(sql.encode()).fetchall()
            assert _values(await ask(connector, sql)) == _values(reading.as_table(["x"], rows, 999, 99_999)), sql
            plain.rollback()


async def test_harmless_statements_give_what_the_database_gives_by_itself_sqlite(sqlite_shop, files):
    connector = sqlite_shop()
    plain = sqlite3.connect(files / "shop.db")
    for sql in statements("harmless_common") + statements("harmless_sqlite"):
        rows = plain.execute(sql).fetchall()
        assert _values(await ask(connector, sql)) == _values(reading.as_table(["x"], rows, 999, 99_999)), sql
    plain.close()


def _values(table: str) -> list[str]:
    """The lines of rows, sorted: without ORDER BY a database may choose."""
    return sorted(table.splitlines()[2:])


async def test_long_and_wide_results_are_cut_and_say_so(shop_connector):
    text = await ask(shop_connector(max_rows=2), "SELECT name FROM track ORDER BY name")
    assert text.endswith("(cut: only the first 2 rows are shown; ask for less, or for sums)")
    assert len(text.splitlines()) == 6
    text = await ask(shop_connector(max_bytes=1_000), "SELECT a.name, b.name FROM track a, track b, track c, track d")
    assert len(text) < 1_200
    assert "(cut: only the first" in text


WIDE = {
    "postgresql": "SELECT array_to_string(array_agg(g), 'xxxxxxxxxxxxxxxxxxxx') FROM generate_series(1, 200000) g",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"
    " SELECT group_concat(i, 'xxxxxxxxxxxxxxxxxxxx') FROM n",
}


@pytest.mark.parametrize("kind", WIDE)
async def test_one_enormous_value_does_not_reach_the_worker(kind, request):
    with pytest.raises(ToolError, match="A row is larger than 1,000,000 bytes"):
        await ask(request.getfixturevalue(f"{kind}_shop")(), WIDE[kind])


ENDLESS = {
    "postgresql": "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
}


@pytest.mark.parametrize("kind", ENDLESS)
async def test_endless_queries_are_ended(kind, request):
    with pytest.raises(ToolError, match=r"longer than 0.2 s"):
        await ask(request.getfixturevalue(f"{kind}_shop")(seconds=0.2), ENDLESS[kind])


async def test_a_stop_ends_the_statement_in_the_server(postgresql_shop, shop):
    call = asyncio.create_task(ask(postgresql_shop(seconds=300), ENDLESS["postgresql"]))
    with psycopg.connect(**shop, autocommit=True) as admin:
        busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active'"

        def statements_going_on() -> int:
            return admin.execute(busy, [READER]).fetchone()[0]

        await asyncio.to_thread(eventually, lambda: statements_going_on() == 1, "the statement is going on")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(eventually, lambda: statements_going_on() == 0, "the statement has ended")


async def test_mistakes_are_told_in_the_words_of_the_database(shop_connector):
    with pytest.raises(ToolError, match=r"The database says: .*nonsense") as refusal:
        await ask(shop_connector(), "SELECT nonsense FROM track")
    assert "SELECT" not in str(refusal.value)


WRITES = [
    "INSERT INTO genre VALUES (9, 'x')",
    "UPDATE genre SET name = 'x'",
    "DELETE FROM genre",
    "DROP TABLE genre",
    "CREATE TABLE y (z integer)",
]


@pytest.mark.parametrize("sql", [*WRITES, "WITH a AS (DELETE FROM genre RETURNING *) SELECT * FROM a"])
async def test_postgresql_itself_refuses_to_write(postgresql_shop, shop, sql):
    """The guard is not asked, and the role is given all rights: the transaction only reads."""
    sql = sql.replace("genre", "public.genre", 1)
    with psycopg.connect(**shop, autocommit=True) as admin:
        admin.execute("GRANT ALL ON genre TO shop_reader")
    source = Source(postgresql_shop()._config, Login(READER, SecretStr(PASSWORD)), 20)
    with (
        pytest.raises(sqlalchemy.exc.DBAPIError, match=r"read-only transaction|must be owner|permission denied"),
        source.open("127.0.0.1") as connection,
    ):
        connection.execute(sqlalchemy.text(sql))


@pytest.mark.parametrize(
    "sql",
    [
        *WRITES,
        "SELECT * FROM secret",
        "SELECT * FROM sqlite_master",
        "ATTACH ':memory:' AS x",
        "PRAGMA query_only = 0",
        "PRAGMA table_info(track)",
        "SELECT load_extension('x')",
        "SELECT randomblob(10)",
        "VACUUM INTO '/tmp/never'",
        "SELECT * FROM track WHERE name IN secret",
    ],
)
async def test_sqlite_itself_refuses_what_is_not_on_the_list(sqlite_shop, sql):
    source = Source(sqlite_shop()._config, Login(), 20)
    with source.open(None) as connection, pytest.raises(sqlalchemy.exc.DBAPIError):
        source.confine(connection, source.tables(connection), {"secret", "sqlite_master"})
        connection.execute(sqlalchemy.text(sql)).fetchall()


async def test_a_role_that_can_do_more_than_read_is_refused(postgresql_shop, shop):
    with pytest.raises(ConnectorError, match=r"may do more than read tables \(.*superuser\)"):
        await postgresql_shop(user=shop["user"], password=shop.get("password", "")).check()


async def test_a_role_can_be_taken_on(postgresql_shop, shop):
    with psycopg.connect(**shop, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS shop_narrow")
        admin.execute("CREATE ROLE shop_narrow; GRANT shop_narrow TO shop_reader; GRANT SELECT ON genre TO shop_narrow")
    try:
        connector = postgresql_shop(role="shop_narrow")
        assert "Jazz" in await ask(connector, "SELECT name FROM genre")
        with pytest.raises(ToolError, match="permission denied"):
            await ask(connector, "SELECT name FROM track")
    finally:
        with psycopg.connect(**shop, autocommit=True) as admin:
            admin.execute("DROP OWNED BY shop_narrow; DROP ROLE shop_narrow")


async def test_wrong_settings_say_what_is_wrong(postgresql_shop, sqlite_shop, files):
    with pytest.raises(ConnectorError, match=r"cannot be reached: .*password authentication failed") as refusal:
        await postgresql_shop(password="wrong secret").check()
    assert "wrong secret" not in str(refusal.value)
    with pytest.raises(ConnectorError, match='database "nowhere" does not exist'):
        await postgresql_shop(database="nowhere").check()
    with pytest.raises(ConnectorError, match="cannot be reached"):
        await postgresql_shop(port=1).check()
    with pytest.raises(ConnectorError, match="no table that may be read"):
        await postgresql_shop(tables=["nothing"]).check()
    with pytest.raises(ConnectorError, match=r"no file gone.db"):
        await sqlite_shop(database="gone.db").check()
    (files / "broken.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ConnectorError, match="file is not a database"):
        await sqlite_shop(database="broken.db").check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "::1", "10.0.0.1", "/var/run", "[::]"])
async def test_hosts_obey_the_rules_for_what_leaves_the_process(host):
    with pytest.raises(ConnectorError, match=r"not an address of the public internet|There is no host"):
        await SqlConnector(Setup({"host": host, "database": "x"})).check()


@pytest.mark.parametrize("name", ["/etc/passwd", "../shop.db", "../databases2/x.db", ".", "a/../../x", "link.db"])
def test_sqlite_files_are_in_the_operators_folder(files, name):
    (files / "link.db").symlink_to("/etc/passwd")
    (files.parent / "databases2").mkdir()
    with pytest.raises(ValidationError, match="folder for databases"):
        SqlSettings(dialect="sqlite", database=name)


def test_other_dialects_are_for_the_operator_to_allow(settings):
    with pytest.raises(ValidationError, match="SQL_DIALECTS"):
        SqlSettings(dialect="mysql+pymysql", host="db.example.org", database="x")
    settings.SQL_DIALECTS = ["mysql+pymysql"]
    assert SqlSettings(dialect="mysql+pymysql", host="db.example.org", database="x").parsed_as == "mysql"


needs_chinook = pytest.mark.skipif(not SHARED.is_dir(), reason="Chinook is not at hand (../shared/data/sqldata)")


@needs_chinook
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
async def test_chinook_answers_its_reference_questions(kind, request):
    reference = json.loads((SHARED / "chinook_reference.json").read_text())
    if kind == "sqlite":
        files = request.getfixturevalue("files")
        make_sqlite(files / "chinook.db", (SHARED / "chinook_sqlite.sql").read_text(encoding="utf-8-sig"))
        connector = request.getfixturevalue("sqlite_shop")(database="chinook.db", tables=[])
        await _answers(connector, reference, lambda sql: sql)
        return
    door = request.getfixturevalue("door")
    script = (SHARED / "chinook_postgresql.sql").read_text(encoding="utf-8-sig").partition("\\c chinook;")[2]
    with postgresql("chinook_of_tests", script):
        config = {"host": "127.0.0.1", "port": door.port, "database": "chinook_of_tests"}
        connector = connector_of(config, Login(READER, SecretStr(PASSWORD)))
        await _answers(connector, reference, _in_snake_case(reference))


async def _answers(connector: SqlConnector, reference: dict[str, Any], spelled) -> None:
    for table, count in reference["tables"].items():
        assert _values(await ask(connector, spelled("SELECT count(*) FROM " + table))) == [f"| {count} |"]  # noqa: S608
    for question in reference["reference_queries"]:
        rows = (await ask(connector, spelled(question["sql"]))).splitlines()[2:]
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        for row, expected in zip(cells, question["rows"], strict=True):
            for cell, value in zip(row, expected, strict=True):
                assert cell == value if isinstance(value, str) else float(cell) == pytest.approx(value)


def _in_snake_case(reference: dict[str, Any]):
    """Chinook's names for PostgreSQL: InvoiceLine is invoice_line there."""
    names = [*reference["tables"], "TrackId", "GenreId", "UnitPrice", "ReportsTo"]

    def spelled(sql: str) -> str:
        for name in sorted(names, key=len, reverse=True):
            snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")
            sql = sql.replace(name, snake)
        return sql

    return spelled


def test_the_text_that_runs_is_the_text_that_was_checked():
    tables = [Table("public", "track")]
    assert "/*" not in check_query("SELECT /* hint */ name FROM track -- end", "postgres", tables).sql
