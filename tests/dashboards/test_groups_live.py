"""Groups that Kontrast names in an outage, compared with the groups of real clients that stop, both ways."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from dashboards.exporter.config import ServeConfig
from dashboards.probe.config import ProbeConfig
from questions.clients.teams import read_teams
from tests.dashboards.live_replica import LiveReplica
from tests.remedies.real_cluster import RealCluster
from tests.waiting import eventually
from transport.address import JournalAddress

TOPICS = {"spread": {0: [1], 1: [2], 2: [3]}, "safe": {0: [1, 3], 1: [3, 1]}, "second": {0: [2], 1: [2]}}
SMALL = {
    "offsets.topic.num.partitions": "9",
    "transaction.state.log.num.partitions": "9",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "delete.topic.enable": "true",  # the default from 1.0 on
}
DELETED = "gone"
GROUPS: dict[str, dict[str, Any]] = {
    f"{topic}.{number}": {"topics": [topic]} for topic in TOPICS for number in range(3)
}
GROUPS |= {
    "alone.1": {"topics": ["second"], "numbers": [1]},
    "pattern.1": {"topics": ["safe", "second"], "pattern": "^s(afe|econd)$"},
    "grün 😀.1": {"topics": ["spread"]},
    "of-deleted.1": {"topics": ["safe"], "deleted": [DELETED]},
    "static.1": {"topics": ["second"], "member": "one"},
}
IDS = tuple(f"tx{number}" for number in range(5))
STATIC_MEMBERS_SINCE = (2, 3)
WATCHED_SECONDS = 12
TEAMS = read_teams({"second*": {"team": "second", "rank": 1}})


class Clients:
    """The clients' process, and the time of each client's last action."""

    def __init__(self, cluster: RealCluster, directory: Path, ids: tuple[str, ...]) -> None:
        self.last: dict[tuple[str, str], float] = {}
        knows_static = cluster.release_pair >= STATIC_MEMBERS_SINCE
        groups = {
            name: {key: said for key, said in way.items() if key != "member" or knows_static}
            for name, way in GROUPS.items()
        }
        spec = {
            "bootstrap": [broker.bootstrap_server for broker in cluster.brokers.values()],
            "topics": {topic: len(assignment) for topic, assignment in TOPICS.items()},
            "groups": groups,
            "transactional_ids": ids,
            "transactions_to": "safe",
        }
        file = directory / "clients.json"
        file.write_text(json.dumps(spec))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.dashboards.group_clients", file],
            stdout=subprocess.PIPE,
            stderr=(directory / "clients.log").open("w"),
            text=True,
        )
        threading.Thread(target=self._note, daemon=True).start()

    def _note(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            who, what = json.loads(line)
            self.last[who, what] = time.monotonic()

    def did(self, since: float) -> dict[str, set[str]]:
        """Return what each client did since this time."""
        found: dict[str, set[str]] = defaultdict(set)
        for (who, what), at in list(self.last.items()):
            if at >= since:
                found[who].add(what)
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def everything(ids: tuple[str, ...]) -> dict[str, set[str]]:
    """Return what each client does while all is well."""
    reads = {
        group: {f"read:{topic}-{number}" for topic in way["topics"] for number in way.get("numbers", TOPICS[topic])}
        for group, way in GROUPS.items()
    }
    return {group: read | {"commit"} for group, read in reads.items()} | {name: {"commit"} for name in ids}


@contextmanager
def running(cluster: RealCluster, directory: Path, ids: tuple[str, ...]) -> Iterator[Clients]:
    clients = Clients(cluster, directory, ids)
    try:
        eventually(lambda: clients.did(0), lambda did: did == everything(ids))
        yield clients
    finally:
        clients.kill()


def impacts(exporter) -> list[dict]:
    overview = json.loads(exporter.page("/api/v1/clusters/north"))
    return [card["impact"] for card in overview["incidents"] if card["impact"]]


def named(found: list[dict]) -> dict[str, set[str]]:
    """Return the effects on each group and transactional id that Kontrast names."""
    effects: dict[str, set[str]] = defaultdict(set)
    for hit in (hit for each in found for hit in (*each["groups"], *each["transactional_ids"])):
        effects[hit["name"]] |= set(hit["effects"])
    return effects


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["0.11.0.3", "1.1.1", "2.4.1", "2.8.2", "3.9.2"])
def test_each_named_group_stops_and_each_group_that_stops_is_named(release, tmp_path, start_exporter):
    ids = IDS if release.startswith("3.") else ()  # earlier brokers do not list transactional ids
    cluster = RealCluster(tmp_path / "cluster", release)
    for broker in cluster.brokers.values():
        broker.settings |= SMALL
    probe = ProbeConfig(
        groups=True, groups_interval_seconds=1.0, group_requests_per_second=100.0, groups_directory=tmp_path / "groups"
    )
    with cluster, LiveReplica("north", cluster.zookeeper.connect_string, tmp_path) as replica:
        for topic, assignment in TOPICS.items():
            cluster.create(topic, assignment)
        cluster.create(DELETED, {0: [2]})
        cluster.client.create(f"/admin/delete_topics/{DELETED}")
        eventually(lambda: not cluster.client.exists(f"/brokers/topics/{DELETED}"))
        config = ServeConfig(source=JournalAddress(replica.outputs), listen="127.0.0.1:0", probe=probe, teams=TEAMS)
        with start_exporter(config) as exporter:
            for broker in (2, 3):
                with running(cluster, tmp_path, ids) as clients:  # new clients, because some hang after an outage
                    lose_and_compare(cluster, broker, clients, exporter, tmp_path, ids)
            assert ("brokers before 3.0 do not list transactional ids" in known_of(exporter)["gaps"]) == (not ids)


def known_of(exporter) -> dict:
    status, _, body = exporter.get("/api/v1/clusters/north/groups")
    return json.loads(body) if status == 200 else {"groups": {}, "transactional_ids": {}, "gaps": []}


def knows_all(known: dict, ids: tuple[str, ...]) -> bool:
    reads = {
        group: {f"read:{topic}-{number}" for topic, numbers in each.get("read_ms", {}).items() for number in numbers}
        for group, each in known["groups"].items()
    }
    expected = {group: does - {"commit"} for group, does in everything(()).items()}
    return reads == expected and set(known["transactional_ids"]) == set(ids)


def lose_and_compare(  # noqa: PLR0913 (one call)
    cluster: RealCluster, lost: int, clients: Clients, exporter, directory: Path, ids: tuple[str, ...]
) -> None:
    """Kill a broker, compare the named groups with those that stop, and let it return."""
    eventually(lambda: known_of(exporter), lambda known: knows_all(known, ids))
    predicted = what_if(cluster, lost, directory)
    cluster.brokers[lost].kill()
    # Clients need a while to find their new leaders, longer on a loaded machine.
    found, seen = eventually(
        lambda: (named(impacts(exporter)), stopped_lately(clients, ids)),
        lambda both: named_to_stop(both[0]) == both[1] != {},
        pause_seconds=1,
    )
    assert named(predicted) == found
    assert 0 < len(seen) < len(GROUPS) + len(ids)
    cluster.brokers[lost].start()
    eventually(lambda: impacts(exporter), lambda left: not named(left))


def named_to_stop(found: dict[str, set[str]]) -> dict[str, bool]:
    """Return the named groups and transactional ids, and whether each commits nothing."""
    no_commits = {"can neither join nor commit", "can neither begin nor commit transactions"}
    return {who: bool(effects & no_commits) for who, effects in found.items()}


def stopped_lately(clients: Clients, ids: tuple[str, ...]) -> dict[str, bool]:
    """Return the clients that stopped in part or as a whole lately, and whether each commits nothing."""
    did = clients.did(time.monotonic() - WATCHED_SECONDS)
    return {who: "commit" not in did[who] for who, does in everything(ids).items() if did[who] != does}


def what_if(cluster: RealCluster, lost: int, directory: Path) -> list[dict]:
    """Return the predicted impact of the loss, from the file that serve keeps."""
    file = directory / "kontrast.toml"
    file.write_text(
        f'[clusters.north]\nzookeeper = "{cluster.zookeeper.connect_string}"\n'
        f'[serve.probe]\ngroups = true\ngroups_directory = "{directory / "groups"}"\n'
    )
    asked = ["whatif", "--config", str(file), "--lose-broker", str(lost), "--json"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 1, done.output
    impact: list[dict] = json.loads(done.stdout)["impacts"]
    return impact
