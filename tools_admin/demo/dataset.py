"""The demo data: two years of a fictitious outdoor shop, small enough to be made anew in every process.

The generator is deterministic, so that everyone who tries the demo agent sees the same numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import date, timedelta
from functools import cache
from typing import Any

# Names are the keys, called the same wherever they occur, and `sales` is joined already: small models write SQL by ear.
SCHEMA = """
CREATE TABLE customers (name TEXT PRIMARY KEY, city TEXT, country TEXT, since DATE);
CREATE TABLE products (name TEXT PRIMARY KEY, category TEXT, price REAL, stock INTEGER);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer TEXT REFERENCES customers, ordered_on DATE, status TEXT);
CREATE TABLE order_lines (
    order_id INTEGER REFERENCES orders, product TEXT REFERENCES products, quantity INTEGER, unit_price REAL
);
CREATE TABLE notes (written_on DATE, title TEXT, text TEXT);
CREATE VIEW sales AS
SELECT order_id, ordered_on, status, customer, city, country, product, category, quantity,
       round(quantity * unit_price, 2) AS amount
FROM order_lines JOIN orders USING (order_id)
JOIN customers ON customers.name = customer JOIN products ON products.name = product;
"""

TABLES = {
    table: tuple(columns.split())
    for table, columns in {
        "customers": "name city country since",
        "products": "name category price stock",
        "orders": "order_id customer ordered_on status",
        "order_lines": "order_id product quantity unit_price",
        "sales": "order_id ordered_on status customer city country product category quantity amount",
        "notes": "written_on title text",
    }.items()
}

PRODUCTS = [
    ("Ridge Tent 2P", "tents", 249.0),
    ("Family Tent 4P", "tents", 429.0),
    ("Storm Tarp", "tents", 79.0),
    ("Feather Sleeping Bag", "sleeping", 189.0),
    ("Summer Sleeping Bag", "sleeping", 69.0),
    ("Trail Mat", "sleeping", 45.0),
    ("Inflatable Pillow", "sleeping", 19.5),
    ("Granite Boots", "footwear", 159.0),
    ("Brook Sandals", "footwear", 59.0),
    ("Wool Socks", "footwear", 14.9),
    ("Day Pack 20L", "packs", 75.0),
    ("Trek Pack 55L", "packs", 179.0),
    ("Dry Bag", "packs", 22.0),
    ("Gas Stove", "kitchen", 49.0),
    ("Titanium Mug", "kitchen", 29.0),
    ("Cook Set", "kitchen", 64.0),
    ("Water Filter", "kitchen", 39.0),
    ("Head Torch", "tools", 34.0),
    ("Pocket Knife", "tools", 27.5),
    ("Compass", "tools", 18.0),
]

CITIES = [
    ("Lisbon", "Portugal"),
    ("Porto", "Portugal"),
    ("Hamburg", "Germany"),
    ("Munich", "Germany"),
    ("Lyon", "France"),
    ("Graz", "Austria"),
    ("Bergen", "Norway"),
    ("Leeds", "United Kingdom"),
]

FIRMS = ["Alder", "Birch", "Cedar", "Dune", "Elm", "Fjord", "Glen", "Heath", "Inlet", "Juniper", "Kestrel", "Larch"]
KINDS = ["Outdoors", "Hiking Club", "Travel"]

NOTES = [
    ("2025-01-14", "Spring catalogue", "Print run of 4,000 copies. The cover shows the Ridge Tent at dawn."),
    ("2025-02-03", "Supplier of socks", "The mill in Graz raises prices by 6 percent from April. Ask for a rebate."),
    ("2025-03-20", "Trade fair", "Stand 12 in hall B, from 9 to 11 May. Marta brings the banner."),
    ("2025-04-08", "Warehouse key", "The spare key is with Jonas on the second floor."),
    ("2025-05-27", "Return policy", "Customers may return unused goods within 45 days."),
    ("2025-07-02", "Summer party", "On 18 July by the lake. Budget 1,500 euros, vegetarian barbecue."),
    ("2025-09-11", "Boots recall", "Batch G-77 of the Granite Boots has weak laces. Replace them free of charge."),
    ("2025-10-30", "Winter stock", "Order 200 more Feather Sleeping Bags before the first snow."),
    ("2025-12-05", "Office hours", "Closed from 24 December to 2 January."),
]

FIRST_DAY = date(2024, 1, 2)


@cache
def database_image() -> bytes:
    """The demo database as a serialised SQLite file; whoever opens it works on a private copy."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        for table, rows in _rows().items():
            marks = ", ".join("?" * len(TABLES[table]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 (names of our own)
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


def describe_tables(names: Iterable[str] = TABLES) -> str:
    """One line a table, as models read it best: ``products(name, category, …)``."""
    return "\n".join(f"{table}({', '.join(TABLES[table])})" for table in names)


def _rows() -> dict[str, list[tuple[Any, ...]]]:
    chance = random.Random(20240105)  # noqa: S311 (the same for everyone)
    customers = _customers(chance)
    products: list[tuple[Any, ...]] = [(*product, chance.randrange(4, 160)) for product in PRODUCTS]
    orders: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    for number in range(1, 181):
        day = FIRST_DAY + timedelta(days=number * 4 + chance.randrange(4))
        status = "delivered" if number <= 160 else chance.choice(["delivered", "shipped", "open", "cancelled"])
        orders.append((number, chance.choice(customers)[0], day.isoformat(), status))
        for name, _, price, _ in chance.sample(products, chance.randrange(1, 4)):
            lines.append((number, name, chance.randrange(1, 9), price))
    return {"customers": customers, "products": products, "orders": orders, "order_lines": lines, "notes": [*NOTES]}


def _customers(chance: random.Random) -> list[tuple[Any, ...]]:
    names = [f"{firm} {kind}" for firm in FIRMS for kind in KINDS]
    chance.shuffle(names)
    return [
        (name, *chance.choice(CITIES), (FIRST_DAY - timedelta(days=chance.randrange(30, 1500))).isoformat())
        for name in names[:24]
    ]
