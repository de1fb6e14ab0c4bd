"""A real Prometheus scrapes a real exporter, and every panel and alert finds its data."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BOARD = json.loads((ROOT / "dashboards" / "grafana" / "kontrast-overview.json").read_text(encoding="utf-8"))
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: kontrast
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, **parameters: str) -> list | dict | None:
        """The answer's data; None while there is none."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.address}/api/v1/{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != 503:  # it is starting
                raise
        except OSError:
            pass
        return None

    def query(self, expression: str) -> list:
        answer = self.ask("query", query=expression)
        return [] if answer is None else answer["result"]


@pytest.fixture
def prometheus(exporter, tmp_path) -> Iterator[Prometheus]:
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("prometheus is not installed: apt-get install prometheus")
    home = tmp_path / "prometheus"
    home.mkdir()
    rules = ROOT / "deploy" / "prometheus" / "kontrast-rules.yml"
    config = CONFIG.format(rules=rules, target=exporter.address.removeprefix("http://"))
    (home / "prometheus.yml").write_text(config)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [binary, f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def test_every_panel_finds_data_and_the_alert_of_an_offline_partition_is_pending(
    exporter, rows, prometheus, eventually
):
    exporter.write(*rows.of_everything())
    eventually(lambda: prometheus.query("count_over_time(kontrast_topics[1m]) >= 4"), bool)
    # What happens while it is watched gives the rates and the lag something to show.
    exporter.write(rows.gauges(controller_epoch=8, controller_changes=3, offline_partitions=1))
    panels = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    asked = [(annotation["name"], annotation["expr"]) for annotation in BOARD["annotations"]["list"]]
    asked += [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    for title, expression in asked:
        concrete = expression.replace("$__rate_interval", "1m").replace("$kafka_cluster", ".+")
        assert eventually(lambda asking=concrete: prometheus.query(asking), bool), title
    (labels,) = (series["metric"] for series in prometheus.query("kontrast_partition_offline_since_timestamp_seconds"))
    assert (labels["topic"], labels["partition"], labels["reason"]) == ("orders", "1", "no_live_in_sync_replica")
    alerts = eventually(lambda: (prometheus.ask("alerts") or {}).get("alerts"), bool)
    (alert,) = (alert for alert in alerts if alert["labels"]["alertname"] == "KontrastPartitionOffline")
    assert "orders-1" in alert["annotations"]["summary"]
