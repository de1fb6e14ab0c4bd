"""Date what one complete read of ZooKeeper found, by the times in its znodes, and judge it as it was found.

A read has no past: to `controller.step` everything in it begins now, and what has just begun alerts nobody. The znodes
know more: what follows from some of them holds at least since the last of these was written. What follows from a
broker's absence has no date, for that leaves no znode.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from controller.contract.ids import NO_BROKER, NO_LEADER
from controller.contract.records import Position, Record, RecordKind
from controller.derived.partition_issues import issues_of
from controller.model.alert_state import AlertState
from controller.model.brokers import Departures
from controller.model.context import Context, Header
from controller.model.topics import Partition
from controller.step import step
from controller.transaction.transaction import Outcome
from questions.picture import NOT_KNOWN_MS

_STATUS = '{"session":"look"}'


def dated(context: Context, written_ms: Mapping[str, int]) -> Context:
    """The context with the beginnings that the znodes' times prove; the others are `NOT_KNOWN_MS`."""
    header, topics = context.header.copy(), context.topics.mutable_copy()
    rules = header.counting_rules
    since_ms = dict.fromkeys(header.tally.issues, header.time_ms)
    for name, topic in context.topics:
        for number, partition in topic.partitions.items():
            keys = issues_of(topic, partition, rules)
            if not keys and partition.problem is None:
                continue
            began_ms = _began_ms(name, number, partition, header, written_ms)
            since_ms |= {key: min(began_ms, since_ms[key]) for key in keys}
            topics.own(name).partitions[number] = msgspec.structs.replace(partition, problem_since_ms=began_ms)
    header.tally.issues = {
        key: msgspec.structs.replace(group, since_ms=since_ms[key]) for key, group in header.tally.issues.items()
    }
    header.departures = Departures()  # nobody saw one
    if header.controller == NO_BROKER:
        header.term.since_ms = NOT_KNOWN_MS
    return Context(header, topics.freeze())


def _began_ms(name: str, number: int, partition: Partition, header: Header, written_ms: Mapping[str, int]) -> int:
    """Since when, at least, the partition is as it is."""
    value = partition.zk_state
    live_replicas = not header.brokers.keys().isdisjoint(partition.replicas)
    from_absence = (
        not live_replicas if value is None else value.leader != NO_LEADER and value.leader not in header.brokers
    )
    if from_absence:
        return NOT_KNOWN_MS
    topic = f"/brokers/topics/{name}"
    znodes = [f"{topic}/partitions/{number}/state", topic, f"/config/topics/{name}", f"/admin/delete_topics/{name}"]
    if value is not None and value.leader == NO_LEADER:
        # The controller has known since then at the latest that one of them could lead again.
        znodes += [f"/brokers/ids/{broker}" for broker in value.isr]
    return max(written_ms.get(znode, NOT_KNOWN_MS) for znode in znodes)


def judged_without_patience(context: Context) -> Outcome:
    """The alerts of what was found: patience is for what was seen to begin, and nothing was."""
    fresh = context.header.copy()
    happened = fresh.alerts.occurrences
    fresh.alerts = AlertState(occurrences=happened)
    suspected = _heartbeat(Context(fresh, context.topics)).context
    alerts = suspected.header.alerts
    old = suspected.header.copy()
    begun = dict.fromkeys(alerts.suspected_ms, NOT_KNOWN_MS)
    old.alerts = AlertState(incidents=alerts.incidents, occurrences=happened, suspected_ms=begun)
    return _heartbeat(Context(old, suspected.topics))


def _heartbeat(context: Context) -> Outcome:
    at: Position = context.header.position
    record = Record(
        cluster=context.header.cluster,
        generation=at.generation,
        seq=at.seq + 1,
        kind=RecordKind.HEARTBEAT,
        observed_ms=context.header.time_ms,
        zxid=context.header.zxid,
        data=_STATUS,
    )
    return step(context, record)
