"""Which partitions have no leader when nothing happens, by the znodes alone and by what the replica publishes.

Here belongs the comparison of what an operator asks first; how a controller got there is compared in `agreement`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from tests.conformance.gauge_samples import QUIET_MS

Partition = tuple[str, int]


class Leaderless(NamedTuple):
    """The partitions without a leader at a quiet moment, which is after the record of this number."""

    seq: int
    partitions: frozenset[Partition]


def by_znodes(records: Sequence[Record]) -> Iterator[Leaderless]:
    """The partitions whose leader is nobody, or not registered, but for those of topics that are being deleted."""
    leaders: dict[Partition, int] = {}
    others: set[str] = set()
    changes = [record for record in records if record.path]
    for record, following in zip(changes, [*changes[1:], None], strict=True):
        match record.path.split("/"):
            case ["", "brokers", "topics", topic, "partitions", partition, "state"]:
                if record.kind is RecordKind.DELETED:
                    leaders.pop((topic, int(partition)), None)
                elif record.data:
                    leaders[topic, int(partition)] = json.loads(record.data)["leader"]
            case _ if record.kind is RecordKind.DELETED:
                others.discard(record.path)
            case _:
                others.add(record.path)
        if following is None or following.observed_ms - record.observed_ms > QUIET_MS:
            yield Leaderless(record.seq, frozenset(_leaderless(leaders, others)))


def _leaderless(leaders: dict[Partition, int], others: set[str]) -> Iterator[Partition]:
    for (topic, partition), leader in leaders.items():
        if f"/brokers/ids/{leader}" not in others and f"/admin/delete_topics/{topic}" not in others:
            yield topic, partition


def by_rows(rows: Sequence[Row], moments: Sequence[int]) -> Iterator[Leaderless]:
    """The partitions that the rows up to each of these records call offline, as long as nobody deletes them."""
    offline: set[Partition] = set()
    published = (row for row in rows if isinstance(row, PartitionRow))
    row = next(published, None)
    for seq in moments:
        while row is not None and row.seq <= seq:
            change = offline.add if row.state == "OfflinePartition" and not row.deleting else offline.discard
            change((row.topic, row.partition))
            row = next(published, None)
        yield Leaderless(seq, frozenset(offline))
