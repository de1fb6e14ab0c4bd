"""A real Prometheus scrapes the metrics over TLS with a login, whatever topics are called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboards.exporter.config import ServeConfig
from tests.dashboards.prometheus_server import running_prometheus
from tests.dashboards.test_collector import HOSTILE_NAMES
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.printable import label_value

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - {{job_name: metrics, metrics_path: /metrics, scheme: https, {client}, {target}}}
"""


@pytest.fixture
def scraped(tmp_path, certificate, start_exporter) -> Iterator[tuple]:
    shown, key = certificate()
    password = tmp_path / "password"
    password.write_text("open sesame")
    config = ServeConfig(
        source=JournalAddress(tmp_path / "outputs"),
        listen="127.0.0.1:0",
        tls_certificate_file=str(shown),
        tls_key_file=str(key),
        username="prometheus",
        password_file=str(password),
    )
    (tmp_path / "outputs").mkdir()
    with start_exporter(config) as running:
        client = (
            f'basic_auth: {{username: prometheus, password_file: "{password}"}}, tls_config: {{ca_file: "{shown}"}}'
        )
        target = f'static_configs: [{{targets: ["{running.address.removeprefix("https://")}"]}}]'
        text = CONFIG.format(client=client, target=target)
        (tmp_path / "prometheus").mkdir()
        with running_prometheus(tmp_path / "prometheus", text, "--enable-feature=exemplar-storage") as prometheus:
            yield running, prometheus


def test_the_metrics_are_scraped_whole(scraped, rows):
    running, prometheus = scraped
    running.write(
        *(rows.offline(name) for name in HOSTILE_NAMES),
        *(rows.alert(name, subject=f"partition {name}-0") for name in HOSTILE_NAMES),
        rows.gauges(offline_partitions=len(HOSTILE_NAMES)),
    )
    for expression, expected in (
        ("kontrast_partition_offline_since_timestamp_seconds", len(HOSTILE_NAMES)),
        ('kontrast_alert_since_timestamp_seconds{alert!="ReplicaStale"}', len(HOSTILE_NAMES)),
    ):
        series = eventually(lambda asking=expression: prometheus.query(asking), bool)
        assert len(series) == expected, expression
    offline = prometheus.query("kontrast_partition_offline_since_timestamp_seconds")
    assert {series.labels["topic"] for series in offline} == set(map(label_value, HOSTILE_NAMES))
    assert [series.value for series in prometheus.query("up")] == [1]


def test_a_late_change_s_zxid_is_found_from_its_lag(scraped, rows):
    running, prometheus = scraped
    eventually(lambda: prometheus.query('up{job="metrics"} == 1'), bool)
    asked = {"query": "kontrast_end_to_end_lag_seconds_bucket", "start": "0", "end": "9999999999"}

    def write_and_look() -> set:
        running.write(rows.gauges(zxid=(3 << 32) + 9))
        found = prometheus.ask("query_exemplars", **asked) or []
        return {exemplar["labels"]["zxid"] for series in found for exemplar in series["exemplars"]}

    assert eventually(write_and_look, bool) == {"0x300000009"}
