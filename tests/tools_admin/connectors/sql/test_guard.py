"""What a query may be. The lists are in tests/data/sql; the databases' own answers to them in test_databases.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools_admin.connectors.sql.databases import TABLES, statements
from tools_admin.connectors.base import ToolError
from tools_admin.connectors.sql.guard import Table, check_query

READABLE = {
    "postgres": [Table("public", name) for name in TABLES],
    "sqlite": [Table(None, name) for name in TABLES],
}
HOSTILE = [("postgres", sql) for sql in statements("hostile_postgresql")] + [
    ("sqlite", sql) for sql in statements("hostile_sqlite")
]
HARMLESS = [
    (dialect, sql)
    for dialect, file in (("postgres", "postgresql"), ("sqlite", "sqlite"))
    for sql in statements("harmless_common") + statements(f"harmless_{file}")
]


def check(sql: str, dialect: str):
    return check_query(sql, dialect, READABLE[dialect])


def test_the_lists_are_long_enough():
    for dialect in READABLE:
        assert len({sql for its, sql in HOSTILE if its == dialect}) >= 150
        assert len({sql for its, sql in HARMLESS if its == dialect}) >= 100


@pytest.mark.parametrize(("dialect", "sql"), HOSTILE)
def test_hostile_statements_are_refused(dialect, sql):
    with pytest.raises(ToolError) as refusal:
        check(sql, dialect)
    assert str(refusal.value).strip()


@pytest.mark.parametrize(("dialect", "sql"), HARMLESS)
def test_harmless_statements_are_allowed_and_stay_so(dialect, sql):
    once = check(sql, dialect).sql.replace(r"\:", ":")
    assert check(once, dialect).sql.replace(r"\:", ":") == once


@pytest.mark.parametrize("dialect", READABLE)
def test_parameters_are_found_and_other_colons_are_none(dialect):
    checked = check("SELECT ':not', name FROM track WHERE price > :least AND name <> :name AND price < :least", dialect)
    assert checked.parameters == ("least", "name")
    assert r"'\:not'" in checked.sql
    assert checked.sql.count(":least") == 2


def test_tables_are_written_with_their_schema_so_that_no_search_path_decides():
    assert check("SELECT name FROM track", "postgres").sql == 'SELECT name FROM "public"."track"'
    inner = check("WITH track AS (SELECT * FROM track) SELECT * FROM track", "postgres").sql
    assert inner == 'WITH track AS (SELECT * FROM "public"."track") SELECT * FROM track'


def test_a_name_is_a_named_query_only_where_the_database_sees_it_as_one():
    visible = [
        "WITH secret AS (SELECT 1) SELECT * FROM secret",
        "WITH secret AS (SELECT 1), b AS (SELECT * FROM secret) SELECT * FROM b",
        "WITH secret AS (SELECT 1) SELECT * FROM (SELECT * FROM secret) q",
        "WITH RECURSIVE b AS (SELECT * FROM secret), secret AS (SELECT 1) SELECT * FROM b",
    ]
    for sql in visible:
        check(sql, "postgres")
        check(sql, "sqlite")


def test_refusals_name_what_there_is():
    with pytest.raises(ToolError, match=r"no table cities here. The tables are: .*public.track"):
        check("SELECT * FROM cities", "postgres")
    with pytest.raises(ToolError, match="Only SELECT is allowed, not EXPLAIN"):
        check("EXPLAIN SELECT 1", "postgres")
    with pytest.raises(ToolError, match="exactly one SELECT statement; there are 2"):
        check("SELECT 1; SELECT 2", "sqlite")


@pytest.mark.parametrize("dialect", READABLE)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT " + "array[" * 500 + "1" + "]" * 500,
        "SELECT " + "struct(" * 500 + "1" + ")" * 500,
        "SELECT " + "-" * 5_000 + "1",
        "SELECT " + "lower(" * 39 + "array[array[array[array[1]]]]" + ")" * 39,
        "SELECT " + " OR ".join(["1 = 1"] * 2_000),
        "SELECT '" + "x" * 20_000 + "'",
        "SELECT " + "x" * 5_000,
        "SELECT 1\x00",
        "SELECT '\ud800'",
        "SELECT '\ue000name\ue000'",
        "",
        ";",
        "-- nothing",
    ],
)
def test_monsters_are_refused(dialect, sql):
    with pytest.raises(ToolError):
        check(sql, dialect)


_WORDS = str.split(
    "select from where track secret name ( ) , ; -- /* */ ' \" $$ with as delete insert into union join lateral : :: "
    "[ ] 1 * = pg_sleep lower case when then end recursive values table returning \\ E' U&' ` . limit for update"
)


@given(st.lists(st.sampled_from(_WORDS), max_size=25), st.sampled_from(list(READABLE)))
def test_whatever_is_sent_is_refused_or_one_reading_statement(words, dialect):
    try:
        checked = check(" ".join(words), dialect)
    except ToolError:
        return
    again = check(checked.sql.replace(r"\:", ":"), dialect)
    assert again.sql == checked.sql
