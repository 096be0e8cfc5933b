"""The statements that PostgREST makes of requests, on the views, and on a table with casts."""

import json
import unittest
from pathlib import Path

import psycopg
from psycopg.errors import ForeignKeyViolation, InvalidTextRepresentation

SCHEMA = Path("../postgrest/schema.sql").read_text()
PUBLISHED = 382304429472247813


class Schema(unittest.TestCase):
    def setUp(self):
        self.connection = self.enterContext(psycopg.connect(autocommit=True))
        self.connection.execute("DROP SCHEMA IF EXISTS shop, api CASCADE")
        # PostgreSQL 14 has no such views.
        has_invoker = self.connection.info.server_version >= 150000
        self.connection.execute(SCHEMA if has_invoker else SCHEMA.replace(" WITH (security_invoker = true)", ""))
        self.connection.execute("INSERT INTO shop.customers VALUES (%s, 'Ada')", [PUBLISHED])

    def get(self, columns, where, source="api.orders"):
        """The body of the answer to GET, read as JavaScript reads it: numbers in double precision."""
        query = f"WITH s AS (SELECT {columns} FROM {source} WHERE {where}) SELECT coalesce(json_agg(s), '[]')::text FROM s"
        return json.loads(self.connection.execute(query).fetchone()[0], parse_int=float)

    def post(self, body):
        query = """
            WITH s AS (
                INSERT INTO api.orders (customer_id, item)
                SELECT customer_id, item FROM json_populate_recordset(null::api.orders, %s) RETURNING *
            ) SELECT json_agg(s)::text FROM s"""
        return json.loads(self.connection.execute(query, [json.dumps(body)]).fetchone()[0], parse_int=float)

    def plan(self, query):
        self.connection.execute("SET enable_seqscan = off")
        return "\n".join(line for (line,) in self.connection.execute(f"EXPLAIN (COSTS OFF) {query}"))

    def test_policies_of_the_tables_hold(self):
        if self.connection.info.server_version < 150000:
            return
        self.post([{"customer_id": str(PUBLISHED), "item": "lamp"}, {"customer_id": str(PUBLISHED), "item": "desk"}])
        self.connection.execute("ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY")
        self.connection.execute("CREATE POLICY lamps ON shop.orders USING (item = 'lamp')")
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("CREATE ROLE web; GRANT USAGE ON SCHEMA shop, api TO web")
            self.connection.execute("GRANT SELECT ON shop.orders, api.orders TO web; SET ROLE web")
            self.assertEqual([row["item"] for row in self.get("item", "true")], ["lamp"])

    def test_keys_are_text_both_ways(self):
        posted = self.post([{"customer_id": str(PUBLISHED), "item": "lamp"}, {"customer_id": str(PUBLISHED), "item": "desk"}])
        stored = self.connection.execute("SELECT id, customer_id, item FROM shop.orders ORDER BY id").fetchall()
        keys = [(order["id"], order["customer_id"], order["item"]) for order in posted]
        self.assertEqual(keys, [(str(id), str(PUBLISHED), item) for id, _, item in stored])
        self.assertEqual([customer for _, customer, _ in stored], [PUBLISHED, PUBLISHED])
        self.assertEqual(self.get("*", f"id = '{posted[1]['id']}'"), posted[1:])
        embedded = self.get("o.id, row_to_json(c) AS customer", "true", "api.orders o CROSS JOIN api.customer(o) c")
        self.assertEqual([order["customer"] for order in embedded], [{"id": str(PUBLISHED), "name": "Ada"}] * 2)

    def test_updates_and_deletes(self):
        lamp, desk = self.post([{"customer_id": str(PUBLISHED), "item": item} for item in ("lamp", "desk")])
        changed = "UPDATE api.orders SET item = 'chair' WHERE id = %s RETURNING id, item"
        self.assertEqual(self.connection.execute(changed, [lamp["id"]]).fetchall(), [(lamp["id"], "chair")])
        self.connection.execute("DELETE FROM api.orders WHERE id = %s", [desk["id"]])
        self.assertEqual(self.get("id, item", "true"), [{"id": lamp["id"], "item": "chair"}])

    def test_other_keys_are_refused(self):
        for key, error in ((str(PUBLISHED + 1), ForeignKeyViolation), ("x", InvalidTextRepresentation)):
            with self.assertRaises(error):
                self.post([{"customer_id": key, "item": "lamp"}])

    def test_filters_use_indexes(self):
        for column in ("id", "customer_id"):
            self.assertIn(f"orders_{column}_idx", self.plan(f"SELECT * FROM api.orders WHERE {column} = '{PUBLISHED}'"))
        day = "created_at >= '2026-11-20' AND created_at < '2026-11-21'"
        self.assertIn("Index Cond: ((id >= ", self.plan(f"SELECT * FROM api.orders WHERE {day}"))

    def test_casts_in_the_request(self):
        (order,) = self.post([{"customer_id": str(PUBLISHED), "item": "lamp"}])
        expected = [{"id": order["id"], "customer_id": str(PUBLISHED)}]
        where = f"id = '{order['id']}'"
        self.assertEqual(self.get("id::text, customer_id::text", where, "shop.orders"), expected)
        self.assertIn("orders_pkey", self.plan(f"SELECT * FROM shop.orders WHERE {where}"))
        # Without them, another key arrives.
        self.assertNotEqual(int(self.get("customer_id", where, "shop.orders")[0]["customer_id"]), PUBLISHED)

