"""Servers of other releases: 3.4 and 3.5 without persistent watches and MultiRead, 3.8 whose events lack zxids."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import RecordKind
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from streaming.java.artifacts import ArtifactSet
from tests.conftest import make_chroot
from tests.ingest.conftest import (
    TREE,
    Watching,
    changes,
    make_cluster,
    records_of_a_closing_session,
    replayed_tree,
    server_tree,
)
from tests.lanes import in_gate
from tests.older_releases import ZOOKEEPER_3_4, ZOOKEEPER_3_5, ZOOKEEPER_3_8, older_jars
from tests.relay import Relay
from tests.waiting import eventually

Watch = Callable[..., Watching]


WATCH_MODES = {ZOOKEEPER_3_4: "one-shot", ZOOKEEPER_3_5: "one-shot", ZOOKEEPER_3_8: "persistent"}
IN_GATE = (ZOOKEEPER_3_5,)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            release,
            id=release.name,
            marks=[pytest.mark.xdist_group(release.name), *([] if release in IN_GATE else [pytest.mark.nightly])],
        )
        for release in WATCH_MODES
    ],
)
def release(request: pytest.FixtureRequest) -> ArtifactSet:
    """Return one release after the other."""
    return request.param


@pytest.fixture(scope="module")
def server(java: Path, tmp_path_factory: pytest.TempPathFactory, release: ArtifactSet) -> Iterator[ZooKeeper]:
    """Run a server of that release, for all tests."""
    with ZooKeeper(tmp_path_factory.mktemp(release.name), jars=older_jars(release)) as running:
        yield running


@pytest.fixture
def watched(server: ZooKeeper, own_name: str) -> str:
    """Return a chroot on that server instead of the newest one."""
    return make_chroot(server.connect_string, own_name)


def watches(server: ZooKeeper) -> int:
    """Return the server's number of watches."""
    return int(server.ask("wchs").split("Total watches:")[1])


def make_topic(kafka: KazooClient, topic: str, partitions: int) -> None:
    """Write a topic like brokers and the controller do, in their order."""
    path = f"/brokers/topics/{topic}"
    kafka.create(path, json.dumps({"partitions": {str(number): [1] for number in range(partitions)}}).encode())
    kafka.create(f"{path}/partitions")
    for number in range(partitions):
        kafka.create(f"{path}/partitions/{number}")
    for number in range(partitions):
        kafka.create(f"{path}/partitions/{number}/state", b'{"leader":1}')


def test_everything_is_read_and_the_heartbeats_say_how(kafka: KazooClient, watch: Watch, release: ArtifactSet) -> None:
    make_cluster(kafka)
    watching = watch()
    watching.settled()
    records = watching.records()
    snapshot = [record for record in records if record.path]
    assert changes(snapshot) == [("node", path) for path in TREE]
    heartbeat = next(record for record in records if record.kind is RecordKind.HEARTBEAT)
    told = json.loads(heartbeat.data or "")
    told.pop("flaws", None)  # the cluster has no id, which an older ZooKeeper's first heartbeat already knows
    assert told == {"session": "connected", "watch_mode": WATCH_MODES[release]}


def test_a_watch_is_set_again_by_the_read_that_follows_it(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch()
    for number in range(5):
        seq = watching.settled()
        kafka.set("/brokers/topics/t/partitions/0/state", str(number).encode())
        watching.settled()
        (record,) = (record for record in watching.after(seq) if record.path)
        assert (record.path, record.data) == ("/brokers/topics/t/partitions/0/state", str(number))


def test_what_comes_and_goes_is_found_by_lists(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch()
    seq = watching.settled()
    make_topic(kafka, "new", 2)
    watching.settled()
    kafka.create("/brokers/topics/new/partitions/2")  # a partition that has no state for a while
    watching.settled()
    kafka.create("/brokers/topics/new/partitions/2/state", b"{}")
    kafka.create("/admin/reassign_partitions", b"{}")
    watching.settled()
    kafka.delete("/brokers/topics/new", recursive=True)
    kafka.delete("/admin/reassign_partitions")
    watching.settled()
    new = "/brokers/topics/new"
    told = changes(watching.after(seq))
    assert [path for kind, path in told if kind == "node"] == [
        new,
        *(f"{new}/partitions/{number}/state" for number in range(3)),
        "/admin/reassign_partitions",
    ]
    assert {path for kind, path in told if kind == "deleted"} == {path for kind, path in told if kind == "node"}


def test_a_closing_session_takes_the_controller_before_the_broker(watched: str, watch: Watch) -> None:
    records = records_of_a_closing_session(watched, watch)
    assert changes(records) == [("deleted", "/controller"), ("deleted", "/brokers/ids/1")]


def test_a_controller_that_is_followed_at_once_is_seen_as_gone_and_as_new(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    watching = watch(coalesce_ms=300)
    seq = watching.settled()
    transaction = kafka.transaction()
    transaction.delete("/controller")
    transaction.create("/controller", b'{"brokerid":2}')
    transaction.commit()
    watching.settled()
    assert changes(watching.after(seq)) == [("deleted", "/controller"), ("node", "/controller")]


def test_topics_that_came_and_went_leave_no_watches_on_the_server(
    server: ZooKeeper, kafka: KazooClient, watch: Watch
) -> None:
    make_cluster(kafka)
    watching = watch()
    watching.settled()
    before = watches(server)
    for number in range(5):
        make_topic(kafka, f"short-lived-{number}", 3)
        watching.settled()
        kafka.delete(f"/brokers/topics/short-lived-{number}", recursive=True)
        watching.settled()
    assert watches(server) == before


def test_a_znode_that_may_not_be_read_does_not_disturb_the_others(kafka: KazooClient, watch: Watch) -> None:
    make_cluster(kafka)
    kafka.create("/config/topics/secret", b"", acl=[ACL(Permissions.WRITE, ANYONE_ID_UNSAFE)])
    watching = watch()
    seq = watching.settled()
    kafka.create("/config/topics/open", b"{}", acl=OPEN_ACL_UNSAFE)
    watching.settled()
    assert ("node", "/config/topics/secret") not in changes(watching.records())
    assert changes(watching.after(seq)) == [("node", "/config/topics/open")]


def test_a_complete_read_alone_sets_no_watch(server: ZooKeeper, watched: str, kafka: KazooClient) -> None:
    make_cluster(kafka)
    read = read_once(ZooKeeperConfig(zookeeper=watched), threading.Event())
    assert sorted(read.values) == sorted(TREE)
    assert watches(server) == 0


@pytest.mark.parametrize("seed", in_gate(0, of=range(3)))
def test_replaying_the_records_of_any_history_gives_the_servers_tree(
    server: ZooKeeper, watched: str, kafka: KazooClient, watch: Watch, seed: int
) -> None:
    make_cluster(kafka)
    chance = random.Random(seed)
    with Relay(server.port) as relay:
        below = watched.partition("/")[2]
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}/{below}", coalesce_ms=chance.choice([0, 1, 10]))
        for _ in range(300):
            topic = chance.choice("uvw")
            act(kafka, chance, topic)
            if chance.random() < 0.01:
                relay.close_door()
            if chance.random() < 0.1:
                relay.open_door()
        relay.open_door()
        eventually(lambda: '"connected"' in (watching.records()[-1].data or ""))
        watching.settled()
        replayed = replayed_tree(watching.records())
        watching.stop()
    assert replayed == server_tree(kafka)


def act(kafka: KazooClient, chance: random.Random, topic: str) -> None:
    """Make one possible change of a cluster."""
    if not kafka.exists(f"/brokers/topics/{topic}"):
        make_topic(kafka, topic, chance.randint(1, 4))
    elif chance.random() < 0.3:
        kafka.delete(f"/brokers/topics/{topic}", recursive=True)
    elif chance.random() < 0.5:
        try:
            kafka.set(f"/brokers/topics/{topic}/partitions/{chance.randint(0, 3)}/state", str(chance.random()).encode())
        except NoNodeError:
            kafka.set(f"/brokers/topics/{topic}", str(chance.random()).encode())
    else:
        request = f"/admin/delete_topics/{topic}"
        if kafka.exists(request):
            kafka.delete(request)
        else:
            kafka.create(request)
