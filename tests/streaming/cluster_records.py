"""The life of a small cluster as records, and the replica's rows for it outside Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from controller.contract.ids import Zxid
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, encode_row
from controller.contract.records import Record, RecordKind, encode_record
from controller.restore import CHUNK_COUNT
from controller.restore.stored_context import new_context
from controller.step import step
from streaming.config import StreamConfig
from transport.address import JournalAddress
from transport.journal import JournalWriter
from transport.journal_reading import read_journal

_BROKERS = (1, 2, 3)
_RECORDS_A_WINDOW = 3  # records that a forwarder appends together


class ClusterLife:
    """Writes the records that the ingest would send of one cluster."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.records: list[Record] = []
        self._zxid = 100

    def send(self, kind: RecordKind, path: str = "", value: object = None, **fields: Any) -> None:
        self._zxid += 1
        seq = len(self.records)
        self.records.append(
            Record(
                cluster=self.cluster,
                generation=1,
                seq=seq,
                kind=kind,
                observed_ms=1_700_000_000_000 + 100 * seq,
                path=path,
                data=None if value is None else json.dumps(value),
                zxid=Zxid(self._zxid),
                **({"mzxid": self._zxid, "czxid": self._zxid} | fields),
            )
        )

    def state(self, topic: str, partition: int, leader: int, epoch: int, isr: list[int]) -> None:
        value = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": epoch, "isr": isr}
        self.send(RecordKind.NODE, f"/brokers/topics/{topic}/partitions/{partition}/state", value, version=epoch)

    def snapshot(self, topics: int) -> None:
        """Make a complete read. Broker 1 of three is controller, each topic has two partitions with two replicas."""
        self.send(RecordKind.SNAPSHOT_BEGIN)
        self.send(RecordKind.NODE, "/controller", {"version": 1, "brokerid": 1, "timestamp": "1700000000000"})
        self.send(RecordKind.NODE, "/controller_epoch", 1)
        for broker in _BROKERS:
            self.broker(broker)
        for number in range(topics):
            topic = f"topic-{number}"
            assignment = {"0": [1, 2], "1": [3, 2]}
            self.send(RecordKind.NODE, f"/brokers/topics/{topic}", {"version": 2, "partitions": assignment})
            self.state(topic, 0, 1, 0, [1, 2])
            self.state(topic, 1, 3, 0, [3, 2])
        self.send(RecordKind.SNAPSHOT_END)

    def broker(self, broker: int) -> None:
        endpoint = f"PLAINTEXT://broker-{broker}:9092"
        value = {"version": 4, "host": f"broker-{broker}", "port": 9092, "jmx_port": -1, "endpoints": [endpoint]}
        value["timestamp"] = "1700000000000"
        self.send(RecordKind.NODE, f"/brokers/ids/{broker}", value, ephemeral_owner=1000 + broker)

    def lose_broker_3(self, topics: int) -> None:
        """Kill broker 3, elect broker 2 where 3 led, and let 3 join the ISR again."""
        self.send(RecordKind.DELETED, "/brokers/ids/3")
        for number in range(topics):
            self.state(f"topic-{number}", 1, 2, 1, [2])
        self.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})
        self.broker(3)
        for number in range(topics):
            self.state(f"topic-{number}", 1, 2, 1, [2, 3])
        self.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})

    def in_generation(self, generation: int) -> ClusterLife:
        """Return the same life as another forwarder would publish it later."""
        other = ClusterLife(self.cluster)
        other.records = [
            msgspec.structs.replace(record, generation=generation, zxid=record.zxid + 10_000 * generation)
            for record in self.records
        ]
        return other

    @property
    def lines(self) -> list[bytes]:
        return [encode_record(record) for record in self.records]

    def rows(self, chunk_count: int = CHUNK_COUNT) -> dict[str, list[bytes]]:
        """Return the replica's rows. A job must publish the same."""
        return rows_of(self.records, chunk_count)


def rows_of(records: Sequence[Record], chunk_count: int = CHUNK_COUNT) -> dict[str, list[bytes]]:
    """Return the rows of `controller.step` for a cluster's records, by output."""
    first = records[0]
    context = new_context(first.cluster, chunk_count=chunk_count)
    rows: dict[str, list[bytes]] = {output: [] for output in OUTPUTS}
    beginning = BeginningRow(first.cluster, first.generation, first.seq, -1, first.zxid, first.observed_ms)
    for output in STANDING_OUTPUTS:
        rows[output].append(encode_row(beginning))
    for record in records:
        outcome = step(context, record)
        context = outcome.context
        for row in outcome.effects:
            rows[row.output].append(encode_row(row))
    return rows


def life_of(cluster: str, *, topics: int = 20, losses: int = 2) -> ClusterLife:
    life = ClusterLife(cluster)
    life.snapshot(topics)
    for _ in range(losses):
        life.lose_broker_3(topics)
    return life


class Streams:
    """An input journal, the outputs and the checkpoint of one job, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.input = directory / "records"
        self.outputs = directory / "outputs"
        self.checkpoint = directory / "checkpoint"

    def config(self, **changes: Any) -> StreamConfig:
        settings: dict[str, Any] = {
            "source": JournalAddress(self.input),
            "sink": JournalAddress(self.outputs),
            "checkpoint": str(self.checkpoint),
            "master": "local[2]",
            **changes,
        }
        return StreamConfig(**settings)

    def append(self, lines: list[bytes]) -> None:
        with JournalWriter(self.input) as writer:
            for begin in range(0, len(lines), _RECORDS_A_WINDOW):
                writer.append(lines[begin : begin + _RECORDS_A_WINDOW])

    def read(self, output: str) -> list[bytes]:
        return list(read_journal(self.outputs / output, 0, 1 << 40).lines)

    def read_all(self) -> dict[str, list[bytes]]:
        return {output: self.read(output) for output in OUTPUTS}
