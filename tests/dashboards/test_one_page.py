"""A dead process of Kontrast, which makes many clusters stale and causes one page with all their names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.contract.outputs import encode_row
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.exporter.config import ServeConfig
from tests.dashboards.alertmanager_server import AlertmanagerServer
from tests.dashboards.live_incidents import DEPLOY, SPEED, Pager, shipped_config
from tests.dashboards.prometheus_server import running_prometheus
from tests.waiting import eventually, repeating
from transport.address import JournalAddress
from transport.journal import JournalWriter

CLUSTERS = tuple(f"cluster-{number}" for number in range(20))
STALE = "KontrastReplicaStale"
_BEAT_SECONDS = 0.5
_PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [self.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
scrape_configs: [{{job_name: kontrast, static_configs: [{{targets: ["{exporter}"]}}]}}]
"""


class Messages(Pager):
    """A webhook that keeps whole messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def _take(self, receiver: str, message: dict[str, Any]) -> None:
        self.messages.append((receiver, message))

    def pages(self) -> list[list[str]]:
        """Return the clusters that each page about stale clusters lists."""
        return [
            sorted(alert["labels"]["kafka_cluster"] for alert in message["alerts"] if alert["status"] == "firing")
            for receiver, message in self.messages
            if receiver == "page" and message["commonLabels"]["alertname"] == STALE
        ]

    def clusters(self) -> set[str]:
        """Return all clusters with a page."""
        return {cluster for page in self.pages() for cluster in page}


@pytest.fixture
def pager() -> Iterator[Messages]:
    pager = Messages()
    yield pager
    pager.close()


@pytest.fixture
def alertmanager(tmp_path: Path, pager: Messages) -> Iterator[AlertmanagerServer]:
    server = AlertmanagerServer(tmp_path / "alertmanager", config=shipped_config(pager, SPEED))
    yield server.start()
    server.kill()


@contextmanager
def watcher(outputs: Path, rows) -> Iterator[Callable[[], None]]:
    """Send the heartbeats of all clusters by one process. Yield a function that kills it."""
    with JournalWriter(outputs / "gauges", batches=True) as journal:

        def beat() -> None:
            beats = [rows.gauges(cluster=name, time_ms=int(time.time() * 1000)) for name in CLUSTERS]
            journal.append_batch(journal.last_batch_id + 1, [encode_row(each) for each in beats])

        with repeating(beat, _BEAT_SECONDS) as die:
            yield die


def test_a_dead_watcher_pages_once_directly(alertmanager, pager, rows, start_exporter, tmp_path):
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    settings = AlertmanagerConfig(urls=(alertmanager.url,), stale_after_seconds=5)
    config = ServeConfig(source=JournalAddress(outputs), listen="127.0.0.1:0", alertmanager=settings)
    with watcher(outputs, rows) as die, start_exporter(config) as exporter:
        eventually(lambda: exporter.metrics().count("\nkontrast_ready{") == len(CLUSTERS))
        die()
        eventually(pager.clusters, lambda clusters: clusters == set(CLUSTERS))
    assert pager.pages() == [sorted(CLUSTERS)]


def test_a_dead_watcher_pages_once_by_the_rules(alertmanager, pager, rows, start_exporter, tmp_path):
    outputs, home = tmp_path / "outputs", tmp_path / "prometheus"
    outputs.mkdir()
    home.mkdir()
    rules = (DEPLOY / "prometheus" / "kontrast-self.yml").read_text(encoding="utf-8")
    (home / "self.yml").write_text(rules.replace("_seconds > 60", "_seconds > 5").replace("for: 1m", "for: 1s"))
    config = ServeConfig(source=JournalAddress(outputs), listen="127.0.0.1:0")
    with watcher(outputs, rows) as die, start_exporter(config) as exporter:
        text = _PROMETHEUS.format(
            alertmanager=alertmanager.url.removeprefix("http://"), exporter=exporter.address.removeprefix("http://")
        )
        with running_prometheus(home, text):
            eventually(lambda: exporter.metrics().count("\nkontrast_ready{") == len(CLUSTERS))
            die()
            eventually(pager.clusters, lambda clusters: clusters == set(CLUSTERS))
    assert pager.pages() == [sorted(CLUSTERS)]
