"""Clusters in the states that the live page must show, as rows that the core makes of changes in ZooKeeper.

Each case is a cluster of its own, so that one `kontrast serve` shows all cases. Times end at the present.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller.contract.outputs import OUTPUTS
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.step import steps
from tests.controller.znode_history import ZnodeHistory, controller_znode, state_znode, topic_znode
from tests.dashboards.shop import LONG_NAME, SHOP, Size, place_of, topics_of

MINUTE_MS: Final = 60_000


class Story(ZnodeHistory):
    """A cluster with racks and topics, whose story ends at the present."""

    def __init__(self, name: str, *, minutes: float = 4) -> None:
        super().__init__(name)
        self.now_ms = time.time_ns() // 1_000_000 - int(minutes * MINUTE_MS)
        self._written = 0
        self.is_migrating = False  # KRaft leads, and writes to /migration

    def begin(self, brokers: int = 4, racks: int = 3, topics: Mapping[str, Size] = SHOP) -> Story:
        """Make the first complete read, applied at once. Broker 3 is controller, and brokers go round the racks."""
        contents: dict[str, object] = {"/controller": controller_znode(3), "/controller_epoch": 1}
        contents |= {f"/brokers/ids/{broker}": _broker(broker, racks) for broker in range(1, brokers + 1)}
        for topic in topics_of(topics, brokers):
            contents[f"/config/topics/{topic.name}"] = {"version": 1, "config": topic.config}
            contents[f"/brokers/topics/{topic.name}"] = topic_znode(topic.assignment)
            for number, replicas in topic.assignment.items():
                path = f"/brokers/topics/{topic.name}/partitions/{number}/state"
                contents[path] = state_znode(replicas[0], 0, replicas)
        self._apply(contents)
        self.heartbeat()
        return self

    def _apply(self, contents: Mapping[str, object]) -> None:
        kinds: list[tuple[RecordKind, dict[str, Any]]] = [
            (RecordKind.SNAPSHOT_BEGIN, {}),
            *self._read(dict(contents)),
            (RecordKind.SNAPSHOT_END, {"zxid": 100}),
        ]
        records = []
        for kind, fields in kinds:
            self.seq += 1
            place: dict[str, Any] = {"generation": self.generation, "seq": self.seq, "observed_ms": self.now_ms}
            records.append(Record(cluster=self.cluster, kind=kind, **place, **fields))
        outcome = steps(self.context, records)
        self.context = outcome.context
        self.effects.extend(outcome.effects)

    def crash(self, *brokers: int) -> Story:
        """Crash the brokers within a second, and let the controller react."""
        for broker in brokers:
            self.now_ms += 400
            self.broker_leaves(broker)
        self.controller_acts()
        return self

    def controller_acts(self) -> None:
        for name, _ in list(self.context.topics):
            self.the_controller_writes_its_due(name)
        for topic, _ in list(self.context.topics):
            self._shrink(topic)

    def _shrink(self, name: str) -> None:
        """Let leaders drop dead followers from their ISRs."""
        topic = self.context.topics.get(name)
        for number, partition in topic.partitions.items() if topic else ():
            value = partition.zk_state
            live = [broker for broker in value.isr if broker in self.context.header.brokers] if value else []
            if value and value.leader in live and len(live) < len(value.isr):
                self.state(name, number, value.leader, value.leader_epoch + 1, live)

    def to_the_present(self, *, session: str = "connected", silent_ms: int = 0) -> Story:
        """Send heartbeats until `silent_ms` ago."""
        end_ms = time.time_ns() // 1_000_000 - silent_ms
        while self.now_ms + 1_000 < end_ms:
            if self.is_migrating:
                self.migration(400 + self.seq, 3001, 3)
            self.heartbeat(min(5_000, end_ms - self.now_ms - 500), session=session)
        return self

    def rows(self) -> list[Row]:
        """Return the rows since the last call, in the order of their outputs."""
        rows, self._written = self.effects[self._written :], len(self.effects)
        return in_order(rows)


def _broker(broker: int, racks: int) -> dict[str, object]:
    host, rack = place_of(broker, racks)
    return {
        "version": 5,
        "jmx_port": -1,
        "host": host,
        "port": 9092,
        "endpoints": [f"PLAINTEXT://{host}:9092"],
        "rack": rack,
    }


def healthy() -> Story:
    return Story("healthy").begin().to_the_present()


def shutdown() -> Story:
    story = Story("shut-down").begin()
    story.broker_closes(2)
    story.controller_acts()
    return story.to_the_present()


def ghost() -> Story:
    story = Story("ghost").begin()
    story.write("/controller", controller_znode(105), owner=0x77)
    return story.to_the_present()


def zookeeper_lost() -> Story:
    story = Story("zookeeper-lost").begin().crash(1)
    for _ in range(10):
        story.heartbeat(5_000)
    return story.to_the_present(session="suspended")


def long_name() -> Story:
    topics = {**SHOP, LONG_NAME: Size(6, 2, 2)}
    return Story("long-name").begin(topics=topics).crash(1).to_the_present()


def migration() -> Story:
    story = Story("migration").begin()
    story.migrates()
    story.is_migrating = True
    return story.to_the_present()


def two_hundred_brokers() -> Story:
    topics = {f"events-{number:02}": Size(40) for number in range(25)}
    return Story("brokers-200").begin(200, 5, topics).crash(17).to_the_present()


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of outputs, in the order of their outputs."""
    return sorted((row for row in rows if row.output in OUTPUTS), key=lambda row: OUTPUTS.index(row.output))
