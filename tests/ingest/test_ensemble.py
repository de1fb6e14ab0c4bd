"""A forwarder on an ensemble whose leader dies. It publishes every change once, and the gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from controller.contract.records import RecordKind
from tests.ingest.conftest import TREE, Watching, changes, make_cluster
from tests.ingest.ensemble import Ensemble


@pytest.fixture
def ensemble(java: Path, tmp_path: Path) -> Iterator[Ensemble]:
    with Ensemble(tmp_path / "ensemble") as servers:
        yield servers


def test_the_death_of_the_leader_costs_a_pause_and_no_change(
    ensemble: Ensemble, watch: Callable[..., Watching]
) -> None:
    # A long session, so that Kafka's ephemeral znodes live through the election.
    kafka = KazooClient(ensemble.connect_string, timeout=30)
    kafka.start(timeout=60)
    make_cluster(kafka)
    watching = watch(zookeeper=ensemble.connect_string, session_timeout_seconds=30)
    assert [record.path for record in watching.records() if record.kind is RecordKind.NODE] == TREE
    seq = watching.settled()
    killed = ensemble.leader()
    killed.kill()
    written = []
    deadline = time.monotonic() + 60
    while len(written) < 20:
        assert time.monotonic() < deadline, "the ensemble does not serve again"
        path = f"/brokers/topics/during-{len(written)}"
        kafka.retry(kafka.ensure_path, path)
        written.append(path)
    watching.settled()
    assert ensemble.leader() is not killed
    records = [record for record in watching.after(seq) if record.path]
    assert sorted(changes(records)) == sorted(("node", path) for path in written)
    sessions = [record.data for record in watching.after(seq) if record.kind is RecordKind.SESSION]
    assert [("suspended" in (data or ""), '"connected"' in (data or "")) for data in sessions[:2]] == [
        (True, False),
        (False, True),
    ]
    kafka.stop()
    kafka.close()
