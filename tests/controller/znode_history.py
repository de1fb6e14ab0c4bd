"""A ZooKeeper that exists only as the records it would cause: for telling the core stories.

Here belongs the bookkeeping of zxids, versions and sequence numbers. What the core makes of them is the tests' matter.
"""

from __future__ import annotations

import json

from controller.context import Context
from controller.outputs import AlertRow, PartitionRow, Row, Transition
from controller.records import Record, RecordKind, data_fields
from controller.state import new_context
from controller.step import step


class ZnodeHistory:
    """Changes znodes, hands each change to the core as a record, and keeps what came of it."""

    def __init__(self, cluster: str = "c", chunk_count: int = 8) -> None:
        self.context: Context = new_context(cluster, chunk_count)
        self.effects: list[Row] = []
        self.records: list[Record] = []
        self.cluster = cluster
        self.generation = 1
        self.seq = -1
        self.zxid = 100
        self.now_ms = 1_000_000
        self.znodes: dict[str, tuple[int, int]] = {}  # path -> czxid, version

    def send(self, kind: RecordKind, **fields) -> tuple[Row, ...]:
        self.seq += 1
        self.now_ms += 10
        record = Record(
            cluster=self.cluster, generation=self.generation, seq=self.seq, kind=kind, observed_ms=self.now_ms, **fields
        )
        self.records.append(record)
        outcome = step(self.context, record)
        self.context = outcome.context
        self.effects.extend(outcome.effects)
        return outcome.effects

    def write(self, path: str, content: object = None, *, same_zxid: bool = False) -> tuple[Row, ...]:
        if not same_zxid:
            self.zxid += 1
        czxid, version = self.znodes.get(path, (self.zxid, -1))
        self.znodes[path] = (czxid, version + 1)
        data = content if isinstance(content, bytes) or content is None else json.dumps(content).encode()
        return self.send(
            RecordKind.NODE,
            path=path,
            czxid=czxid,
            mzxid=self.zxid,
            zxid=self.zxid,
            version=version + 1,
            **data_fields(data),
        )

    def delete(self, path: str, *, same_zxid: bool = False) -> tuple[Row, ...]:
        if not same_zxid:
            self.zxid += 1
        self.znodes.pop(path, None)
        return self.send(RecordKind.DELETED, path=path, zxid=self.zxid)

    def heartbeat(self, after_ms: int = 1_000) -> tuple[Row, ...]:
        self.now_ms += after_ms
        return self.send(RecordKind.HEARTBEAT, zxid=self.zxid, data='{"session":"connected","watch_mode":"persistent"}')

    def snapshot(self, *writes: tuple[str, object]) -> None:
        self.send(RecordKind.SNAPSHOT_BEGIN)
        for path, content in writes:
            self.write(path, content)
        self.send(RecordKind.SNAPSHOT_END, zxid=self.zxid)

    # --- the cluster's vocabulary

    def broker(self, broker: int) -> tuple[Row, ...]:
        return self.write(f"/brokers/ids/{broker}", broker_znode(broker))

    def broker_leaves(self, broker: int) -> tuple[Row, ...]:
        return self.delete(f"/brokers/ids/{broker}")

    def controller(self, broker: int, epoch: int) -> tuple[Row, ...]:
        effects = self.write("/controller", controller_znode(broker))
        return effects + self.write("/controller_epoch", str(epoch).encode(), same_zxid=True)

    def topic(self, name: str, assignment: dict[int, list[int]], **more: object) -> tuple[Row, ...]:
        return self.write(f"/brokers/topics/{name}", topic_znode(assignment, **more))

    def state(self, name: str, partition: int, leader: int, leader_epoch: int, isr: list[int], **more: object):
        path = f"/brokers/topics/{name}/partitions/{partition}/state"
        return self.write(path, state_znode(leader, leader_epoch, isr, **more))

    # --- what came of it

    def row(self, topic: str, partition: int) -> PartitionRow:
        rows = [row for row in self.effects if isinstance(row, PartitionRow)]
        return next(row for row in reversed(rows) if (row.topic, row.partition) == (topic, partition))

    def alerts(self) -> list[tuple[str, str]]:
        return [(row.state, row.id) for row in self.effects if isinstance(row, AlertRow)]

    def gauges(self):
        return self.heartbeat(0)[-1]

    def transitions(self, effects: tuple[Row, ...]) -> list[str]:
        return [told(row) for row in effects if isinstance(row, Transition)]


def told(row: Transition) -> str:
    subject = {"partition": f"{row.topic}-{row.partition}", "replica": f"{row.topic}-{row.partition}@{row.broker}"}
    what = subject.get(row.subject, f"{row.subject} {row.topic or row.broker}")
    led = "" if row.leader is None else f" leader={row.leader} epoch={row.leader_epoch} isr={list(row.isr)}"
    return f"{row.status.value} {what} {row.from_state} -> {row.to_state}{led}"


def broker_znode(broker: int) -> dict:
    return {"version": 5, "host": "h", "port": 9092, "endpoints": [f"PLAINTEXT://h:{9092 + broker}"], "rack": None}


def controller_znode(broker: int) -> dict:
    return {"version": 2, "brokerid": broker, "timestamp": "1", "kraftControllerEpoch": -1}


def topic_znode(assignment: dict[int, list[int]], **more: object) -> dict:
    partitions = {str(number): replicas for number, replicas in assignment.items()}
    return {"version": 3, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}} | more


def state_znode(leader: int, leader_epoch: int, isr: list[int], controller_epoch: int = 1, **more: object) -> dict:
    base = {"version": 1, "leader": leader, "leader_epoch": leader_epoch, "controller_epoch": controller_epoch}
    return base | {"isr": isr} | more
