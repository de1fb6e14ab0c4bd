"""Context of a cluster from one complete read of ZooKeeper, dated by the times in its znodes.

A read has no past. `controller.step` takes everything in it for new, and its controller for idle. Three things differ:

- **Dead leaders.** A controller that a read finds may have taken over long ago, and passed over the read's dead
  leaders. A single read cannot know that, and mostly the leader has just died. The read is therefore applied with the
  leader alive, and its death follows as a record. The controller's next writes then follow as after any other death.
- **Dates.** A znode's last write is the latest moment from which a fact in it holds. A broker's absence has no date,
  because it leaves no znode.
- **Patience.** Alerts wait until a condition has lasted. A read saw no beginnings, so its alerts open at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import NO_BROKER, NO_LEADER, UNKNOWN_ZXID, BrokerId, PartitionId
from controller.contract.problem import Problem
from controller.contract.records import Position, Record, RecordKind
from controller.contract.row import NOT_KNOWN_MS
from controller.model.alert_state import AlertState
from controller.model.brokers import Departures
from controller.model.context import LOOK, LOOK_AT_TOPICS, Context, Header
from controller.model.topics import Partition
from controller.step import step, steps
from controller.transaction.conclusion import Outcome
from controller.view.partition_issues import issues_of

_BROKERS: Final = "/brokers/ids/"
_NO_SESSION: Final = -1  # ZooKeeper's sessions are positive
_REGISTRATION: Final = '{"version":1,"host":"gone","port":-1,"jmx_port":-1}'


def context_of_read(
    empty: Context,
    read: Sequence[Record],
    written_ms: Mapping[str, int],
    *,
    shows_partitions: bool = True,
    has_all_topics: bool = True,
) -> Outcome:
    """Build the context from a complete read, with its rows. `written_ms` has the times of znodes' last writes.

    A moment that no znode proves is `NOT_KNOWN_MS`. Alerts are those of the cluster as it was found.
    """
    found = _read_with_departures(empty, read, shows_partitions=shows_partitions)
    outcome = _judged_without_patience(_dated(found.context, written_ms), LOOK if has_all_topics else LOOK_AT_TOPICS)
    rows = [row for row in found.effects if not isinstance(row, AlertRow)]
    return Outcome(outcome.context, (*rows, *outcome.effects))


def _read_with_departures(context: Context, read: Sequence[Record], *, shows_partitions: bool) -> Outcome:
    """Apply a complete read, and then the departures of the leaders that are not registered."""
    *znodes, end = read
    loaded = steps(context, znodes, shows_partitions=shows_partitions)
    missing = sorted(_leaders(loaded.context) - loaded.context.header.brokers.keys())
    seen = [_registered(end, broker) for broker in missing]
    gone = [_gone(end, broker) for broker in missing]
    ending = [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate((*seen, end, *gone), start=end.seq)]
    ended = steps(loaded.context, ending, shows_partitions=shows_partitions)
    return Outcome(ended.context, loaded.effects + ended.effects)


def _leaders(context: Context) -> set[BrokerId]:
    """Return the brokers that lead a partition, by its state."""
    states = (partition.zk_state for _, topic in context.topics for partition in topic.partitions.values())
    return {state.leader for state in states if state is not None and state.leader >= 0}


def _registered(end: Record, broker: BrokerId) -> Record:
    return msgspec.structs.replace(
        end,
        kind=RecordKind.NODE,
        path=f"{_BROKERS}{broker}",
        data=_REGISTRATION,
        version=0,
        ephemeral_owner=_NO_SESSION - broker,
        zxid=UNKNOWN_ZXID,
    )


def _gone(end: Record, broker: BrokerId) -> Record:
    return msgspec.structs.replace(
        end, kind=RecordKind.DELETED, path=f"{_BROKERS}{broker}", data=None, zxid=UNKNOWN_ZXID
    )


def _dated(context: Context, written_ms: Mapping[str, int]) -> Context:
    """Return the context with the beginnings that the znodes' times prove. Other beginnings are `NOT_KNOWN_MS`."""
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
    header.departures = Departures()  # a read shows no departure
    if header.controller == NO_BROKER:
        header.term.since_ms = NOT_KNOWN_MS
    return Context(header, topics.freeze())


def _began_ms(
    name: str, number: PartitionId, partition: Partition, header: Header, written_ms: Mapping[str, int]
) -> int:
    """Return the latest possible beginning of the partition's present state, by its znodes."""
    value, live = partition.zk_state, header.brokers.keys()
    if value is None:
        from_absence = live.isdisjoint(partition.replicas)
    else:
        needed = value.isr if partition.problem is Problem.UNDER_MIN_ISR else (value.leader,)
        from_absence = value.leader != NO_LEADER and not live >= {*needed}
    if from_absence:
        return NOT_KNOWN_MS
    topic = f"/brokers/topics/{name}"
    znodes = [f"{topic}/partitions/{number}/state", topic, f"/config/topics/{name}", f"/admin/delete_topics/{name}"]
    if value is not None and value.leader == NO_LEADER:
        # By the registration of these brokers at the latest, the controller knew that one could lead again.
        znodes += [f"/brokers/ids/{broker}" for broker in value.isr]
    return max(written_ms.get(znode, NOT_KNOWN_MS) for znode in znodes)


def _judged_without_patience(context: Context, session: str) -> Outcome:
    """Return the alerts of the found state at once. Patience starts at an observed beginning, which a read lacks."""
    fresh = context.header.copy()
    happened = fresh.alerts.occurrences
    fresh.alerts = AlertState(occurrences=happened)
    suspected = _heartbeat(Context(fresh, context.topics), session).context
    alerts = suspected.header.alerts
    old = suspected.header.copy()
    begun = dict.fromkeys(alerts.suspected_ms, NOT_KNOWN_MS)
    # Each found incident may have begun long ago.
    incidents = tuple(msgspec.structs.replace(incident, since_ms=NOT_KNOWN_MS) for incident in alerts.incidents)
    old.alerts = AlertState(incidents=incidents, occurrences=happened, suspected_ms=begun)
    return _heartbeat(Context(old, suspected.topics), session)


def _heartbeat(context: Context, session: str) -> Outcome:
    at: Position = context.header.position
    record = Record(
        cluster=context.header.cluster,
        generation=at.generation,
        seq=at.seq + 1,
        kind=RecordKind.HEARTBEAT,
        observed_ms=context.header.time_ms,
        zxid=context.header.zxid,
        data=f'{{"session":"{session}"}}',
    )
    return step(context, record)
