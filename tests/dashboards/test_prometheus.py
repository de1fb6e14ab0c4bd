"""A real Prometheus that scrapes a real exporter. The board of a cluster finds its data, and an alert fires.

`test_board_answers` checks the answers of every query of every board.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.grafana_boards import GRAFANA, Filling, read_board
from tests.dashboards.prometheus_server import running_prometheus
from tests.prometheus import Prometheus
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: kontrast
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.fixture
def prometheus(exporter, tmp_path) -> Iterator[Prometheus]:
    home = tmp_path / "prometheus"
    home.mkdir()
    rules = ROOT / "deploy" / "prometheus" / "kontrast-cluster.yml"
    config = CONFIG.format(rules=rules, target=exporter.address.removeprefix("http://"))
    with running_prometheus(home, config) as running:
        yield running


def alerts_of(prometheus: Prometheus, kind: str) -> list[dict[str, Any]]:
    return [alert for alert in prometheus.ask("alerts")["alerts"] if alert["labels"].get("alert") == kind]


def test_the_board_of_a_cluster_finds_data_and_the_alert_of_a_broker_fires(exporter, rows, prometheus):
    exporter.write(*rows.of_everything())
    eventually(lambda: prometheus.query("count_over_time(kontrast_topics[1m]) >= 4"), bool)
    # Events during the scrapes give the rates, the lag and the annotations their data.
    exporter.write(
        rows.gauges(
            controller_epoch=8, controller_changes=3, offline_partitions=1, agreement=0.9, agreement_of_last_hour=0.9
        )
    )
    for panel, query in read_board(GRAFANA / "kontrast-cluster.json").queries():
        concrete = Filling().concrete(query.expression)
        assert eventually(lambda asking=concrete: prometheus.query(asking), bool), panel.title
    (series,) = prometheus.query("kontrast_partition_offline_since_timestamp_seconds")
    labels = series.labels
    assert (labels["topic"], labels["partition"], labels["reason"]) == ("orders", "1", "no_live_in_sync_replica")
    exporter.write(rows.alert("crash", alert="BrokerCrashed", subject="broker 2", group="broker 2", broker=2))
    (alert,) = eventually(lambda: alerts_of(prometheus, "BrokerCrashed"), bool)
    assert alert["state"] == "firing"
    assert alert["labels"]["alertname"] == "KontrastAlert"
    assert "rank" not in alert["labels"]
    assert alert["annotations"]["summary"] == "north: broker 2: BrokerCrashed"
