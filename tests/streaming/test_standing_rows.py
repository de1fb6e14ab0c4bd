"""Compaction of an output, which keeps exactly the final rows for a reader of all rows."""

from __future__ import annotations

import random

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.metadata_rows import BeginningRow, BrokerRow, PartitionRow, TopicRow
from controller.contract.outputs import encode_row
from controller.contract.row import Row
from questions.memory import Memory
from streaming.sinks.sink import StandingRows
from tests.streaming.cluster_records import life_of

_STAMP = {"ordinal": 0, "zxid": 1, "time_ms": 1}


def partition(cluster: str, number: int, seq: int, state: str, *, removed: bool) -> PartitionRow:
    return PartitionRow(
        cluster=cluster, generation=1, seq=seq, topic="t", partition=number, state=state, leader=1, leader_epoch=seq,
        isr=(1,), replicas=(1,), removed=removed, **_STAMP,
    )  # fmt: skip


def topic(cluster: str, number: int, seq: int, *, removed: bool) -> TopicRow:
    return TopicRow(
        cluster=cluster, generation=1, seq=seq, topic=f"t{number}", topic_id=None, min_insync_replicas=None,
        unclean_election=None, partitions=1, replication_factors=(1,), deletion=None, removed=removed, **_STAMP,
    )  # fmt: skip


def broker(cluster: str, number: int, seq: int, *, registered: bool, forgotten: bool) -> BrokerRow:
    return BrokerRow(
        cluster=cluster, generation=1, seq=seq, broker=number, registered=registered, epoch=1, since_ms=1,
        forgotten=forgotten, **_STAMP,
    )  # fmt: skip


def alert(cluster: str, number: int, seq: int, state: str) -> AlertRow:
    return AlertRow(
        cluster=cluster, generation=1, seq=seq, id=f"a-{number}", alert="BrokerCrashed", state=state, cause="",
        severity=Severity.PAGE, subject=f"broker {number}", group="", since_ms=1, **_STAMP,
    )  # fmt: skip


def rows_of(chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    for seq in range(400):
        cluster, number = chance.choice(["east", "west"]), chance.randrange(12)
        kind = chance.random()
        if kind < 0.01:
            rows.append(BeginningRow(cluster=cluster, generation=1, seq=seq, **_STAMP))
        elif kind < 0.15:
            registered = chance.random() < 0.5
            forgotten = not registered and chance.random() < 0.5
            rows.append(broker(cluster, number, seq, registered=registered, forgotten=forgotten))
        elif kind < 0.5:
            state = chance.choice(["OnlinePartition", "OfflinePartition", "NonExistentPartition"])
            rows.append(partition(cluster, number, seq, state, removed=chance.random() < 0.3))
        elif kind < 0.6:
            rows.append(topic(cluster, number, seq, removed=chance.random() < 0.3))
        elif kind < 0.9:
            rows.append(alert(cluster, number, seq, chance.choice(["open", "unknown", "resolved"])))
        elif rows:
            rows.append(chance.choice(rows[-30:]))  # once more, and late
    return [row for row in rows if not isinstance(row, BeginningRow) or rows.count(row) == 1]


def seen(lines: list[bytes], rows: dict[bytes, Row]) -> tuple[object, ...]:
    memory = Memory()
    for line in lines:
        row = rows[line]
        if isinstance(row, BeginningRow):
            for output in ("metadata", "alerts"):
                memory.forget(output, row.cluster)
        else:
            memory.apply(row)
    found = [memory.cluster(each.cluster, topics=None) for each in memory.clusters()]
    return tuple(
        (known.cluster, known.topics, known.brokers, known.open_alerts, known.alert_counts)
        for known in found
        if known is not None
    )


def test_whatever_is_compacted_a_late_reader_sees_the_same() -> None:
    chance = random.Random(20260802)
    for _ in range(50):
        rows = {encode_row(row): row for row in rows_of(chance)}
        lines = [encode_row(row) for row in rows.values()]
        middle = chance.randrange(len(lines))
        kept = StandingRows()
        for line in lines[:middle]:
            kept.add(line)
        late = [*kept.lines(), *lines[middle:]]
        both = {cluster[0] for cluster in seen(lines, rows)} & {cluster[0] for cluster in seen(late, rows)}
        assert [one for one in seen(late, rows) if one[0] in both] == [
            one for one in seen(lines, rows) if one[0] in both
        ]
        again = StandingRows()
        for line in kept.lines():
            again.add(line)
        assert again.lines() == kept.lines()


def test_beginnings_lines_of_a_newer_kontrast_and_the_job_s_newest_row_are_kept() -> None:
    lines = life_of("east", topics=2).rows()["metadata"]
    newer = msgspec.json.encode({"kind": "wonder", "v": 99, "cluster": "east"})
    jobs = [b'{"kind":"job","v":1,"batch":%d}' % number for number in range(2)]
    kept = StandingRows()
    for line in [*lines, newer, newer, *jobs]:
        kept.add(line)
    assert kept.lines()[0] == lines[0]
    assert b'"beginning"' in lines[0]
    assert kept.lines().count(newer) == 1
    assert len(kept.lines()) < len(lines)


def test_nothing_stays_of_a_broker_that_is_forgotten() -> None:
    kept = StandingRows()
    kept.add(encode_row(broker("east", 3, 1, registered=False, forgotten=False)))
    kept.add(encode_row(broker("east", 3, 2, registered=False, forgotten=True)))
    assert kept.lines() == []
