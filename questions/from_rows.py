"""Make a picture of a cluster from what `kontrast stream` derived of it: its rows of metadata and alerts.

The rows are turned back into the znodes that they say, and these go through `controller.step` as a complete read does:
a question has one answer wherever the cluster comes from. Topics' ids and settings are in no row: a topic's
min.insync.replicas shows only where too few replicas are in sync for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.derived.gauges import count_gauges
from controller.derived.partition_issues import index_issues
from controller.model.brokers import Departures
from controller.model.context import LEAST_IN_SYNC, Context
from controller.model.topics import Problem, TopicPartition
from controller.rules.migration_phases import MigrationPhase
from questions.departures import read_with_departures
from questions.gathering import worst_first
from questions.picture import Origin, Picture

MetadataRow = BrokerRow | ControllerRow | MigrationRow | PartitionRow

_CAUSES_FIRST = (ControllerRow, MigrationRow, BrokerRow, PartitionRow)  # as in a complete read
_PHASES = {phase.value: phase for phase in MigrationPhase}
_JSON = msgspec.json.Encoder()
_Znode = tuple[str, object, int, int]  # path, content, czxid, owner
_Znodes = Iterator[_Znode]


def picture_of_rows(
    context: Context,
    metadata: Collection[MetadataRow],
    alerts: Collection[AlertRow],
    story: tuple[Row, ...],
    as_of_ms: int,
) -> Picture:
    """The cluster as the rows say it, with their alerts, and with their times."""
    rows = sorted(metadata, key=lambda row: _CAUSES_FIRST.index(type(row)))
    of_partitions = (row for row in rows if isinstance(row, PartitionRow))
    reasons = {TopicPartition(row.topic, row.partition): row.reason for row in of_partitions if row.reason}
    return Picture(
        origin=Origin.ROWS,
        context=_with_times(context_of_rows(context, rows, as_of_ms), rows),
        alerts=worst_first(alerts),
        reasons=reasons,
        away_since_ms={row.broker: row.since_ms for row in rows if isinstance(row, BrokerRow) and not _lives(row)},
        story=story,
        as_of_ms=as_of_ms,
    )


def context_of_rows(context: Context, metadata: Collection[MetadataRow], as_of_ms: int) -> Context:
    """The cluster as `controller.step` judges it by these rows: what can be played on; times are not the rows'."""
    rows = sorted(metadata, key=lambda row: _CAUSES_FIRST.index(type(row)))
    read = tuple(_complete_read(context.header.cluster, rows, as_of_ms))
    return read_with_departures(context, read, shows_partitions=False).context


def _complete_read(cluster: str, rows: Collection[MetadataRow], as_of_ms: int) -> Iterator[Record]:
    zxid = max((row.zxid for row in rows), default=-1)

    def record(seq: int, kind: RecordKind, znode: _Znode = ("", None, -1, 0)) -> Record:
        path, content, czxid, owner = znode
        data = None if content is None else _JSON.encode(content).decode()
        return Record(
            cluster=cluster,
            generation=1,
            seq=seq,
            kind=kind,
            observed_ms=as_of_ms,
            path=path,
            data=data,
            czxid=czxid,
            mzxid=czxid,
            version=0,
            ephemeral_owner=owner,
            zxid=zxid,
        )

    yield record(0, RecordKind.SNAPSHOT_BEGIN)
    seq = 0
    for seq, znode in enumerate(_znodes(rows), start=1):
        yield record(seq, RecordKind.NODE, znode)
    yield record(seq + 1, RecordKind.SNAPSHOT_END)


def _znodes(rows: Iterable[MetadataRow]) -> _Znodes:
    topics: dict[str, list[PartitionRow]] = {}
    for row in rows:
        match row:
            case ControllerRow():
                yield "/controller_epoch", row.epoch, -1, 0
                if row.broker >= 0:
                    owner = 0 if row.kraft_epoch >= 0 else _session(row.broker)
                    named = {"version": 2, "brokerid": row.broker, "kraftControllerEpoch": row.kraft_epoch}
                    yield "/controller", named, -1, owner
            case MigrationRow() if row.pulse_ms is not None:
                led = {"kraft_controller_id": row.leader, "kraft_controller_epoch": row.kraft_epoch}
                at = {"kraft_metadata_offset": row.offset, "kraft_metadata_epoch": row.kraft_epoch}
                yield "/migration", {"version": 0, **at, **led}, -1, 0
            case BrokerRow() if _lives(row):  # one in KRaft mode has no znode, and no other sign that all states show
                registration = {"version": 5, "endpoints": row.endpoints, "rack": row.rack}
                yield f"/brokers/ids/{row.broker}", registration, row.epoch, _session(row.broker)
            case PartitionRow():
                topics.setdefault(row.topic, []).append(row)
    for name, partitions in sorted(topics.items()):
        yield from _znodes_of_topic(name, partitions)
    for name, partitions in sorted(topics.items()):
        yield from _states(name, partitions)


def _lives(row: BrokerRow) -> bool:
    return row.registered or row.inferred


def _session(broker: int) -> int:
    """A session of the broker's own, which no row has: without one /controller would be a KRaft controller's."""
    return broker + 1


def _znodes_of_topic(name: str, partitions: list[PartitionRow]) -> _Znodes:
    path = f"/brokers/topics/{name}"
    needed = [len(row.isr) + row.in_sync_lacking for row in partitions if row.in_sync_lacking]
    if needed:
        yield f"/config/topics/{name}", {"version": 1, "config": {LEAST_IN_SYNC: str(max(needed))}}, -1, 0
    assignment = {
        "version": 2,
        "partitions": {str(row.partition): row.replicas for row in partitions},
        "adding_replicas": {str(row.partition): row.adding_replicas for row in partitions if row.adding_replicas},
        "removing_replicas": {str(row.partition): row.removing_replicas for row in partitions if row.removing_replicas},
    }
    yield path, assignment, -1, 0
    if any(row.deleting for row in partitions):
        yield f"/admin/delete_topics/{name}", {}, -1, 0


def _states(topic: str, partitions: list[PartitionRow]) -> _Znodes:
    for row in partitions:
        if row.leader_epoch >= 0:
            state = {
                "version": 1,
                "leader": row.leader,
                "leader_epoch": row.leader_epoch,
                "controller_epoch": row.controller_epoch,
                "isr": row.isr,
            }
            yield f"/brokers/topics/{topic}/partitions/{row.partition}/state", state, -1, 0


def _with_times(context: Context, rows: Iterable[MetadataRow]) -> Context:
    header, topics = context.header.copy(), context.topics.mutable_copy()
    header.departures = Departures()  # rows do not say how a broker left
    judged_otherwise = False
    for row in rows:
        match row:
            case ControllerRow():
                header.term.since_ms = row.since_ms
            case MigrationRow():
                header.migration.phase = _PHASES.get(row.phase, header.migration.phase)
                header.migration.since_ms = row.since_ms
            case BrokerRow() if row.broker in header.brokers:
                times = {"since_ms": row.since_ms, "inferred": row.inferred}
                lives = msgspec.structs.replace(header.brokers[row.broker], **times)
                header.brokers = {**header.brokers, row.broker: lives}
            case PartitionRow() if row.problem is not None:
                own, problem = topics.own(row.topic).partitions, Problem(row.problem)
                judged_otherwise = judged_otherwise or own[row.partition].problem is not problem
                own[row.partition] = msgspec.structs.replace(
                    own[row.partition], problem=problem, problem_since_ms=row.problem_since_ms or 0
                )
    frozen = topics.freeze()
    if judged_otherwise:  # the job knows more than its rows say; what counts the problems must have the same
        header.tally.gauges = count_gauges(frozen, header.counting_rules)
        header.tally.issues, header.tally.offline_by_topic = index_issues(frozen, header)
    return Context(header, frozen)
