import hashlib

from tools_admin.connectors.builtin.demo_database import query_demo_database
from tools_admin.demo.dataset import TABLES, _rows, database_image


def test_everyone_gets_the_same_data():
    assert _rows() == _rows()
    assert hashlib.sha256(repr(_rows()).encode()).hexdigest()[:16] == "32f702f5a2e06960"
    assert len(database_image()) < 100_000


def test_tables_are_as_described():
    for table, columns in TABLES.items():
        header = query_demo_database(f"SELECT * FROM {table} LIMIT 1").splitlines()[0]  # noqa: S608
        assert header == " | ".join(columns)


def test_keys_fit_together():
    orphans = """
        SELECT (SELECT count(*) FROM orders WHERE customer NOT IN (SELECT name FROM customers)),
               (SELECT count(*) FROM order_lines WHERE product NOT IN (SELECT name FROM products)),
               (SELECT count(*) FROM orders WHERE order_id NOT IN (SELECT order_id FROM order_lines))
    """
    assert query_demo_database(orphans).splitlines()[1] == "0 | 0 | 0"
