"""The exporter shows what alerts and the dashboard use."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import yaml

FOLDER = Path("../monitoring")
NAME = re.compile(r"\bpg_snowflake_[a-z_]+")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def scraped():
    """The samples of pg_snowflake that the exporter shows: name with labels, value."""
    port = free_port()
    source = f"host=127.0.0.1 port={os.environ['PGPORT']} user=monitor dbname=postgres sslmode=disable"
    exporter = subprocess.Popen(
        ["prometheus-postgres-exporter", f"--web.listen-address=127.0.0.1:{port}", f"--extend.query-path={FOLDER}/queries.yaml"],
        env={**os.environ, "DATA_SOURCE_NAME": source},
    )
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                    lines = answer.read().decode().splitlines()
                samples = dict(line.rsplit(" ", 1) for line in lines if line.startswith("pg_snowflake"))
                if samples:
                    return samples
            except urllib.error.URLError:
                pass
            time.sleep(0.1)
        raise AssertionError("the exporter shows nothing of pg_snowflake")
    finally:
        exporter.kill()
        exporter.wait()


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with psycopg.connect(autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS monitor")
            connection.execute("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
            connection.execute("SELECT snowflake_next()")
            status = "SELECT worker_id, reservations, errors FROM snowflake_status()"
            cls.worker, *cls.before = connection.execute(status).fetchone()
            cls.samples = scraped()
            _, *cls.after = connection.execute(status).fetchone()
        cls.names = {sample.split("{")[0] for sample in cls.samples}

    def test_all_queries_have_values(self):
        for query, content in yaml.safe_load((FOLDER / "queries.yaml").read_text()).items():
            for metric in content["metrics"]:
                for column, about in metric.items():
                    if about["usage"] != "LABEL":
                        self.assertIn(f"{query}_{column}", self.names)

    def test_values_are_those_of_the_server(self):
        value = {sample.split("{")[0]: float(value) for sample, value in self.samples.items()}
        self.assertEqual(value["pg_snowflake_worker_writes"], 1)
        self.assertEqual(value["pg_snowflake_has_registry"], 0)
        self.assertGreater(value["pg_snowflake_reservations_total"], 0)
        counts = [value["pg_snowflake_reservations_total"], value["pg_snowflake_errors_total"]]
        for before, count, after in zip(self.before, counts, self.after):
            self.assertTrue(before <= count <= after, (before, count, after))
        self.assertGreater(value["pg_snowflake_layout_left_seconds"], 10 * 365 * 86400)
        worker = next(sample for sample in self.samples if sample.startswith("pg_snowflake_worker_writes"))
        self.assertIn(f'worker="{self.worker}"', worker)

    def test_alerts_are_valid_and_use_what_is_shown(self):
        subprocess.run(["promtool", "check", "rules", "--lint-fatal", FOLDER / "alerts.yaml"], check=True)
        used = set(NAME.findall((FOLDER / "alerts.yaml").read_text()))
        self.assertTrue(used and used <= self.names, used - self.names)

    def test_the_dashboard_uses_what_is_shown(self):
        dashboard = json.loads((FOLDER / "dashboard.json").read_text())
        panels = dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        places = set()
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            self.assertFalse(cells & places, panel["title"])
            places |= cells
            used = set(NAME.findall(" ".join(target["expr"] for target in panel["targets"])))
            self.assertTrue(used and used <= self.names, used - self.names)

    def test_the_alert_of_one_worker_id_in_two_servers(self):
        rule = next(
            rule["expr"]
            for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
            for rule in group["rules"]
            if rule["alert"] == "SnowflakeSameWorker"
        )
        series = 'pg_snowflake_worker_writes{instance="%s", layout="default", datacenter="", worker="%s"}'
        for second, writes, is_expected in [("7", "1", True), ("8", "1", False), ("7", "0", False)]:
            # Prometheus leaves out labels that are empty.
            samples = [{"value": 2, "labels": '{layout="default", worker="7"}'}] if is_expected else []
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                yaml.safe_dump(
                    {
                        "rule_files": [str((FOLDER / "alerts.yaml").resolve())],
                        "tests": [
                            {
                                "interval": "1m",
                                "input_series": [
                                    {"series": series % ("a", "7"), "values": "1 1 1"},
                                    {"series": series % ("b", second), "values": " ".join([writes] * 3)},
                                ],
                                "promql_expr_test": [{"expr": rule, "eval_time": "2m", "exp_samples": samples}],
                            }
                        ],
                    },
                    file,
                )
                file.flush()
                subprocess.run(["promtool", "test", "rules", file.name], check=True)

