"""The two requests that kazoo lacks, and the events it would not give, against a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Id, Permissions

from cli.embedded.zookeeper import ZooKeeper
from ingest.complete_read import read_everything
from ingest.config import IngestConfig
from ingest.observed.inbox import Inbox, SessionState
from ingest.observed.observations import ZnodeEvent, ZnodeEventKind
from ingest.zookeeper.client import WatchedZooKeeper
from ingest.zookeeper.reading import ConnectionLostError
from ingest.zookeeper.requests import Answer, MultiRead
from tests.waiting import eventually
from transport.address import JournalAddress

pytestmark = pytest.mark.usefixtures("shared_chroot")  # a real server


class Session:
    """A connected session with its inbox."""

    def __init__(self, connect_string: str, **settings: object) -> None:
        values = {"cluster": "c", "zookeeper": connect_string, "to": JournalAddress(Path("unused")), **settings}
        self.inbox = Inbox()
        self.stop = threading.Event()
        self.zookeeper = WatchedZooKeeper(IngestConfig(**values), self.inbox, self.stop)

    def __enter__(self) -> Session:
        self.zookeeper.start()
        assert self.inbox.wait(60)
        assert self.inbox.take_states() == [SessionState.CONNECTED]
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.zookeeper.close()

    def events(self, count: int) -> list[ZnodeEvent]:
        """Return the next events, as many as are expected."""
        events: list[ZnodeEvent] = []

        def all_came() -> bool:
            events.extend(self.inbox.take_events())
            return len(events) >= count

        eventually(all_came)
        return events


@pytest.fixture
def session(watched: str) -> Iterator[Session]:
    with Session(watched) as session:
        yield session


def test_a_recursive_watch_stays_and_tells_each_change_with_its_zxid(session: Session, kafka: KazooClient) -> None:
    session.zookeeper.add_watches(["/brokers/topics", "/controller"])  # neither is there yet
    kafka.ensure_path("/brokers")
    kafka.create("/brokers/topics", b"")
    topic = kafka.create("/brokers/topics/t", b"1", include_data=True)[1]
    first = kafka.set("/brokers/topics/t", b"2")
    second = kafka.set("/brokers/topics/t", b"3")
    kafka.create("/brokers/topics/t/partitions", b"")
    kafka.delete("/brokers/topics/t/partitions")
    kafka.delete("/brokers/topics/t")
    controller = kafka.create("/controller", b"", include_data=True)[1]
    events = session.events(5)
    assert [(event.kind, event.path) for event in events] == [
        (ZnodeEventKind.CREATED, "/brokers/topics/t"),
        (ZnodeEventKind.CHANGED, "/brokers/topics/t"),
        (ZnodeEventKind.CHANGED, "/brokers/topics/t"),
        (ZnodeEventKind.DELETED, "/brokers/topics/t"),
        (ZnodeEventKind.CREATED, "/controller"),
    ]
    assert [event.zxid for event in events[:3]] == [topic.czxid, first.mzxid, second.mzxid]
    assert events[4].zxid == controller.czxid > events[3].zxid > second.mzxid


def test_many_values_are_read_in_one_request(session: Session, kafka: KazooClient) -> None:
    kafka.create("/a", b"\xff\x00")
    kafka.create("/b", None)
    stat = kafka.set("/b", b"")
    kafka.create("/e", b"e", ephemeral=True)
    values = session.zookeeper.read_values(["/a", "/missing", "/b", "/e"]).values
    assert list(values) == ["/a", "/missing", "/b", "/e"]
    assert values["/a"] is not None
    assert values["/a"].data == b"\xff\x00"
    assert values["/missing"] is None
    assert values["/b"] is not None
    assert (values["/b"].czxid, values["/b"].mzxid, values["/b"].version) == (stat.czxid, stat.mzxid, 1)
    assert values["/e"] is not None
    assert values["/e"].ephemeral_owner == kafka.client_id[0]


def test_children_are_read_in_one_request_and_a_missing_parent_has_none(session: Session, kafka: KazooClient) -> None:
    kafka.ensure_path("/p/one")
    kafka.ensure_path("/p/zwei-ü")
    children = session.zookeeper.read_children(["/p", "/missing", "/p/one"])
    assert {path: set(found) for path, found in children.items()} == {
        "/p": {"one", "zwei-ü"},
        "/missing": set(),
        "/p/one": set(),
    }


def test_a_znode_that_may_not_be_read_does_not_disturb_the_others(session: Session, kafka: KazooClient) -> None:
    kafka.create("/open", b"x")
    kafka.create("/closed", b"x", acl=[ACL(Permissions.ALL, Id("ip", "192.0.2.1"))])
    kafka.create("/unlisted", b"x", acl=[ACL(Permissions.WRITE, ANYONE_ID_UNSAFE)])
    assert list(session.zookeeper.read_values(["/closed", "/open", "/unlisted"]).values) == ["/open"]


def test_a_znode_that_may_not_be_read_is_reported_once_until_it_may(
    session: Session, kafka: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    closed = [ACL(Permissions.WRITE | Permissions.ADMIN, ANYONE_ID_UNSAFE)]
    kafka.create("/closed", b"x", acl=closed)

    def reports() -> int:
        session.zookeeper.read_values(["/closed"])
        session.zookeeper.read_children(["/closed"])
        return caplog.text.count("/closed may not be read")

    assert [reports(), reports()] == [1, 1]
    kafka.set_acls("/closed", OPEN_ACL_UNSAFE)
    assert reports() == 1
    kafka.set_acls("/closed", closed)
    assert [reports(), reports()] == [2, 2]


def test_more_paths_than_a_request_may_have_are_read_in_several(watched: str, kafka: KazooClient) -> None:
    paths = [f"/n{number}" for number in range(23)]
    for path in paths:
        kafka.create(path, path.encode())
    with Session(watched, multi_read_paths=5) as session:
        values = session.zookeeper.read_values(paths).values
    assert [value.data for value in values.values() if value] == [path.encode() for path in paths]


def test_long_paths_are_split_below_the_size_that_the_server_takes(session: Session, kafka: KazooClient) -> None:
    name = "/" + "x" * 20_000
    kafka.create(name, b"long")
    reading = session.zookeeper.read_values([name, *(f"{name}-{number}" for number in range(120))])
    assert len(reading.values) == 121
    assert reading.values[name] is not None


def test_an_answer_tells_which_events_came_before_it(session: Session, kafka: KazooClient) -> None:
    session.zookeeper.add_watches(["/controller"])
    for expected in range(1, 60, 2):
        stat = kafka.create("/controller", b"", include_data=True)[1]
        reading = session.zookeeper.read_values(["/controller"])
        # A server that is alone answers a read after every event of the changes before it.
        assert reading.position == expected
        assert reading.zxid >= stat.czxid
        assert len(session.inbox.take_events(reading.position)) == 1
        kafka.delete("/controller")
        session.events(1)


def test_a_read_budget_is_kept(watched: str) -> None:
    with Session(watched, multi_read_paths=10, read_budget_znodes_per_second=100) as session:
        started = time.monotonic()
        session.zookeeper.read_values([f"/n{number}" for number in range(60)])
        assert time.monotonic() - started >= 0.5


def test_paths_are_below_the_chroot(watched: str, kafka: KazooClient) -> None:
    kafka.ensure_path("/kafka/blue")
    with Session(watched + "/kafka/blue") as session:
        session.zookeeper.add_watches(["/controller"])
        kafka.create("/controller", b"another cluster's")
        kafka.create("/kafka/blue/controller", b"ours")
        assert [event.path for event in session.events(1)] == ["/controller"]
        value = session.zookeeper.read_values(["/controller"]).values["/controller"]
        assert value is not None
        assert value.data == b"ours"
        assert session.zookeeper.read_children([""])[""] == ["controller"]


def test_a_lost_connection_ends_a_read_and_is_reported(zookeeper: ZooKeeper) -> None:
    with Session(zookeeper.connect_string) as session:
        zookeeper.kill()
        assert session.inbox.wait(60)
        assert session.inbox.take_states() == [SessionState.SUSPENDED]
        with pytest.raises(ConnectionLostError):
            session.zookeeper.read_values(["/controller"])
        zookeeper.start()
        eventually(lambda: session.zookeeper.connections == 2)
        assert session.zookeeper.read_values(["/controller"]).values == {"/controller": None}


def test_a_server_that_does_not_answer_does_not_hold_up_the_end(zookeeper: ZooKeeper) -> None:
    session = Session(zookeeper.connect_string)
    with session:
        zookeeper.pause()
        started = time.monotonic()
        session.stop.set()
        with pytest.raises(ConnectionLostError):
            session.zookeeper.read_values(["/controller"])
        session.zookeeper.close()
        assert time.monotonic() - started < 5
        zookeeper.resume()


def create_topics(kafka: KazooClient, count: int, name: str, data: bytes) -> None:
    kafka.ensure_path("/brokers/topics")
    for first in range(0, count, 100):
        transaction = kafka.transaction()
        for number in range(first, first + 100):
            transaction.create(f"/brokers/topics/{number:05}{name}", data)
        transaction.commit()


def test_requests_are_the_smaller_the_larger_the_znodes(
    session: Session, kafka: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(kafka, 1_000, "", b"x" * 5_000)
    sizes: list[int] = []
    deserialize = MultiRead.deserialize

    def measured(self: MultiRead, buffer: bytes, offset: int) -> Answer:
        sizes.append(len(buffer))
        return deserialize(self, buffer, offset)

    monkeypatch.setattr(MultiRead, "deserialize", measured)
    values = session.zookeeper.read_values([f"/brokers/topics/{number:05}" for number in range(1_000)]).values
    assert all(value is not None and len(value.data or b"") == 5_000 for value in values.values())
    assert max(sizes) < 0xFFFFF
    assert len(sizes) < 20


def test_a_list_longer_than_a_request_may_be_is_read(session: Session, kafka: KazooClient) -> None:
    create_topics(kafka, 5_000, "x" * 220, b"{}")
    assert len(read_everything(session.zookeeper)) == 5_000
