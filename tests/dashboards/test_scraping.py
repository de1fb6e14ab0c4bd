"""A real Prometheus scrapes every page over TLS with a login, whatever topics are called, and finds the brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboards.exporter.config import ServeConfig
from tests.dashboards.prometheus_server import running_prometheus
from tests.dashboards.test_partitions_page import HOSTILE
from tests.waiting import eventually
from transport.address import JournalAddress

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - {{job_name: metrics, metrics_path: /metrics, {access}, {target}}}
  - {{job_name: partitions, metrics_path: /metrics/partitions, {access}, {target}}}
  - {{job_name: jmx, metrics_path: /metrics/jmx, honor_labels: true, {access}, {target}}}
  - job_name: brokers
    http_sd_configs: [{{url: "{address}/sd/brokers", refresh_interval: 1s, {client}}}]
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
        partitions_page=True,
        jmx_page=True,
        jmx_port=7071,
    )
    (tmp_path / "outputs").mkdir()
    with start_exporter(config) as running:
        client = (
            f'basic_auth: {{username: prometheus, password_file: "{password}"}}, tls_config: {{ca_file: "{shown}"}}'
        )
        target = f'static_configs: [{{targets: ["{running.address.removeprefix("https://")}"]}}]'
        text = CONFIG.format(access=f"scheme: https, {client}", client=client, target=target, address=running.address)
        (tmp_path / "prometheus").mkdir()
        with running_prometheus(tmp_path / "prometheus", text, "--enable-feature=exemplar-storage") as prometheus:
            yield running, prometheus


def test_every_page_is_scraped_whole_and_the_brokers_are_targets(scraped, rows):
    running, prometheus = scraped
    running.write(
        *(rows.offline(name) for name in HOSTILE),
        *(rows.alert(name, subject=f"partition {name}-0") for name in HOSTILE),
        rows.broker(1, endpoints=("PLAINTEXT://127.0.0.1:9",)),
        rows.broker(2, endpoints=("PLAINTEXT://127.0.0.2:9",)),
        rows.gauges(offline_partitions=len(HOSTILE)),
    )
    for expression, expected in (
        ("kontrast_partition_offline_since_timestamp_seconds", len(HOSTILE)),
        ('kontrast_alert_since_timestamp_seconds{alert!="ReplicaStale"}', len(HOSTILE)),
        ("kontrast_partition_leader", len(HOSTILE)),
        ("kafka_server_replicamanager_leadercount", 2),
    ):
        series = eventually(lambda asking=expression: prometheus.query(asking), bool)
        assert len(series) == expected, expression
    topics = {series.labels["topic"] for series in prometheus.query("kontrast_partition_state == 2")}
    assert topics == set(HOSTILE)
    up = {series.labels["job"]: series.value for series in prometheus.query('up{job!="brokers"}')}
    assert up == {"metrics": 1, "partitions": 1, "jmx": 1}
    found = eventually(lambda: prometheus.query('up{job="brokers"}'), lambda targets: len(targets) == 2)
    assert {target.labels["instance"] for target in found} == {"127.0.0.1:7071", "127.0.0.2:7071"}


def test_what_existing_boards_and_rules_ask_of_jmx_has_its_answer(scraped, rows):
    running, prometheus = scraped
    names = {"kafka_cluster": "north"}
    running.write(
        rows.broker(1, endpoints=("PLAINTEXT://b1:9092",)),
        rows.broker(2, endpoints=("PLAINTEXT://b2:9092",)),
        rows.gauges(offline_partitions=3, under_replicated_by_broker={2: 5}),
    )
    controller = "kafka_controller_kafkacontroller"
    for expression, labels, value in (
        (f"sum by (kafka_cluster) ({controller}_activecontrollercount)", names, 1),
        (f"sum by (kafka_cluster) ({controller}_offlinepartitionscount) > 0", names, 3),
        (f'count by (kafka_cluster) ({controller}_activecontrollercount{{instance=~".+"}})', names, 2),
        (f"{controller}_activecontrollercount == 1", {**names, "broker": "1", "instance": "b1:7071"}, 1),
        (
            'kafka_server_replicamanager_underreplicatedpartitions{instance=~"b2.*"} > 0',
            {**names, "broker": "2", "instance": "b2:7071"},
            5,
        ),
        ("sum by (kafka_cluster) (kafka_server_replicamanager_leadercount)", names, 2),
    ):
        (series,) = eventually(lambda asking=expression: prometheus.query(asking), bool)
        told = {name: text for name, text in series.labels.items() if name not in ("__name__", "job")}
        assert (told, series.value) == (labels, value), expression
    assert prometheus.query(f"sum by (kafka_cluster) ({controller}_activecontrollercount) != 1") == []


def test_a_late_change_s_zxid_is_found_from_its_lag(scraped, rows):
    running, prometheus = scraped
    eventually(lambda: prometheus.query('up{job="metrics"} == 1'), bool)
    asked = {"query": "kontrast_end_to_end_lag_seconds_bucket", "start": "0", "end": "9999999999"}

    def write_and_look() -> set:
        running.write(rows.gauges(zxid=(3 << 32) + 9))
        found = prometheus.ask("query_exemplars", **asked) or []
        return {exemplar["labels"]["zxid"] for series in found for exemplar in series["exemplars"]}

    assert eventually(write_and_look, bool) == {"0x300000009"}
