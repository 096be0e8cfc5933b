"""Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with asyncpg."""

import json

from snowflake_ids import Layout

SCHEMA = """
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)"""


async def add(connection, item, quantity):
    """Adds an order and returns its key."""
    return await connection.fetchval("INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id", item, quantity)


async def add_many(connection, orders):
    """Adds orders, pairs of an item and a quantity, by one statement. Returns their keys in the same order."""
    items, quantities = zip(*orders)
    query = """
        INSERT INTO orders (item, quantity)
        SELECT item, quantity FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS o (item, quantity, n) ORDER BY n
        RETURNING id"""
    # Keys rise in the order in which they are made.
    return sorted(row["id"] for row in await connection.fetch(query, items, quantities))


async def copy_many(connection, orders):
    """The same by COPY, which returns nothing: so the keys are made first, by one call."""
    keys = [row[0] for row in await connection.fetch("SELECT snowflake_next($1)", len(orders))]
    await connection.copy_records_to_table("orders", records=[(key, *order) for key, order in zip(keys, orders)])
    return keys


async def layout(connection):
    """The layout of the database's keys, which reads them. It never changes, so a program asks once."""
    return Layout(await connection.fetchval("SELECT snowflake_database_layout()"))


async def between(connection, layout, since, until):
    """The keys of a range of time, which is a range of the primary key."""
    query = "SELECT id FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id"
    return [row["id"] for row in await connection.fetch(query, layout.min_id(since), layout.max_id_before(until))]


def to_json(key, item):
    """The key as text: JavaScript reads a number of 63 bits as another number."""
    return json.dumps({"id": str(key), "item": item})
