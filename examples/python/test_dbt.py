"""The macros of dbt, on PostgreSQL and on DuckDB, against the library."""

import os
import subprocess
import sys
import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import psycopg

FOLDER = Path("../analytics/dbt").resolve()
DBT = Path(sys.executable).with_name("dbt")
SINCE, UNTIL = (datetime(2026, 11, day, tzinfo=timezone.utc) for day in (20, 21))
LAYOUTS = [
    "default",
    "timestamp=51 sequence=4 worker=8 tick=1us epoch=2023-02-28T23:59:59.999999Z",
    "timestamp=31 datacenter=9 sequence=9 worker=14 tick=1s epoch=2020-02-29T12:34:56.789012Z",
]


class Dbt(unittest.TestCase):
    def setUp(self):
        self.connection = self.enterContext(psycopg.connect(autocommit=True))
        self.connection.execute("""
            DROP SCHEMA IF EXISTS shop, analytics CASCADE;
            CREATE SCHEMA shop;
            CREATE TABLE shop.orders (id bigint PRIMARY KEY)""")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.environment = {
            **os.environ,
            "DUCKDB_FILE": f"{folder}/warehouse.duckdb",
            "DBT_LOG_PATH": folder,
            "DBT_TARGET_PATH": folder,
            "DBT_PROFILES_DIR": str(FOLDER),
        }

    def write_macros(self, layout):
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "system=dbt", "-v", f"layout={layout}", "-f", "../macros.sql"]
        macros = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True).stdout
        (FOLDER / "macros").mkdir(exist_ok=True)
        (FOLDER / "macros/snowflake.sql").write_text(macros)

    def run_dbt(self, target, since=SINCE, until=UNTIL):
        variables = f"{{since: '{since}', until: '{until}'}}"
        command = [DBT, "--quiet", "run", "--target", target, "--vars", variables]
        ran = subprocess.run(command, cwd=FOLDER, env=self.environment, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def ids(self, layout):
        """Of every hour around the day, a microsecond before and after its ends, and the highest but one."""
        query = """
            WITH highest AS (SELECT snowflake_max_id('infinity', %(layout)s) AS id)
            SELECT id FROM (
                SELECT snowflake_min_id(at, %(layout)s) + 3 FROM generate_series(
                    %(since)s - interval '2 days', %(until)s + interval '2 days', interval '1 hour') AS at
                UNION SELECT pg_catalog.unnest(ARRAY[snowflake_max_id_before(at, %(layout)s), snowflake_min_id(at, %(layout)s)])
                FROM pg_catalog.unnest(ARRAY[%(since)s, %(until)s]) AS at
                UNION SELECT 0 UNION SELECT id - 1 FROM highest) AS ids (id)"""
        rows = self.connection.execute(query, {"layout": layout, "since": SINCE, "until": UNTIL})
        return [id for (id,) in rows]

    def compare(self, layout, decoded, of_a_day):
        query = """
            SELECT id, (snowflake_decode(id, %(layout)s)).*, snowflake_between(id, %(since)s, %(until)s, %(layout)s)
            FROM shop.orders ORDER BY id"""
        rows = self.connection.execute(query, {"layout": layout, "since": SINCE, "until": UNTIL}).fetchall()
        self.assertEqual(decoded, [row[:5] for row in rows])
        self.assertEqual(of_a_day, [row[0] for row in rows if row[5]])
        self.assertGreater(len(of_a_day), 20)

    def store(self, ids):
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO shop.orders VALUES (%s)", [(id,) for id in ids])

    def test_postgres(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                self.connection.execute("TRUNCATE shop.orders; DROP SCHEMA IF EXISTS analytics CASCADE")
                self.write_macros(layout)
                ids = sorted(self.ids(layout))
                # A second run adds those that came after the first.
                for some in (ids[:-30], ids[-30:]) if layout == LAYOUTS[-1] else (ids,):
                    self.store(some)
                    self.run_dbt("postgres")
                decoded = self.connection.execute("SELECT * FROM analytics.orders_decoded ORDER BY id").fetchall()
                of_a_day = self.connection.execute("SELECT id FROM analytics.orders_of_a_day ORDER BY id").fetchall()
                self.compare(layout, decoded, [id for (id,) in of_a_day])
                self.connection.execute("SET enable_seqscan = off")
                plan = self.connection.execute("EXPLAIN SELECT * FROM analytics.orders_of_a_day").fetchall()
                self.connection.execute("RESET enable_seqscan")
                self.assertTrue(any("Index Cond: ((id >= " in line for (line,) in plan), plan)

        # The last layout's rows, all of them.
        self.run_dbt("postgres", "-infinity", "infinity")
        count = "SELECT count(*) FROM analytics.orders_of_a_day"
        self.assertEqual(self.connection.execute(count).fetchone(), (len(ids),))

    def test_duckdb(self):
        layout = LAYOUTS[-1]
        self.write_macros(layout)
        ids = self.ids(layout)
        self.store(ids)
        with duckdb.connect(self.environment["DUCKDB_FILE"]) as connection:
            connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id BIGINT)")
            connection.executemany("INSERT INTO shop.orders VALUES (?)", [[id] for id in ids])
        for _ in range(2):
            self.run_dbt("duckdb")
        with duckdb.connect(self.environment["DUCKDB_FILE"]) as connection:
            decoded = connection.execute("SELECT * REPLACE (epoch_us(created_at) AS created_at) FROM analytics.orders_decoded ORDER BY id")
            epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
            decoded = [(id, epoch + timedelta(microseconds=at), *rest) for id, at, *rest in decoded.fetchall()]
            of_a_day = [id for (id,) in connection.execute("SELECT id FROM analytics.orders_of_a_day ORDER BY id").fetchall()]
        self.compare(layout, decoded, of_a_day)
        self.run_dbt("duckdb", "-infinity", "infinity")
        with duckdb.connect(self.environment["DUCKDB_FILE"]) as connection:
            self.assertEqual(connection.execute("SELECT count(*) FROM analytics.orders_of_a_day").fetchone(), (len(ids),))

