import time

import pytest

from tools_admin.connectors.base import ToolError
from tools_admin.connectors.builtin.demo_database import MAX_ROWS, query_demo_database
from tools_admin.demo.dataset import TABLES


def test_rows_come_as_a_table():
    sql = "SELECT name, price, NULL AS missing FROM products WHERE category = 'packs' ORDER BY price LIMIT 2"
    assert query_demo_database(sql) == "name | price | missing\nDry Bag | 22 | NULL\nDay Pack 20L | 75 | NULL"
    assert query_demo_database("SELECT name FROM products WHERE price < 0") == "No rows."


def test_sums_of_prices_have_no_dust():
    total = query_demo_database("SELECT sum(amount) FROM sales").splitlines()[1]
    assert len(total.partition(".")[2]) <= 2


def test_the_usual_sql_works():
    sql = """
        WITH totals AS (SELECT customer, sum(amount) AS spent FROM sales GROUP BY customer HAVING count(*) > 3)
        SELECT upper(customer), round(spent), rank() OVER (ORDER BY spent DESC) FROM totals
        WHERE lower(customer) LIKE '%travel%' ORDER BY spent DESC LIMIT 3;
    """
    assert len(query_demo_database(sql).splitlines()) == 4


def test_long_results_are_cut_and_say_so():
    lines = query_demo_database("SELECT * FROM sales").splitlines()
    assert len(lines) == MAX_ROWS + 2
    assert lines[-1] == f"(only the first {MAX_ROWS} rows are shown: ask for less)"
    wide = query_demo_database("SELECT replace(printf('%3000d', 1), ' ', 'é') AS wide FROM sales")
    assert len(wide) < 7_000
    assert "rows are shown" in wide


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO notes VALUES (99, '', '', '')",
        "UPDATE products SET price = 0",
        "DELETE FROM orders",
        "DROP TABLE notes",
        "CREATE TABLE x (y)",
        "CREATE TEMP VIEW x AS SELECT 1",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA table_info(notes)",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO '/tmp/x.db'",
        "BEGIN",
        "REINDEX",
        "ANALYZE",
        "SELECT load_extension('x')",
        "SELECT zeroblob(1000000000)",
        "SELECT randomblob(1000000000)",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT 1; DROP TABLE notes",
        "WITH gone AS (SELECT 1) DELETE FROM notes",
        "",
        "-- nothing",
        "SELECT",
        "SELECT '" + "x" * 6_000 + "'",
        "SELECT 'a\x00b'",
        "SELECT '\ud800'",
    ],
)
def test_everything_but_one_select_is_refused(sql):
    with pytest.raises(ToolError):
        query_demo_database(sql)
    assert query_demo_database("SELECT count(*) FROM notes").splitlines()[1] == "9"


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT count(*) FROM sales a, sales b, sales c, sales d WHERE a.amount + b.amount + c.amount < d.amount",
    ],
)
def test_endless_queries_are_stopped(sql):
    begun = time.monotonic()
    with pytest.raises(ToolError, match="too long"):
        query_demo_database(sql, seconds=0.1)
    assert time.monotonic() - begun < 2


def test_values_cannot_grow_without_bound():
    try:
        result = query_demo_database("SELECT length(printf('%.*c', 1000000000, 'x'))")
    except ToolError:
        return
    assert result.splitlines()[1] in ("NULL", "0")


def test_errors_help_with_names():
    with pytest.raises(ToolError, match=r"no such column: stock. It is in products\("):
        query_demo_database("SELECT stock FROM sales")
    with pytest.raises(ToolError, match=r"no such column: colour. products\(name, category"):
        query_demo_database("SELECT colour FROM products")
    with pytest.raises(ToolError, match="no such table: cities.*" + ", ".join(TABLES)):
        query_demo_database("SELECT * FROM cities")
