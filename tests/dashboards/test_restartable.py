"""The interface's answer to the question whether a broker may be restarted now."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from dashboards.alerting.config import AlertmanagerConfig
from dashboards.exporter.config import ServeConfig
from questions.whatif.may_restart import Obstacle, Restartable, Verdict
from tests.rows import Rows
from transport.address import JournalAddress

PATH = "/api/v1/clusters/north/restartable"


@pytest.fixture
def exporter(tmp_path, start_exporter):
    with start_exporter(ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0")) as running:
        yield running


def cluster(rows: Rows, age_ms: int = 0):
    brokers = [rows.broker(at) for at in (1, 2, 3)]
    led = rows.partition("orders", 0, leader=1, isr=(1, 2), replicas=(1, 2))
    alone = rows.partition("scratch", 0, leader=3, isr=(3,), replicas=(3,))
    partitions = [msgspec.structs.replace(row, controller_epoch=7) for row in (led, alone)]
    counts = {"leaders_by_broker": {1: 1, 3: 1}, "replicas_by_broker": {1: 1, 2: 1, 3: 1}, "active_brokers": 3}
    now_ms = time.time_ns() // 1_000_000 - age_ms
    gauges = rows.gauges(topics=2, partitions=2, time_ms=now_ms, **counts)
    status = msgspec.structs.replace(gauges.status, acts=True, term_epoch=7, term_broker=1)
    return [*brokers, rows.controller(1), *partitions, msgspec.structs.replace(gauges, status=status)]


def asked(exporter, query: str) -> Restartable:
    return msgspec.json.decode(exporter.page(f"{PATH}?{query}"), type=Restartable)


def test_a_broker_that_others_replace_may_be_restarted(exporter, rows):
    exporter.write(*cluster(rows))
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    assert asked(exporter, "broker=2").verdict is Verdict.YES
    answer = asked(exporter, "broker=3")
    assert (answer.verdict, [reason.obstacle for reason in answer.reasons]) == (Verdict.NO, [Obstacle.OFFLINE])
    assert asked(exporter, "broker=3&accept_topic=orders&accept_topic=scr*").verdict is Verdict.YES


def test_rows_of_a_while_ago_give_no_answer(start_exporter, tmp_path, rows):
    stale = AlertmanagerConfig(stale_after_seconds=60)
    with start_exporter(
        ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", alertmanager=stale)
    ) as exporter:
        exporter.write(*cluster(rows, age_ms=120_000))
        exporter.metrics_with(r"^kontrast_heartbeat_timestamp_seconds\{.*\} ")
        answer = asked(exporter, "broker=2")
    assert (answer.verdict, answer.reasons) == (Verdict.UNKNOWN, ())
    assert answer.doubts[0].startswith("the state is not known, last known 2 min")


@pytest.mark.parametrize(
    ("query", "status", "error"), [("", 400, "broker is not a number"), ("?broker=9", 404, "no broker 9")]
)
def test_a_question_without_a_broker_of_the_cluster_is_refused(exporter, rows, query, status, error):
    exporter.write(*cluster(rows))
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    found, _, body = exporter.get(PATH + query)
    assert (found, error in json.loads(body)["error"]) == (status, True)
