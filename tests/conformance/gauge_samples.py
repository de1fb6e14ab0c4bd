"""The brokers' own gauges beside the replica's, at quiet moments.

The mapping from Kafka's gauges to ours belongs here. A moment is quiet if ZooKeeper made no change within a second. A
broker without a session reports a past cluster, so only registered brokers count. Of the controller's gauges only those
of the controller in ZooKeeper count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import BrokerRow
from tests.conformance.recording import Recording, Replay

QUIET_MS = 1_000

OF_CONTROLLER: Mapping[str, Callable[[GaugesRow], int]] = {
    "activecontrollercount": lambda row: int(row.controller >= 0),
    "activebrokercount": lambda row: row.active_brokers,
    "globaltopiccount": lambda row: row.topics,
    "globalpartitioncount": lambda row: row.partitions,
    "offlinepartitionscount": lambda row: row.offline_partitions,
    "preferredreplicaimbalancecount": lambda row: row.preferred_replica_imbalance,
    "topicstodeletecount": lambda row: row.topics_to_delete,
    "replicastodeletecount": lambda row: row.replicas_to_delete,
    "topicsineligibletodeletecount": lambda row: row.topics_ineligible_to_delete,
    "replicasineligibletodeletecount": lambda row: row.replicas_ineligible_to_delete,
}

OF_BROKER: Mapping[str, Callable[[GaugesRow, BrokerId], int]] = {
    "rm_leadercount": lambda row, broker: row.leaders_by_broker.get(broker, 0),
    "rm_partitioncount": lambda row, broker: row.replicas_by_broker.get(broker, 0),
    "rm_underreplicatedpartitions": lambda row, broker: row.under_replicated_by_broker.get(broker, 0),
    "rm_underminisrpartitioncount": lambda row, broker: row.under_min_isr_by_broker.get(broker, 0),
    "rm_atminisrpartitioncount": lambda row, broker: row.at_min_isr_by_broker.get(broker, 0),
}


class Differing(NamedTuple):
    """A gauge that differed at a moment."""

    at_ms: int
    broker: int
    gauge: str
    real: int
    ours: int


def compare_gauges(
    recording: Recording, replay: Replay, busy_ms: Sequence[int] = ()
) -> tuple[int, int, list[Differing]]:
    """Return the number of equal gauges, the number of compared ones, and the differing gauges.

    Moments of writes, and those at which a controller was busy, are not quiet.
    """
    changes = sorted([*(record.observed_ms for record in recording.records() if record.path), *busy_ms])
    times = [row.time_ms for row in replay.gauges]
    registrations = [row for row in replay.rows if isinstance(row, BrokerRow)]
    equal, compared = 0, 0
    wrong: list[Differing] = []
    for sample in recording.jmx():
        at_ms = int(sample["t"] * 1000)
        before = bisect_right(times, at_ms)
        if not sample.get("m") or not before or not _is_quiet(changes, at_ms):
            continue
        if sample["b"] not in _registered(registrations, at_ms):
            continue
        for name, real, ours in _pairs(sample, replay.gauges[before - 1]):
            compared += 1
            equal += real == ours
            if real != ours:
                wrong.append(Differing(at_ms, sample["b"], name, real, ours))
    return equal, compared, wrong


def _is_quiet(changes: list[int], at_ms: int) -> bool:
    return bisect_right(changes, at_ms - QUIET_MS) == bisect_right(changes, at_ms + QUIET_MS)


def _registered(registrations: list[BrokerRow], at_ms: int) -> set[int]:
    newest = {row.broker: row.registered for row in registrations if row.time_ms <= at_ms}
    return {broker for broker, registered in newest.items() if registered}


def _pairs(sample: Mapping[str, Any], row: GaugesRow) -> list[tuple[str, int, int]]:
    gauges, broker = sample["m"], sample["b"]
    pairs = []
    if row.controller == broker:
        pairs = [(name, int(gauges[name]), ours(row)) for name, ours in OF_CONTROLLER.items() if name in gauges]
    return pairs + [(name, int(gauges[name]), ours(row, broker)) for name, ours in OF_BROKER.items() if name in gauges]
