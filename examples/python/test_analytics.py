"""The macros and expressions against the library, over random IDs, times and layouts, and at the ends."""

import json
import os
import random
import re
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

import chdb.session
import duckdb
import pandas as pd
import polars as pl
import psycopg
from snowflake_frames import PandasIds, PolarsIds
from snowflake_ids import LAYOUTS, Layout, LayoutError

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
# ClickHouse's DateTime64 ends in 2299.
END = datetime(2299, 1, 1, tzinfo=timezone.utc)
TEXTS = [
    "default", "twitter", "mastodon", "sonyflake", "baidu", "cosid-js", "cockroach",
    "timestamp=31 datacenter=9 sequence=9 worker=14 tick=1s epoch=2020-02-29T12:34:56.789012Z",
    "timestamp=51 sequence=4 worker=8 tick=1us epoch=2023-02-28T23:59:59.999999Z",
    "timestamp=43 worker=2 tick=125us epoch=1970-01-01T00:00:00Z",
    "timestamp=40 sequence=23 tick=7ms epoch=2014-09-01T00:00:00Z",
    "timestamp=47",
]  # fmt: skip


def draw_layout(draw):
    """As many bits as fit before the year 10000, and often all 63."""
    tick = draw.choice(["1us", "10us", "125us", "1ms", "7ms", "10ms", "1s", "60s"])
    epoch = EPOCH + draw.randrange(54 * 365 * 86400 * 10**6) * MICROSECOND
    written = epoch.replace(tzinfo=None).isoformat(timespec="microseconds" if epoch.microsecond % 1000 else "seconds")
    while True:
        widths = [draw.randint(20, 60), *(draw.randint(1, 16) for _ in range(3))]
        names = ["timestamp", *draw.sample(["datacenter", "worker", "sequence"], draw.randint(0, 3))]
        fields = " ".join(f"{name}={width}" for name, width in zip(names, widths))
        try:
            return str(Layout(f"{fields} tick={tick} epoch={written}Z"))
        except LayoutError:
            continue


SEED = os.environ.get("SEED", "30")
TEXTS += [draw_layout(random.Random(f"{SEED} {n}")) for n in range(12)]


def draw_ids(layout, count=300):
    draw = random.Random(30)
    last = min(layout.highest_id, layout.max_id_before(END))
    anywhere = [draw.randint(0, last) >> draw.randrange(20) for _ in range(count)]
    return sorted({0, 1, last - 1, last, *anywhere})


def draw_times(layout, count=100):
    """Around ticks, the ends of the layout, and the ends of what all systems here have."""
    draw = random.Random(31)
    ticks = [layout.timestamp(id) for id in draw.sample(draw_ids(layout), count)]
    ends = [layout.epoch, min(layout.last_time, END), datetime(1900, 1, 2, tzinfo=timezone.utc), END, EPOCH]
    return [time + shift * MICROSECOND for time in ticks + ends for shift in (-1, 0, 1)]


def micros(time):
    return (time - EPOCH) // MICROSECOND


def macros(system, text):
    """What psql prints, as the README has it."""
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", f"system={system}", "-v", f"layout={text}", "-f", "../analytics/macros.sql"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Library:
    """The answers of PostgreSQL."""

    connection = psycopg.connect(autocommit=True)

    @classmethod
    def parts(cls, ids, text):
        query = """
            SELECT (extract(epoch FROM snowflake_timestamp(id, %(layout)s)) * 1000000::numeric)::bigint,
                   snowflake_datacenter(id, %(layout)s), snowflake_worker(id, %(layout)s), snowflake_sequence(id, %(layout)s)
            FROM pg_catalog.unnest(%(ids)s::bigint[]) WITH ORDINALITY AS i (id, n) ORDER BY n"""
        return cls.connection.execute(query, {"layout": text, "ids": ids}).fetchall()

    @classmethod
    def bounds(cls, times, text):
        query = """
            SELECT snowflake_min_id(at, %(layout)s), snowflake_max_id(at, %(layout)s), snowflake_max_id_before(at, %(layout)s)
            FROM pg_catalog.unnest(%(times)s::timestamptz[]) WITH ORDINALITY AS t (at, n) ORDER BY n"""
        return cls.connection.execute(query, {"layout": text, "times": times}).fetchall()


class Macros(unittest.TestCase):
    def test_the_layout_is_that_of_the_database(self):
        layout = Library.connection.execute("SELECT snowflake_database_layout()").fetchone()[0]
        self.assertNotIn(layout, LAYOUTS.values())
        for system in ("duckdb", "clickhouse", "dbt"):
            command = ["psql", "-XAtq", "-v", f"system={system}", "-f", "../analytics/macros.sql"]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            self.assertIn(f"Layout: {layout}\n", printed)
            self.assertEqual(printed, macros(system, layout))

    def test_a_name_is_that_of_a_layout(self):
        for name in ("default", "discord"):
            self.assertEqual(macros("duckdb", name), macros("duckdb", LAYOUTS[name]))


class DuckDB(unittest.TestCase):
    def test_answers_are_those_of_the_library(self):
        for text in TEXTS:
            with self.subTest(text):
                layout = Layout(text)
                ids, times = draw_ids(layout), draw_times(layout)
                connection = duckdb.connect()
                connection.execute(macros("duckdb", text))
                # Whatever column has the IDs.
                for type in ("BIGINT", "UBIGINT", "VARCHAR"):
                    connection.execute(f"CREATE OR REPLACE TABLE ids AS SELECT unnest(?::BIGINT[])::{type} AS id", [ids])
                    rows = connection.execute("""
                        SELECT epoch_us(snowflake_timestamp(id)), snowflake_datacenter(id), snowflake_worker(id), snowflake_sequence(id)
                        FROM ids ORDER BY rowid""").fetchall()
                    self.assertEqual(rows, Library.parts(ids, text))
                texts = [time.isoformat() for time in times]
                connection.execute("CREATE TABLE times AS SELECT unnest(?::VARCHAR[])::TIMESTAMPTZ AS moment", [texts])
                query = "SELECT snowflake_min_id({0}), snowflake_max_id({0}), snowflake_max_id_before({0})"
                rows = connection.execute(f"{query.format('moment')} FROM times ORDER BY rowid").fetchall()
                self.assertEqual(rows, Library.bounds(times, text))
                for time in ("infinity", "-infinity", "290000-01-01 00:00+00", "0001-01-01 00:00+00"):
                    row = connection.execute(query.format(f"TIMESTAMPTZ '{time}'")).fetchone()
                    self.assertEqual([row], Library.bounds([time], text))
                null = "SELECT snowflake_timestamp(NULL), snowflake_worker(NULL)"
                self.assertEqual(connection.execute(null).fetchone(), (None, None))

    def test_a_condition_on_the_time_reads_the_row_groups_of_the_range(self):
        with tempfile.TemporaryDirectory() as folder:
            layout, file = Layout("default"), f"{folder}/orders.parquet"
            connection = duckdb.connect()
            connection.execute(macros("duckdb", "default"))
            minute = micros(layout.epoch + timedelta(minutes=1)) - micros(layout.epoch)
            connection.execute(f"""
                CREATE TABLE orders AS SELECT (n * {minute // 1000}) << 22 AS id, n % 7 AS quantity FROM range(500000) AS r (n);
                COPY orders TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 10240)""")
            # 63 bits stay 63 bits in Parquet.
            connection.execute(f"COPY (SELECT unnest([0, 9223372036854775807]) AS id) TO '{folder}/ends.parquet'")
            ends = connection.execute(f"SELECT id FROM '{folder}/ends.parquet' ORDER BY id").fetchall()
            self.assertEqual(ends, [(0,), ((1 << 63) - 1,)])
            day = "TIMESTAMPTZ '2024-05-01 00:00+00', TIMESTAMPTZ '2024-05-02 00:00+00'"
            for table in ("orders", f"'{file}'"):
                count = f"SELECT count(*) FROM {table} WHERE "
                ranged = f"{count} snowflake_between(id, {day})"
                self.assertEqual(connection.execute(ranged).fetchone(), (1440,))
                slow = f"{count} snowflake_timestamp(id) >= {day.replace(', ', ' AND snowflake_timestamp(id) < ')}"
                self.assertEqual(connection.execute(slow).fetchone(), (1440,))
                read, of = self.row_groups(connection, slow)
                self.assertTrue(read == of >= 5, (read, of))
                read, of = self.row_groups(connection, ranged)
                self.assertTrue(1 <= read <= 2 and of >= 5, (read, of))

    def test_numbers_of_json_are_exact(self):
        with tempfile.TemporaryDirectory() as folder:
            # As Debezium sends them.
            Path(f"{folder}/events.json").write_text('{"after": {"id": 9223372036854775807}}\n{"after": {"id": 382304429472247813}}\n')
            rows = duckdb.sql(f"SELECT after.id FROM '{folder}/events.json' ORDER BY 1").fetchall()
        self.assertEqual(rows, [(382304429472247813,), ((1 << 63) - 1,)])

    def row_groups(self, connection, query):
        """How many row groups the scan of a table read, and of how many."""
        node = json.loads(connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchone()[1])["operator"][0]
        while "row_groups_scanned" not in node:
            (node,) = node["children"]
        return node["row_groups_scanned"], node["total_row_groups_to_scan"]


class ClickHouse(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.session = chdb.session.Session(folder)
        self.addCleanup(self.session.close)

    def define(self, text):
        for statement in macros("clickhouse", text).split(";\n"):
            if statement.strip():
                self.session.query(statement)

    def rows(self, query):
        text = str(self.session.query(query, "TabSeparated"))
        return [tuple(None if value == r"\N" else int(value) for value in line.split("\t")) for line in text.splitlines()]

    def test_answers_are_those_of_the_library(self):
        for text in TEXTS:
            with self.subTest(text):
                layout = Layout(text)
                ids, times = draw_ids(layout), draw_times(layout)
                self.define(text)
                for type in ("Int64", "UInt64", "String"):
                    values = [str(id) for id in ids] if type == "String" else ids
                    rows = self.rows(f"""
                        SELECT toUnixTimestamp64Micro(snowflake_timestamp(id)), snowflake_datacenter(id),
                               snowflake_worker(id), snowflake_sequence(id)
                        FROM (SELECT arrayJoin({values}::Array({type})) AS id)""")
                    self.assertEqual(rows, Library.parts(ids, text))
                numbers = [micros(time) for time in times]
                rows = self.rows(f"""
                    SELECT snowflake_min_id(at), snowflake_max_id(at), snowflake_max_id_before(at)
                    FROM (SELECT fromUnixTimestamp64Micro(arrayJoin({numbers}::Array(Int64)), 'UTC') AS at)""")
                self.assertEqual(rows, Library.bounds(times, text))

    def test_numbers_of_json_are_exact(self):
        events = '{"id": 9223372036854775807}\n{"id": 382304429472247813}'
        rows = self.rows(f"SELECT id FROM format(JSONEachRow, 'id Int64', '{events}') ORDER BY 1")
        self.assertEqual(rows, [(382304429472247813,), ((1 << 63) - 1,)])

    def test_a_condition_on_the_time_uses_the_primary_key(self):
        self.define("default")
        self.session.query("CREATE DATABASE shop")
        self.session.query(
            "CREATE TABLE shop.orders (id Int64) ENGINE = MergeTree ORDER BY id SETTINGS index_granularity = 1024"
        )
        self.session.query("INSERT INTO shop.orders SELECT bitShiftLeft(number * 60000, 22) FROM numbers(500000)")
        day = "'2024-05-01 00:00:00', '2024-05-02 00:00:00'"
        ranged = f"SELECT count() FROM shop.orders WHERE snowflake_between(id, {day})"
        self.assertEqual(self.rows(ranged), [(1440,)])
        plan = str(self.session.query(f"EXPLAIN indexes = 1 {ranged}", "TSVRaw"))
        read, of = map(int, re.search(r"Granules: (\d+)/(\d+)", plan).groups())
        self.assertLessEqual(read, 4, plan)
        self.assertGreater(of, 400, plan)


class Frames(unittest.TestCase):
    def test_answers_are_those_of_the_library(self):
        for text in TEXTS:
            with self.subTest(text):
                layout = Layout(text)
                ids = draw_ids(layout)
                expected = Library.parts(ids, text)
                of_polars = PolarsIds(pl.col("id"), layout)
                fields = ("datacenter", "worker", "sequence")
                frame = pl.DataFrame({"id": ids}, schema={"id": pl.Int64}).select(
                    of_polars.timestamp().alias("timestamp"), *[of_polars.field(name).alias(name) for name in fields]
                )
                self.assertEqual(frame.schema["timestamp"], pl.Datetime("us", "UTC"))
                self.assertEqual(frame.with_columns(pl.col("timestamp").cast(pl.Int64)).rows(), expected)

                for type in ("int64", "Int64"):
                    of_pandas = PandasIds(pd.Series(ids, dtype=type), layout)
                    times = [micros(time.to_pydatetime()) for time in of_pandas.timestamp()]
                    columns = [[None if part is pd.NA else part for part in of_pandas.field(name)] for name in fields]
                    self.assertEqual(list(zip(times, *columns)), expected)

    def test_ranges_are_those_of_the_library(self):
        for text in TEXTS:
            layout = Layout(text)
            ids, times = draw_ids(layout), draw_times(layout)
            bounds = Library.bounds(times, text)
            for (since, (first, _, _)), (until, (_, _, last)) in zip(zip(times, bounds), reversed(list(zip(times, bounds)))):
                expected = [first <= id <= last for id in ids]
                self.assertEqual(PandasIds(pd.Series(ids), layout).between(since, until).tolist(), expected)
                frame = pl.DataFrame({"id": ids}, schema={"id": pl.Int64})
                self.assertEqual(frame.select(PolarsIds(pl.col("id"), layout).between(since, until))["id"].to_list(), expected)

    def test_a_range_goes_down_to_the_file(self):
        layout = Layout("default")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "orders.parquet"
            pl.DataFrame({"id": [n * 60000 << 22 for n in range(100000)]}).write_parquet(file, row_group_size=1024)
            days = [datetime(2024, 2, day, tzinfo=timezone.utc) for day in (1, 2)]
            query = pl.scan_parquet(file).filter(PolarsIds(pl.col("id"), layout).between(*days))
            self.assertEqual(query.collect().height, 1440)
            plan = query.explain()
            self.assertRegex(plan, r"^Parquet SCAN[^\n]*\n(?s:.*)SELECTION: .*is_between", plan)

    def test_nulls(self):
        layout, id = Layout("default"), 382304429472247813
        ids = PandasIds(pd.Series([id, None], dtype="Int64"), layout)
        self.assertEqual(ids.timestamp().isna().tolist(), [False, True])
        self.assertEqual(ids.timestamp()[0], layout.timestamp(id))
        self.assertEqual(ids.field("worker").isna().tolist(), [False, True])
        # What pandas makes of a column with NULLs by itself.
        self.assertNotEqual(int(pd.Series([id, None])[0]), id)
        with self.assertRaisesRegex(TypeError, "float64, which may not hold them exactly"):
            PandasIds(pd.Series([id, None]), layout)

