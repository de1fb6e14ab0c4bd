"""Rows of `kontrast replay`, as JSON objects, or as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from cli.printing.standard_output import print_json, print_line, print_plain
from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import RefusedRow, Request, Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import UNKNOWN_ZXID, BrokerId, Zxid
from controller.contract.metadata_rows import BrokerRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.view.gauges import gauges_row
from controller.view.types import FOLLOWING, Context
from questions.replay import Agreement, Incidents, MigrationPast
from wording.said import line
from wording.times import moment_in_utc

# Fields about a row's place in the stream, which a replay lacks.
_OF_THE_STREAM: Final = frozenset({"v", "cluster", "generation", "seq", "ordinal", "effect", "status"})

# By Kafka's name of each gauge, its value in the row.
_KAFKA_GAUGES: Final[Mapping[str, Callable[[GaugesRow], Any]]] = {
    "ActiveControllerCount": lambda row: int(row.controller >= 0),
    "ActiveBrokerCount": lambda row: row.active_brokers,
    "GlobalTopicCount": lambda row: row.topics,
    "GlobalPartitionCount": lambda row: row.partitions,
    "OfflinePartitionsCount": lambda row: row.offline_partitions,
    "PreferredReplicaImbalanceCount": lambda row: row.preferred_replica_imbalance,
    "TopicsToDeleteCount": lambda row: row.topics_to_delete,
    "ReplicasToDeleteCount": lambda row: row.replicas_to_delete,
    "TopicsIneligibleToDeleteCount": lambda row: row.topics_ineligible_to_delete,
    "ReplicasIneligibleToDeleteCount": lambda row: row.replicas_ineligible_to_delete,
    "UnderReplicatedPartitions": lambda row: row.under_replicated_partitions,
    "UnderMinIsrPartitionCount": lambda row: row.under_min_isr_partitions,
    "AtMinIsrPartitionCount": lambda row: row.at_min_isr_partitions,
    "LeaderCount": lambda row: _by_broker(row.leaders_by_broker),
    "PartitionCount": lambda row: _by_broker(row.replicas_by_broker),
}


class RowWriter:
    """Writer of the chosen outputs to standard output, with the gauges after each transaction that changed them.

    Rows are held back until the first znode, so a chroot without a cluster prints no row.
    """

    def __init__(
        self, outputs: Collection[str], *, as_json: bool, from_zxid: Zxid = UNKNOWN_ZXID, unchanged: bool = False
    ) -> None:
        self.refused = 0
        self.saw_znodes = False
        self._outputs = outputs
        self._as_json = as_json
        self._from_zxid = from_zxid
        self._unchanged = unchanged
        self._incidents = Incidents()
        self._migration = MigrationPast()
        self._gauges: dict[str, Any] | None = None
        self._newest: Record | None = None
        self._held: list[Mapping[str, Any]] = []
        self._before: Agreement | None = None  # None until the output begins

    def before(self, record: Record, context: Context) -> None:
        """Note a record. If it belongs to another transaction, the previous transaction is complete."""
        if self._before is None and record.zxid >= self._from_zxid:
            self._before = Agreement.so_far(context.header)
        if self._newest is not None and (record.zxid != self._newest.zxid or record.kind is RecordKind.HEARTBEAT):
            self._write_gauges(context)
        self._newest = record
        if record.kind is RecordKind.NODE and not self.saw_znodes:
            self.saw_znodes = True
            for fields in self._held:
                self._write(fields)

    def end(self, context: Context) -> None:
        """Finish after the last record, with the phases of a migration, the incidents as text, and the agreement."""
        self._write_gauges(context)
        last = self._newest
        if last is None or not self.saw_znodes:
            return
        agreement = None if self._before is None else Agreement.so_far(context.header).since(self._before)
        if not self._as_json:
            agreed = [] if agreement is None else [line(agreement.line())]
            print_plain((*self._migration.said(), *self._incidents.said(), *agreed))
            return
        for phase in self._migration.objects():
            self._write(phase)
        if agreement is not None:
            stamp = {"kind": "agreement", "zxid": _hex(last.zxid), "time_ms": last.observed_ms}
            self._write(stamp | agreement.fields())

    def row(self, row: Row) -> None:
        """Write the row if its output is chosen and it says something."""
        if isinstance(row, RefusedRow) and "refused" not in self._outputs:
            self.refused += 1
        if isinstance(row, BrokerRow):
            self._incidents.take_broker(row)
        if row.zxid < self._from_zxid or not _is_written(row):
            return
        if isinstance(row, AlertRow):
            self._incidents.take(row)
        self._migration.take(row)
        if row.output in self._outputs and (self._unchanged or not _changes_nothing(row)):
            self._write(row_object(row))

    def _write_gauges(self, context: Context) -> None:
        record = self._newest
        if "gauges" not in self._outputs or record is None or context.header.phase is not FOLLOWING:
            return
        stamp = (record.cluster, record.generation, record.seq, 0, record.zxid, record.observed_ms)
        row = gauges_row(context.header, stamp)
        gauges = {name: get(row) for name, get in _KAFKA_GAUGES.items()}
        if gauges == self._gauges or record.zxid < self._from_zxid:
            return
        before = self._gauges or {}
        changed = {name: value for name, value in gauges.items() if self._as_json or before.get(name) != value}
        self._write({"kind": "gauges", "zxid": _hex(record.zxid), "time_ms": record.observed_ms} | changed)
        self._gauges = gauges

    def _write(self, fields: Mapping[str, Any]) -> None:
        if not self.saw_znodes:
            self._held.append(fields)
        elif self._as_json:
            print_json(fields, flush=False)
        else:
            print_line(sentence(fields), flush=False)


def row_object(row: Row) -> dict[str, Any]:
    """Return the row's JSON object, with the time and the zxid in front and the cause at the end."""
    fields = {key: value for key, value in msgspec.to_builtins(row).items() if key not in _OF_THE_STREAM}
    common = {"kind": fields.pop("kind"), "zxid": _hex(row.zxid), "time_ms": fields.pop("time_ms")}
    last = {"cause": fields.pop("cause")} if "cause" in fields else {}
    del fields["zxid"]
    if isinstance(row, Transition) and row.subject == "replica":
        fields["replica"] = fields.pop("broker")
    return common | fields | last


def _is_written(row: Row) -> bool:
    """Return whether to write the row. Provisional rows are left out, and gauges are written by transaction."""
    if isinstance(row, (Transition, Request)):
        return row.status is Status.FINAL
    return not isinstance(row, GaugesRow)


def _changes_nothing(row: Row) -> bool:
    """Return whether a transition keeps its state without an election. Kafka's machines make many of these."""
    return isinstance(row, Transition) and row.from_state == row.to_state and row.leader is None


def _hex(zxid: Zxid) -> str | None:
    return f"{zxid:#x}" if zxid >= 0 else None


def _by_broker(counts: Mapping[BrokerId, int]) -> dict[str, int]:
    return {str(broker): count for broker, count in sorted(counts.items())}


# --- lines for people


def sentence(fields: Mapping[str, Any]) -> str:
    """Return the JSON object as a line for people, with time, zxid, kind and content."""
    said = _SAID.get(fields["kind"], _pairs)(fields)
    return f"{moment_in_utc(fields['time_ms'])}  {fields['zxid'] or '-':>8}  {fields['kind']:<10}  {said}"


def _transition(fields: Mapping[str, Any]) -> str:
    who = [fields["subject"], _topic_partition(fields), str(fields.get("broker", ""))]
    who += [f"on broker {fields['replica']}"] if "replica" in fields else []
    written = f"  {_written(fields)}" if "leader" in fields else ""
    return f"{' '.join(filter(None, who))}: {fields['from']} -> {fields['to']}{written}  ({fields['cause']})"


def _request(fields: Mapping[str, Any]) -> str:
    part = f" (part {fields.get('part', 1)} of {fields['parts']})" if "parts" in fields else ""
    deletes = " delete" if fields.get("delete_partitions") else ""
    said = f"{fields['api']}{deletes} to {_numbers(fields['brokers'])}{part}: "
    states = fields.get("partition_states", ())
    if not states:
        return said + ("all partitions" if fields.get("all_partitions") else "brokers only")
    named = "; ".join(map(_requested, states[:_NAMED_PARTITIONS]))
    more = f"; {len(states) - _NAMED_PARTITIONS} more" if len(states) > _NAMED_PARTITIONS else ""
    return said + named + more


def _requested(state: Mapping[str, Any]) -> str:
    flags = (("is_new", "new"), ("delete_partition", "delete"))
    details = [_written(state)] if "leader" in state else []
    details += [f"replicas {_numbers(state['replicas'])}"] if "replicas" in state else []
    details += [word for key, word in flags if state.get(key)]
    return f"{_topic_partition(state)} {', '.join(details)}".rstrip()


def _partition(fields: Mapping[str, Any]) -> str:
    said = f"{_topic_partition(fields)} {fields['state']}  {_written(fields)}, replicas {_numbers(fields['replicas'])}"
    return f"{said}  {fields['reason']}" if fields["reason"] else said


def _alert(fields: Mapping[str, Any]) -> str:
    return f"{fields['state']} {fields['severity']} {fields['alert']} of {fields['subject']}: {fields['cause']}"


def _pairs(fields: Mapping[str, Any]) -> str:
    said = {key: value for key, value in fields.items() if key not in ("kind", "zxid", "time_ms")}
    return "  ".join(f"{key} {_value_in_words(value)}" for key, value in said.items() if value is not None)


def _value_in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}:{_value_in_words(count)}" for key, count in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _written(fields: Mapping[str, Any]) -> str:
    leader = {-1: "none", -2: "none (being deleted)"}.get(fields["leader"], fields["leader"])
    return f"leader {leader} (epoch {fields['leader_epoch']}), isr {_numbers(fields['isr'])}"


def _topic_partition(fields: Mapping[str, Any]) -> str:
    topic = fields.get("topic", "")
    return f"{topic}-{fields['partition']}" if "partition" in fields else topic


def _numbers(numbers: Collection[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


_NAMED_PARTITIONS: Final = 8
_SAID: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "transition": _transition,
    "request": _request,
    "partition": _partition,
    "alert": _alert,
}
