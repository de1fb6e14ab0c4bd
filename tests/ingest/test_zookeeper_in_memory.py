"""`ZooKeeperInMemory` beside a real server. Both give the same answers and events to the same requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ZookeeperError
from kazoo.protocol.states import WatchedEvent, ZnodeStat
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

from cli.embedded.zookeeper import ZooKeeper
from tests.clients import zookeeper_client
from tests.ingest.test_zookeeper import Session
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.lanes import in_gate
from tests.relay import Relay
from tests.waiting import eventually

REQUESTS = 400
WATCHED = "/brokers/topics"
PATHS = [f"{WATCHED}/{name}" for name in "abc"] + [f"{WATCHED}/a/{name}" for name in "xyz"] + ["/controller", "/other"]
ACLS = [
    OPEN_ACL_UNSAFE,
    [ACL(Permissions.ALL & ~Permissions.READ, ANYONE_ID_UNSAFE)],
    [ACL(Permissions.READ | Permissions.ADMIN, ANYONE_ID_UNSAFE)],
]


class Transcript:
    """Answers and events of one server, with its zxids counted from the first and without its times."""

    def __init__(self, client: KazooClient, seed: int) -> None:
        self.lines: list[object] = []
        self.fired: list[object] = []
        self._client = client
        self._chance = random.Random(seed)
        self._first_zxid = client.create("/first", b"", include_data=True)[1].czxid

    def do_something(self) -> None:
        """Send a request by chance, and note its answer."""
        path, chance, client = self._chance.choice(PATHS), self._chance, self._client
        version = chance.choice([-1, -1, -1, 0, 1])
        acls = chance.choice(ACLS) if chance.random() < 0.1 else OPEN_ACL_UNSAFE
        watch = self._note_event if chance.random() < 0.5 else None
        data = chance.choice([None, b"", b"\xff", b"x" * 100])
        is_ephemeral, is_sequential = chance.random() < 0.1, chance.random() < 0.1
        requests: list[Callable[[], object]] = [
            lambda: client.create(path, data, acls, ephemeral=is_ephemeral, sequence=is_sequential, include_data=True),
            lambda: client.create(path, data, acls, ephemeral=is_ephemeral, sequence=is_sequential),
            lambda: client.set(path, data, version),
            lambda: client.delete(path, version),
            lambda: client.exists(path, watch),
            lambda: client.get(path, watch),
            lambda: sorted(client.get_children(path, watch)),
            lambda: client.get_children(path, watch, include_data=True),
            lambda: client.set_acls(path, acls, version),
            lambda: client.get_acls(path),
            lambda: self._transaction(version),
        ]
        self.note(chance.choice(requests))

    def note(self, request: Callable[[], object]) -> None:
        """Note the answer, or the name of the error."""
        try:
            self.lines.append(self.without_times(request()))
        except ZookeeperError as error:
            self.lines.append(type(error).__name__)

    def without_times(self, answer: Any) -> object:
        """Return the answer as another server of the same history gives it."""
        match answer:
            case ZnodeStat():
                owner = answer.ephemeralOwner and answer.ephemeralOwner == self._client.client_id[0]
                zxids = [zxid - self._first_zxid for zxid in (answer.czxid, answer.mzxid, answer.pzxid)]
                return (*zxids, answer.version, answer.cversion, answer.aversion, owner, *answer[8:10])
            case tuple() | list():
                parts = sorted(answer) if answer and all(isinstance(each, str) for each in answer) else answer
                return [self.without_times(part) for part in parts]
            case ZookeeperError():
                return type(answer).__name__
        return answer

    def events(self, session: Session) -> list[object]:
        """Return the events up to the end of the history. Those of one zxid have no order."""
        self._client.create(f"{WATCHED}/end", b"", makepath=True)
        events = []

        def has_ended() -> bool:
            events.extend(session.inbox.take_events())
            return any(event.path == f"{WATCHED}/end" for event in events)

        eventually(has_ended)
        self._client.exists("/last", self._note_event)
        self._client.create("/last", b"")
        eventually(lambda: ("CREATED", "/last") in self.fired)
        return sorted((event.zxid - self._first_zxid, event.path, event.kind.value) for event in events)

    def _transaction(self, version: int) -> object:
        first, second, third = self._chance.sample(PATHS, 3)
        transaction = self._client.transaction()
        transaction.create(first, b"1")
        transaction.check(second, version)
        transaction.set_data(second, b"2")
        transaction.delete(third)
        return transaction.commit()

    def _note_event(self, event: WatchedEvent) -> None:
        self.fired.append((event.type, event.path))


def history(address: str, seed: int) -> dict[str, object]:
    """Return all that clients learn of a history by chance."""
    with zookeeper_client(address) as client, zookeeper_client(address) as leaving, Session(address) as session:
        session.zookeeper.add_watches([WATCHED, "/controller"])
        transcript = Transcript(client, seed)
        client.ensure_path(WATCHED)
        for number in range(REQUESTS):
            transcript.do_something()
            if number % 50 == 49:
                found = session.zookeeper.read_values(PATHS).values
                transcript.lines.append({path: value and (value.data, value.version) for path, value in found.items()})
                transcript.lines.append(
                    {path: sorted(names) for path, names in session.zookeeper.read_children(PATHS).items()}
                )
        transcript.note(lambda: leaving.create(f"{WATCHED}/of-another", b"", ephemeral=True))
        leaving.stop()
        transcript.note(lambda: client.exists(f"{WATCHED}/of-another"))
        events = transcript.events(session)
        return {"answers": transcript.lines, "events": events, "fired": transcript.fired}


@pytest.mark.parametrize("seed", in_gate(0, 1, of=range(4)))
def test_it_answers_as_a_real_server(zookeeper: ZooKeeper, seed: int) -> None:
    with ZooKeeperInMemory() as in_memory:
        ours, real = history(in_memory.connect_string, seed), history(zookeeper.connect_string, seed)
    assert ours == real
    assert ours["fired"]


def lives(server: ZooKeeper | ZooKeeperInMemory) -> list[object]:
    """Return what clients learn while their server pauses, dies and comes back, and a session expires."""
    states: list[str] = []
    with (
        Relay(server.port) as relay,
        zookeeper_client(server.connect_string, timeout_seconds=60) as staying,
        zookeeper_client(f"127.0.0.1:{relay.port}", timeout_seconds=1) as leaving,
    ):
        staying.create("/staying", b"", ephemeral=True)
        leaving.create("/leaving", b"", ephemeral=True)
        leaving.add_listener(states.append)
        relay.close_door()
        eventually(lambda: staying.exists("/leaving") is None)
        server.kill()
        eventually(lambda: not staying.connected)
        server.start()
        eventually(lambda: staying.connected)
        relay.open_door()
        eventually(lambda: leaving.connected)
        leaving.remove_listener(states.append)
        server.pause()
        asked = staying.get_async("/staying")
        asked.wait(1)
        answered_in_the_pause = asked.ready()
        server.resume()
        (_, stat) = asked.get(timeout=60)
        return [answered_in_the_pause, stat.ephemeralOwner == staying.client_id[0], stat.numChildren, states]


@pytest.mark.nightly
def test_sessions_live_as_with_a_real_server(zookeeper: ZooKeeper) -> None:
    with ZooKeeperInMemory() as in_memory:
        assert lives(in_memory) == lives(zookeeper) == [False, True, 0, ["SUSPENDED", "LOST", "CONNECTED"]]
