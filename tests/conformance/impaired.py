"""Partitions that clients cannot use or may lose at quiet moments, by the znodes alone and by the rows.

An operator's first question is compared here. `agreement` compares the controller's steps to that state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import Problem
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from tests.conformance.gauge_samples import QUIET_MS

Partition = tuple[str, int]

LEADERLESS = {problem.value for problem in (Problem.NO_LIVE_IN_SYNC_REPLICA, Problem.ELECTION_DUE, Problem.LEADERLESS)}
SHORT = {problem.value for problem in (Problem.UNDER_MIN_ISR, Problem.UNDER_REPLICATED)}


class Impaired(NamedTuple):
    """The impaired partitions at the end of a quiet moment, which is after the record of this number."""

    seq: int
    leaderless: frozenset[Partition]
    short: frozenset[Partition]  # led, but under-replicated or under min ISR


def by_znodes(records: Sequence[Record], *, caps_min_isr: bool) -> Iterator[Impaired]:
    """Yield the partitions without a registered leader or with missing ISR members, except topics under deletion."""
    states: dict[Partition, dict[str, Any]] = {}
    others: dict[str, str] = {}
    adding: dict[Partition, frozenset[int]] = {}
    began_ms = next(record.observed_ms for record in records if record.kind is RecordKind.SNAPSHOT_END)
    changed_ms, last = began_ms, records[0]
    for record in records:
        if record.path and record.author and record.observed_ms - changed_ms > QUIET_MS:
            yield _impaired(last.seq, states, others, adding, caps_min_isr=caps_min_isr)
        last = record
        if not record.path:
            continue
        changed_ms = record.observed_ms
        match record.path.split("/"):
            case ["", "brokers", "topics", topic, "partitions", partition, "state"]:
                if record.kind is RecordKind.DELETED:
                    states.pop((topic, int(partition)), None)
                elif record.data:
                    states[topic, int(partition)] = json.loads(record.data)
            case ["", "admin", "reassign_partitions"]:
                others[record.path] = "" if record.kind is RecordKind.DELETED else record.data or ""
                adding = _adding(others, adding)
            case ["", "controller_epoch"]:
                adding = _adding(others, {})  # a new controller reads all replicas, including added ones
            case _ if record.kind is RecordKind.DELETED:
                others.pop(record.path, None)
            case _:
                others[record.path] = record.data or ""
    yield _impaired(last.seq, states, others, adding, caps_min_isr=caps_min_isr)


def _adding(others: Mapping[str, str], known: Mapping[Partition, frozenset[int]]) -> dict[Partition, frozenset[int]]:
    """Return the replicas that reassignments by znode add. Up to 2.3 the topic's znode does not mark them."""
    asked = others.get("/admin/reassign_partitions")
    adding: dict[Partition, frozenset[int]] = {}
    for entry in json.loads(asked)["partitions"] if asked else ():
        topic, number = entry["topic"], entry["partition"]
        assigned = json.loads(others.get(f"/brokers/topics/{topic}") or '{"partitions": {}}')["partitions"]
        added = frozenset(entry["replicas"]) - frozenset(assigned.get(str(number), ()))
        adding[topic, number] = known.get((topic, number), added)  # the request is rewritten when one partition is done
    return adding


def _impaired(
    seq: int,
    states: Mapping[Partition, Mapping[str, Any]],
    others: Mapping[str, str],
    asked: Mapping[Partition, frozenset[int]],
    *,
    caps_min_isr: bool,
) -> Impaired:
    live = {int(path.rpartition("/")[2]) for path in others if path.startswith("/brokers/ids/")}
    leaderless, short = set(), set()
    for topic in {topic for topic, _ in states} - {
        path.rpartition("/")[2] for path in others if "/delete_topics/" in path
    }:
        assigned = json.loads(others[f"/brokers/topics/{topic}"])
        config = json.loads(others.get(f"/config/topics/{topic}") or '{"config": {}}')["config"]
        for number, replicas in assigned["partitions"].items():
            state = states.get((topic, int(number)))
            if state is None:
                continue
            needed = int(config.get("min.insync.replicas", 1))
            needed = min(needed, len(replicas)) if caps_min_isr else needed
            adding = {*assigned.get("adding_replicas", {}).get(number, ()), *asked.get((topic, int(number)), ())}
            if state["leader"] not in live:
                leaderless.add((topic, int(number)))
            elif len(state["isr"]) < max(needed, len(set(replicas) - adding)):
                short.add((topic, int(number)))
    return Impaired(seq, frozenset(leaderless), frozenset(short))


def by_rows(rows: Sequence[Row], moments: Sequence[int]) -> Iterator[Impaired]:
    """Yield the partitions that the rows up to each of these records call impaired."""
    leaderless: set[Partition] = set()
    short: set[Partition] = set()
    published = (row for row in rows if isinstance(row, PartitionRow))
    row = next(published, None)
    for seq in moments:
        while row is not None and row.seq <= seq:
            for partitions, problems in ((leaderless, LEADERLESS), (short, SHORT)):
                change = partitions.add if row.problem in problems else partitions.discard
                change((row.topic, row.partition))
            row = next(published, None)
        yield Impaired(seq, frozenset(leaderless), frozenset(short))
