import unittest

import orders_psycopg as orders
import psycopg

MANY = [(f"item {n}", n) for n in range(5000)]


class Orders(unittest.TestCase):
    def setUp(self):
        self.connection = self.enterContext(psycopg.connect(autocommit=True))
        self.connection.execute("DROP TABLE IF EXISTS orders")
        self.connection.execute(orders.SCHEMA)
        self.statements()

    def statements(self):
        """How many INSERT statements the server has executed since the last call; COPY counts as one."""
        return self.connection.execute("SELECT test.insert_statements()").fetchone()[0]

    def stored(self):
        return self.connection.execute("SELECT id, item, quantity FROM orders ORDER BY quantity").fetchall()

    def test_the_key_comes_back(self):
        key = orders.add(self.connection, "lamp", 2)
        self.assertEqual(self.stored(), [(key, "lamp", 2)])

    def test_many_are_one_statement(self):
        for add_many in [orders.add_many, orders.copy_many]:
            self.connection.execute("TRUNCATE orders")
            keys = add_many(self.connection, MANY)
            self.assertEqual(self.statements(), 1)
            self.assertEqual(self.stored(), [(key, *order) for key, order in zip(keys, MANY)])
            self.assertEqual(keys, sorted(set(keys)))

    def test_executemany_is_a_statement_for_each(self):
        query = "INSERT INTO orders (item, quantity) VALUES (%s, %s)"
        self.connection.cursor().executemany(query, MANY)
        self.assertEqual(self.statements(), len(MANY))

    def test_keys_survive_json(self):
        key = orders.add(self.connection, "lamp", 1) | 1
        text = orders.to_json(key, "lamp")
        self.assertIn(f'"{key}"', text)
        self.assertEqual(orders.from_json(text), (key, "lamp"))
        self.assertNotEqual(int(float(key)), key, "a JavaScript number cannot hold it")

    def test_the_time_is_read_from_the_key(self):
        layout = orders.layout(self.connection)
        orders.add_many(self.connection, MANY)
        for key, timestamp in self.connection.execute("SELECT id, snowflake_timestamp(id) FROM orders"):
            self.assertEqual(layout.timestamp(key), timestamp)
