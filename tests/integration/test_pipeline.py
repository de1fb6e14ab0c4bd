"""The whole pipeline on a real cluster, with real ZooKeeper and brokers, and Kontrast's commands as processes."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import BeginningRow, PartitionRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, OutputRow
from controller.contract.records import decode_record
from controller.restore.stored_context import new_context
from controller.step import step
from tests.integration.conftest import DEADLINE_SECONDS, Pipeline, create, lines_of
from tests.waiting import eventually

BROKERS = (1, 2, 3)

pytestmark = pytest.mark.xdist_group("pipelines")


@pytest.fixture
def cluster(start_kafka_cluster):
    return start_kafka_cluster(broker_ids=BROKERS, properties={"zookeeper.session.timeout.ms": "3000"})


def test_the_offline_partitions_of_a_killed_broker_are_named_by_the_exporter(cluster, pipeline):
    create(cluster, alone={0: [1], 1: [2], 2: [3]}, shared={0: [3, 1], 1: [1, 2]})
    online = (("kafka_cluster", "c"), ("state", "online"))
    pipeline.until("five partitions online", lambda: pipeline.samples("kontrast_partitions").get(online) == 5)

    controller = dict(next(iter(pipeline.samples("kontrast_controller_info"))))["broker"]
    victim = next(broker for broker in BROKERS if str(broker) != controller)
    cluster.brokers[victim].kill()
    named = {
        (
            ("kafka_cluster", "c"),
            ("partition", str(victim - 1)),
            ("reason", "no_live_in_sync_replica"),
            ("topic", "alone"),
        )
    }
    offline_since = "kontrast_partition_offline_since_timestamp_seconds"
    pipeline.until("the partition is named", lambda: set(pipeline.samples(offline_since)) == named)
    pipeline.until("it is counted", lambda: pipeline.samples("kontrast_partitions_offline") == counted(1))

    cluster.brokers[victim].start()
    pipeline.until("all clear", lambda: pipeline.samples(offline_since) == {})
    pipeline.until("none is counted", lambda: pipeline.samples("kontrast_partitions_offline") == counted(0))

    def forget() -> Result:
        changes, derived = (f"journal:{pipeline.directory / name}" for name in ("changes", "derived"))
        return CliRunner().invoke(main, ["forget", "c", "--from", changes, "--to", derived, "--yes"])

    watched = forget()
    assert (watched.exit_code, "is being written by a `kontrast watch` that forwards c" in watched.stderr) == (3, True)
    pipeline.watch.stop()
    done = forget()
    assert done.exit_code == 0, done.stderr
    eventually(lambda: pipeline.samples("kontrast_ready") == {})
    assert not any(row.state == "open" for row in newest_alerts(pipeline))
    # Neither a reader of the stream nor a second call finds a trace of the cluster.
    assert "c was forgotten already" in forget().stderr
    pipeline.watch.launch()
    pipeline.until("it is watched again", lambda: pipeline.samples("kontrast_partitions").get(online) == 5)


@pytest.mark.nightly
def test_a_job_killed_and_restarted_in_the_middle_loses_and_doubles_nothing(cluster, pipeline):
    create(cluster, first={0: [1, 2], 1: [2, 3]})
    pipeline.until("the first topic is published", lambda: topics_of(pipeline) == {"first"})
    pipeline.stream.kill()
    create(cluster, second={0: [3, 1], 1: [1, 2], 2: [2, 3]})
    pipeline.stream.launch()
    create(cluster, third={0: [1, 3]})
    pipeline.until("all topics are published", lambda: topics_of(pipeline) == {"first", "second", "third"})
    cluster.brokers[2].stop()
    pipeline.until("the stopped broker is noticed", lambda: leaders_of(pipeline) <= {1, 3})

    pipeline.watch.stop()
    changes = lines_of(pipeline.directory / "changes")
    expected = expected_rows(changes)
    total = sum(map(len, expected.values()))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while sum(len(pipeline.rows(output)) for output in OUTPUTS) < total and time.monotonic() < deadline:
        time.sleep(0.2)
    for output in OUTPUTS:
        assert pipeline.rows(output) == expected[output], f"{output} differs from an undisturbed run"


def newest_alerts(pipeline: Pipeline) -> list[AlertRow]:
    return list({row.id: row for row in pipeline.rows("alerts") if isinstance(row, AlertRow)}.values())


def counted(number: int) -> dict[tuple[tuple[str, str], ...], float]:
    return {(("kafka_cluster", "c"),): float(number)}


def topics_of(pipeline: Pipeline) -> set[str]:
    rows = pipeline.rows("metadata")
    return {row.topic for row in rows if isinstance(row, PartitionRow) and row.leader >= 0}


def leaders_of(pipeline: Pipeline) -> set[int]:
    newest = {row.subject_key(): row for row in pipeline.rows("metadata") if isinstance(row, PartitionRow)}
    return set(Counter(row.leader for row in newest.values()))


def expected_rows(changes: list[bytes]) -> dict[str, list[OutputRow]]:
    """Return the rows of one undisturbed pass over the records."""
    context = new_context("c")
    rows: dict[str, list[OutputRow]] = {output: [] for output in OUTPUTS}
    first = decode_record(changes[0])
    stamp = {"ordinal": -1, "zxid": first.zxid, "time_ms": first.observed_ms}
    for output in STANDING_OUTPUTS:
        rows[output].append(BeginningRow(cluster="c", generation=first.generation, seq=first.seq, **stamp))
    for line in changes:
        outcome = step(context, decode_record(line))
        context = outcome.context
        for row in outcome.effects:
            rows[row.output].append(row)
    return rows
