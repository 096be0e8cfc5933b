"""Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with psycopg 3."""

import json

from snowflake_ids import Layout

SCHEMA = """
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)"""


def add(connection, item, quantity):
    """Adds an order and returns its key."""
    query = "INSERT INTO orders (item, quantity) VALUES (%s, %s) RETURNING id"
    return connection.execute(query, [item, quantity]).fetchone()[0]


def add_many(connection, orders):
    """Adds orders, pairs of an item and a quantity, by one statement. Returns their keys in the same order."""
    items, quantities = zip(*orders)
    query = """
        INSERT INTO orders (item, quantity)
        SELECT item, quantity FROM unnest(%s::text[], %s::int[]) WITH ORDINALITY AS o (item, quantity, n) ORDER BY n
        RETURNING id"""
    # Keys rise in the order in which they are made.
    return sorted(id for (id,) in connection.execute(query, [list(items), list(quantities)]))


def copy_many(connection, orders):
    """The same by COPY, which returns nothing: so the keys are made first, by one call."""
    keys = [id for (id,) in connection.execute("SELECT snowflake_next(%s)", [len(orders)])]
    with connection.cursor().copy("COPY orders (id, item, quantity) FROM STDIN") as copy:
        for key, (item, quantity) in zip(keys, orders):
            copy.write_row([key, item, quantity])
    return keys


def to_json(key, item):
    """The key as text: JavaScript reads a number of 63 bits as another number."""
    return json.dumps({"id": str(key), "item": item})


def from_json(text):
    order = json.loads(text)
    return int(order["id"]), order["item"]


def layout(connection):
    """The layout of the database's keys, which reads them. It never changes, so a program asks once."""
    return Layout(connection.execute("SELECT snowflake_database_layout()").fetchone()[0])
