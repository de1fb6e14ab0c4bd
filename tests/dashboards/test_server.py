"""The exporter over real HTTP, reading real journals."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.server import run
from transport.address import JournalAddress, KafkaAddress


def run_to_its_end(config: ServeConfig) -> ServeError:
    with pytest.raises(ServeError) as failure:
        run(config, threading.Event())
    assert "\n" not in str(failure.value)
    return failure.value


def test_bad_rows_are_counted_and_the_rest_is_read(exporter, rows, caplog):
    newer = json.dumps({**json.loads(b'{"kind": "gauges"}'), "v": 99}).encode()
    exporter.write_lines("gauges", b"no json", b"\xff\xfe", b"{}", newer, *[b"x"] * 50)
    exporter.write(*rows.of_everything())
    text = exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert 'kontrast_bad_rows_total{output="gauges"} 54.0' in text
    warnings = [
        record for record in caplog.records if record.levelno == logging.WARNING and "left out" in record.message
    ]
    assert len(warnings) == 10


def test_openmetrics_and_gzip_are_given_to_those_who_ask(exporter, rows):
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    status, headers, body = exporter.get("/metrics", **{"Accept": accept, "Accept-Encoding": "gzip"})
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert headers["content-encoding"] == "gzip"
    assert {family.name for family in parse_openmetrics(gzip.decompress(body).decode())} >= {"kontrast_ready"}
    _, headers, body = exporter.get("/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "content-encoding" not in headers
    assert body.startswith(b"# HELP ")


def test_a_directory_without_outputs_is_named_and_nobody_is_sent_there(exporter, rows):
    exporter.metrics_with(r"^kontrast_source_up\{.*\} 1")
    status, _, body = exporter.get("/readyz")
    assert (status, f"journal:{exporter.directory} holds no outputs. Start `kontrast stream" in body.decode()) == (
        503,
        True,
    )
    exporter.write(rows.gauges())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert exporter.get("/readyz")[0] == 200


def test_the_index_leads_to_the_metrics_and_escapes_the_source(tmp_path, start_exporter):
    config = ServeConfig(source=JournalAddress(tmp_path / "<script>"), listen="127.0.0.1:0")
    with start_exporter(config) as running:
        status, headers, body = running.get("/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b'<a href="/metrics">' in body
    assert b"&lt;script&gt;" in body
    assert b"<script>" not in body


def test_rows_that_were_there_before_do_not_count_as_lag(tmp_path, start_exporter, exporter, rows):
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as late:
        text = late.metrics_with(r"^kontrast_ready\{.*\} 1")
        assert "kontrast_end_to_end_lag_seconds_count{" not in text
        exporter.write(rows.gauges())
        late.metrics_with(r"^kontrast_end_to_end_lag_seconds_count\{kafka_cluster=\"north\"\} 1")


def test_promtool_finds_nothing_to_say_about_the_metrics(exporter, rows, promtool):
    exporter.write(*rows.of_everything(), rows.broker(1, endpoints=("PLAINTEXT://b1:9092",)))
    result = promtool("check", "metrics", input=exporter.metrics_with(r"^kontrast_ready\{.*\} 1"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_journal_of_a_newer_kontrast_is_one_sentence(tmp_path):
    (tmp_path / "gauges").mkdir()
    (tmp_path / "gauges" / "journal.json").write_text('{"format": 99}')
    error = run_to_its_end(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0"))
    assert "newer" in str(error)
    assert str(tmp_path / "gauges") in str(error)


def test_a_source_that_never_answers_is_given_up_with_a_sentence(tmp_path):
    (tmp_path / "metadata").write_text("this is a file")
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", connect_timeout_seconds=0.2)
    error = run_to_its_end(config)
    assert str(tmp_path) in str(error)
    assert "gave up" in str(error)


def test_an_unreachable_kafka_is_given_up_with_its_address():
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        server = f"127.0.0.1:{nobody.getsockname()[1]}"
    config = ServeConfig(source=KafkaAddress(server, "out"), listen="127.0.0.1:0", connect_timeout_seconds=0.2)
    assert server in str(run_to_its_end(config))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen", "9642"),
        ("listen", "127.0.0.1:65536"),
        ("listen", "127.0.0.1:"),
        ("connect_timeout_seconds", 0),
        ("partition_detail_limit", -1),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path, setting, value):
    with pytest.raises(ServeError, match=setting):
        ServeConfig(source=JournalAddress(tmp_path), **{setting: value})
