"""A forwarder on an ensemble whose servers die. It publishes every change once, the gap, and which servers are lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import decode_status
from controller.contract.records import RecordKind
from ingest.zookeeper.four_letter_words import read_mntr
from tests.clients import zookeeper_client
from tests.ingest.conftest import TREE, Watching, changes, make_cluster
from tests.ingest.descriptions import INTERVAL_SECONDS, newest, of_address, open_alerts, slowly
from tests.ingest.ensemble import Ensemble
from tests.waiting import eventually

pytestmark = pytest.mark.xdist_group("ensemble")  # three servers, started once


@pytest.fixture(scope="module")
def ensemble(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Run three servers for all tests. The third allows `srvr` alone, as a new installation does."""
    usual = {"forceSync": "yes"}
    properties = {1: usual, 2: usual, 3: {"4lw.commands.whitelist": "srvr"}}
    with Ensemble(tmp_path_factory.mktemp("ensemble"), properties=properties) as servers:
        yield servers


def test_the_death_of_the_leader_costs_a_pause_and_no_change(
    ensemble: Ensemble, watch: Callable[..., Watching]
) -> None:
    # A long session, so that Kafka's ephemeral znodes live through the election.
    with zookeeper_client(ensemble.connect_string, 30) as kafka:
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


def heartbeats_between_rounds(watching: Watching) -> int:
    """Return the number of heartbeats from one of the last two descriptions to the other."""
    described = [
        decode_status(record.data).ensemble is not None
        for record in watching.records()
        if record.kind is RecordKind.HEARTBEAT
    ]
    last, before_it = [at for at, has_one in enumerate(described) if has_one][:-3:-1]
    return last - before_it


def alerts_of(watching: Watching) -> dict[str, AlertRow]:
    """Return the open alerts as if everything had taken 30 times as long."""
    return open_alerts(slowly(watching.records(), 30))


def test_a_forwarder_describes_its_ensemble_and_its_losses(ensemble: Ensemble, watch: Callable[..., Watching]) -> None:
    first, second, third = ensemble.servers.values()
    for server in ensemble.servers.values():
        if not server.running:
            server.start()
    watching = watch(zookeeper=ensemble.connect_string, ensemble_interval_seconds=INTERVAL_SECONDS)
    whole = newest(
        watching, lambda one: all(server.mode for server in one.servers) and of_address(one, first).fsync_ms >= 0
    )
    assert sorted(server.mode for server in whole.servers) == ["follower", "follower", "leader"]
    assert (whole.voters, whole.left_sessions, whole.large_znodes) == (3, (), ())
    assert [server.refused for server in whole.servers] == [(), (), ("mntr", "dump")]
    mntr = read_mntr(first.ask("mntr"))
    assert of_address(whole, first).znodes == int(mntr["zk_znode_count"])
    assert of_address(whole, first).data_bytes == int(mntr["zk_approximate_data_size"])
    assert of_address(whole, third).data_bytes == -1

    # A server that hangs delays the questions by two seconds, but not the heartbeats.
    hung = first if ensemble.leader() is not first else second
    hung.pause()
    waiting = newest(watching, lambda one: of_address(one, hung).silent_ms >= 0)
    assert of_address(waiting, hung).trouble == "does not answer within 2 s"
    # If the session was on the server that hangs, heartbeats pause until the session is on another server.
    eventually(lambda: heartbeats_between_rounds(watching), lambda heartbeats: heartbeats >= 4)
    hung.resume()

    newest(watching, lambda one: all(server.mode for server in one.servers))
    lost = first if ensemble.leader() is not first else second
    lost.kill()
    newest(watching, lambda one: of_address(one, lost).silent_ms >= 3_000)
    # An alert waits for more than one description, and on a loaded machine the first one may come late.
    alerts = eventually(lambda: alerts_of(watching), lambda found: "ZooKeeperQuorumAtRisk" in found)
    assert alerts["ZooKeeperQuorumAtRisk"].cause == (
        f"{lost.connect_string} does not answer (Connection refused): 2 of 3 ZooKeeper servers are in sync, "
        "and one more loss stops ZooKeeper"
    )
    before = watching.count(RecordKind.HEARTBEAT, '"suspended"')
    third.kill()
    (left,) = (server for server in (first, second) if server is not lost)
    newest(watching, lambda one: of_address(one, left).trouble == "has no quorum")  # not at once
    eventually(lambda: watching.count(RecordKind.HEARTBEAT, '"suspended"') > before + 5)
    of_both = {"ZooKeeperNoQuorum", "ReplicaDisconnected"}
    alerts = eventually(lambda: alerts_of(watching), lambda found: of_both <= found.keys())
    evidence = " ".join(alerts["ZooKeeperNoQuorum"].evidence)
    assert f"{left.connect_string} has no quorum, and served last at " in evidence
    assert {alerts[name].group for name in ("ZooKeeperNoQuorum", "ReplicaDisconnected")} == {"zookeeper"}
