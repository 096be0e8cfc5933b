import json
import os
import unittest
from datetime import datetime, timedelta, timezone

import asyncpg
import orders_asyncpg as orders

MANY = [(f"item {n}", n) for n in range(5000)]
PUBLISHED = 382304429472247813


class Orders(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # It knows libpq's environment variables, of which PGHOST may be the directory of a socket.
        self.connection = await asyncpg.connect(user=os.environ["PGUSER"], database=os.environ["PGDATABASE"])
        self.addAsyncCleanup(self.connection.close)
        await self.connection.execute("DROP TABLE IF EXISTS orders")
        await self.connection.execute(orders.SCHEMA)
        await self.statements()

    async def statements(self):
        """How many INSERT statements the server has executed since the last call; COPY counts as one."""
        return await self.connection.fetchval("SELECT test.insert_statements()")

    async def stored(self):
        rows = await self.connection.fetch("SELECT id, item, quantity FROM orders ORDER BY quantity")
        return [tuple(row) for row in rows]

    async def test_the_key_comes_back(self):
        key = await orders.add(self.connection, "lamp", 2)
        self.assertGreater(key, 1 << 53)
        self.assertEqual(await self.stored(), [(key, "lamp", 2)])

    async def test_many_are_one_statement(self):
        for add_many in (orders.add_many, orders.copy_many):
            await self.connection.execute("TRUNCATE orders")
            keys = await add_many(self.connection, MANY)
            self.assertEqual(await self.statements(), 1)
            self.assertEqual(await self.stored(), [(key, *order) for key, order in zip(keys, MANY)])

    async def test_executemany_is_a_statement_for_each(self):
        await self.connection.executemany("INSERT INTO orders (item, quantity) VALUES ($1, $2)", MANY)
        self.assertEqual(await self.statements(), len(MANY))

    async def test_keys_survive_json(self):
        text = orders.to_json(PUBLISHED, "lamp")
        key = await self.connection.fetchval("SELECT ($1::json->>'id')::bigint", text)
        self.assertEqual((key, int(json.loads(text)["id"])), (PUBLISHED, PUBLISHED))
        self.assertNotEqual(int(float(PUBLISHED)), PUBLISHED, "a JavaScript number cannot hold it")

    async def test_times_and_ranges_of_time(self):
        layout = await orders.layout(self.connection)
        await orders.add_many(self.connection, MANY)
        for row in await self.connection.fetch("SELECT id, snowflake_timestamp(id) FROM orders"):
            self.assertEqual(layout.timestamp(row["id"]), row["snowflake_timestamp"])
        since, until = (datetime(2026, 11, day, tzinfo=timezone.utc) for day in (20, 21))
        moment = timedelta(milliseconds=10)
        keys = [layout.encode(at, 1) for at in (since - moment, since, until - moment, until)]
        await self.connection.executemany("INSERT INTO orders VALUES ($1, 'lamp', 1)", [(key,) for key in keys])
        self.assertEqual(await orders.between(self.connection, layout, since, until), keys[1:3])
