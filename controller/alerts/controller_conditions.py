"""Conditions of the controller and of the cluster as a whole, such as absent, overdue, flapping, topics without ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from controller.alerts.conditions import Condition
from controller.alerts.occurrences import THE_CLUSTER
from controller.contract.alert_row import Severity
from controller.contract.ids import NO_BROKER, BrokerId
from controller.contract.znode_table import Place
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.context import Header
from controller.model.controllership import Ownership
from controller.model.event import EventKind
from controller.says.alert_kinds import kinds as kinds
from controller.says.remedies.remedy import Advice
from controller.view.ensemble import ensemble_in_words
from controller.view.flawed_znodes import no_controller_because, why_no_controller
from controller.view.health import whereabouts
from controller.view.partition_issues import PartitionIssue
from wording.sentences import capital, counted, in_brackets, listed, one_of, plural

_condition: Final = partial(Condition, group="controller")
_OVERDUE_NAMED: Final = 5
_ENTRIES_IN_A_SENTENCE: Final = 2

# Five terms within a minute are no ordinary failovers.
_FLAPPING_TERMS: Final = 5
_MOVING_TERMS: Final = 4  # warns first, since the open info ControllerMoved sends no message for later moves
_FLAPPING_WITHIN_MS: Final = 60_000

# Kafka's brokers answer StopReplica first, so a delay of these writes is not the controller's. DeletionStuck covers it.
_WAIT_FOR_BROKERS: Final = frozenset({EventKind.TOPIC_DELETION_STOP_REPLICA_RESPONSE_RECEIVED})
_NO_LEADER: Final = "partitions may lack a leader"
_NOT_CREATED: Final = "clients cannot use new partitions"
_NOT_MOVED: Final = "replicas do not move to the brokers of the reassignment"
_NOT_PREFERRED: Final = "leaders do not move to the preferred replicas, so load may be uneven"
_NOT_DELETED: Final = "topics stay, with their data, until they are deleted"

# The worst first. An event that is not here changes no leader and no replica.
_EFFECTS_OF_LATENESS: Final = (
    (EventKind.BROKER_CHANGE, _NO_LEADER),
    (EventKind.CONTROLLER_FAILOVER, _NO_LEADER),
    (EventKind.LOG_DIR_EVENT_NOTIFICATION, _NO_LEADER),
    (EventKind.LEADER_AND_ISR_RESPONSE_RECEIVED, _NO_LEADER),
    (EventKind.UNCLEAN_LEADER_ELECTION_ENABLE, _NO_LEADER),
    (EventKind.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE, _NO_LEADER),
    (EventKind.CONTROLLED_SHUTDOWN, "a broker that shuts down still leads partitions"),
    (EventKind.TOPIC_CHANGE, _NOT_CREATED),
    (EventKind.PARTITION_MODIFICATIONS, _NOT_CREATED),
    (EventKind.ZK_PARTITION_REASSIGNMENT, _NOT_MOVED),
    (EventKind.API_PARTITION_REASSIGNMENT, _NOT_MOVED),
    (EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE, _NOT_MOVED),
    (EventKind.REPLICA_LEADER_ELECTION, _NOT_PREFERRED),
    (EventKind.AUTO_PREFERRED_REPLICA_LEADER_ELECTION, _NOT_PREFERRED),
    (EventKind.TOPIC_DELETION, _NOT_DELETED),
)
_FAILS: Final = "Each election fails, until the znode is mended."
_GOES_ON: Final = "The named broker goes on, if it took over before."
_NONE_LIVE: Final = Advice("Start the brokers, because none is registered.")
_UNREGISTERED_MS: Final = 10_000
_STORM_AT_LEAST: Final = 100
_BACKLOG_AT_ONCE: Final = 1_000  # notifications that no working controller leaves
MINUTE_MS: Final = 60_000
_REBALANCE_AFTER_MS: Final = 10 * MINUTE_MS


def conditions_of_controller(header: Header) -> Iterator[Condition]:
    """Yield the problems of the controller and its duties."""
    checks = (
        _absent,
        _overdue,
        _ghost,
        _flapping,
        _poisoned,
        _unfit,
        _not_preferred,
        _backlog,
        _invalid_reassignment,
        _ignored_deletions,
        _imbalance,
        _storm,
    )
    yield from filter(None, (check(header) for check in checks))


def _absent(header: Header) -> Condition | None:
    if header.controller != NO_BROKER:
        return None
    reason = why_no_controller(header)
    because, ensemble = reason and f", because {reason}", ensemble_in_words(header)
    return _condition(
        kind=kinds.NO_CONTROLLER,
        cause=f"no broker is controller{because}: partitions of dead brokers get no new leader, and "
        "topics are neither created nor deleted",
        ending="a broker is controller again",
        since_ms=header.term.since_ms,
        advice=_advice_on_znodes(header) or (None if header.brokers else _NONE_LIVE),
        expected=_FAILS if reason else None if header.brokers else "The first broker that starts becomes controller.",
        evidence=(f"/controller_epoch is {header.controller_epoch}", *([f"ZooKeeper: {ensemble}"] if ensemble else [])),
    )


def _overdue(header: Header) -> Condition | None:
    if header.controller == NO_BROKER:  # because NoController pages then
        return None
    patience_ms = kinds.CONTROLLER_OVERDUE.patience_ms
    due = [
        event
        for event in header.events.values()
        if event.writes_due and header.time_ms - event.time_ms >= patience_ms and event.kind not in _WAIT_FOR_BROKERS
    ]
    if not due:
        return None
    due.sort(key=lambda event: event.id)
    overdue = sum(event.writes_due for event in due)
    return _condition(
        kind=kinds.CONTROLLER_OVERDUE,
        cause=f"controller {header.controller} in epoch {header.controller_epoch} is late with "
        f"{counted(overdue, 'write')}: {_late_effect({event.kind for event in due})}. The oldest is due for "
        f"{due[0].sentence}",
        ending="no write is overdue",
        since_ms=due[0].time_ms,
        evidence=tuple(
            f"{event.sentence}, at zxid {event.zxid:#x}: {counted(event.writes_due, 'write')} due"
            for event in due[:_OVERDUE_NAMED]
        ),
        broker=header.controller,
    )


def _late_effect(late: Collection[EventKind]) -> str:
    """Return the worst effect of events whose writes are late, as a clause."""
    effects = (effect for kind, effect in _EFFECTS_OF_LATENESS if kind in late)
    return next(effects, "clients and brokers read old metadata")


def _ghost(header: Header) -> Condition | None:
    broker = header.controller
    unregistered = broker != NO_BROKER and header.term.ownership is Ownership.ELECTED and broker not in header.brokers
    blocks = header.blocks_elections and broker in header.brokers
    if not header.is_ghost and not unregistered and not blocks:
        return None
    if blocks:
        cause = (
            f"/controller is persistent: no broker can be elected after controller {broker}, and partitions of dead "
            "brokers then get no new leader"
        )
    elif unregistered:
        cause = f"controller {broker} is not registered: brokers do not find it"
    else:
        edited = header.term.ownership is Ownership.OVERWRITTEN
        why = "was edited" if edited else "belongs to another session"
        why = "is persistent" if header.term.is_persistent else why
        cause = (
            "no broker acts as controller: partitions of dead brokers get no new leader. "
            f"/controller names broker {broker} but {why}"
        )
    owner = "no session, because it is persistent" if header.term.is_persistent else f"session {header.term.session:#x}"
    return _condition(
        kind=kinds.GHOST_CONTROLLER,
        subject="persistent" if blocks else THE_CLUSTER,  # so that its broker's end pages again
        cause=cause,
        ending="/controller is gone, or names a registered broker that was elected",
        since_ms=header.ghost_since_ms if header.is_ghost else None,
        patience_ms=_UNREGISTERED_MS if unregistered else None,
        advice=Advice(f"Restart broker {broker} if its process lives.") if unregistered else None,
        expected=_GOES_ON if blocks or unregistered else None,
        evidence=(f"/controller is owned by {owner}", *whereabouts((broker,), header)),
        broker=broker,
    )


def step_without_controller(header: Header) -> Advice | None:
    """Return the step that ends the lack of an acting controller, None while none is told of."""
    missing = _absent(header) or _ghost(header)
    if missing is None or missing.id not in header.alerts.open or header.blocks_elections:
        return None
    return missing.advice or missing.kind.advice


def _flapping(header: Header) -> Condition | None:
    recent = [at_ms for at_ms in header.former.terms_since_ms if header.time_ms - at_ms <= _FLAPPING_WITHIN_MS]
    if len(recent) < _MOVING_TERMS:
        return None
    is_page, why = len(recent) >= _FLAPPING_TERMS, why_no_controller(header)
    effect = "each term is too short to replace dead leaders" if is_page else "each failover delays elections"
    if not why and header.triggers.preferred is not None:
        why = "if /admin/preferred_replica_election names a partition without a state, delete it"
    more = f". {capital(why)}" if why else ""
    return _condition(
        kind=kinds.CONTROLLER_FLAPPING,
        cause=f"{len(recent)} controllers took over within a minute (epoch {header.controller_epoch}): {effect}{more}",
        ending="fewer controllers took over within the last minute",
        since_ms=recent[0],
        severity=None if is_page else Severity.WARN,
        advice=_advice_on_znodes(header),
    )


def _advice_on_znodes(header: Header) -> Advice | None:
    flawed = no_controller_because(header)
    if flawed is not None:
        return flawed.advice
    return kinds.TOPIC_UNLOADABLE.advice if header.damaged.unloadable else None


def _ignored_deletions(header: Header) -> Condition | None:
    waiting = header.deletions.unheeded
    if not waiting or header.led_by_kraft:  # because KRaft does not look at the entries
        return None
    entries = plural(len(waiting), "an entry", "entries")
    verb = plural(len(waiting), "deletes", "delete")
    named = in_brackets(sorted(waiting), len(waiting))
    disabled = "" if header.settings.delete_topic_enable else ": deletion is disabled (delete.topic.enable)"
    return Condition(
        kind=kinds.DELETION_IGNORED,
        cause=f"/admin/delete_topics has {entries} that {verb} no topic{named}{disabled}",
        ending="the entries are gone",
        since_ms=min(waiting.values()),
        examples=tuple(sorted(waiting)[:EXAMPLES_NAMED]),
    )


def _poisoned(header: Header) -> Condition | None:
    if not (header.is_poisoned and header.acting):
        return None
    broker = header.controller
    return _condition(
        kind=kinds.CONTROLLER_POISONED,
        subject=f"broker {broker}",
        cause=f"controller {broker} in epoch {header.controller_epoch} can move no replica (KAFKA-12315): acks=all "
        f"waits for dead replicas, which stay in ISRs, and deletions do not end. Restart broker {broker}",
        ending="another process is controller, or this one has moved a replica",
        since_ms=header.term.began_ms,
        evidence=_shown(header, broker),
        broker=broker,
    )


def _shown(header: Header, broker: BrokerId) -> tuple[str, ...]:
    registered = f"broker {broker} is still that process, registered with epoch {header.former.poisoned[broker]:#x}"
    return *filter(None, (header.former.poisoned_by.get(broker),)), registered


def _unfit(header: Header) -> Condition | None:
    unfit = tuple(
        broker
        for broker, registration in sorted(header.former.poisoned.items())
        if broker in header.brokers and header.brokers[broker].epoch == registration
        if not (broker == header.controller and header.acting)
    )
    if not unfit:
        return None
    return _condition(
        kind=kinds.BROKER_POISONED,
        cause=f"{listed(unfit)} must not become controller again: as controller "
        f"{plural(len(unfit), 'its process', 'their processes')} could move no replica (KAFKA-12315). Restart "
        f"{plural(len(unfit), 'it', 'them one by one')}",
        ending="their processes have ended, or one is controller",
        evidence=tuple(sentence for broker in unfit for sentence in _shown(header, broker)),
        broker=unfit[0],
        brokers=unfit,
    )


def _not_preferred(header: Header) -> Condition | None:
    preferred = header.preferred_controllers
    if not preferred or not header.acting or header.controller in preferred:
        return None
    return _condition(
        kind=kinds.CONTROLLER_NOT_PREFERRED,
        cause=f"broker {header.controller} is controller, but {one_of(preferred)} is preferred",
        ending="a preferred broker is controller",
        broker=header.controller,
    )


def _backlog(header: Header) -> Condition | None:
    # A new controller reads all states, and up to 1.0 it leaves older notifications until the next one comes.
    notified = header.triggers.isr_notifications.values()
    waiting = [each.since_ms for each in notified if each.zxid > header.term.controller_zxid]
    if not waiting or not header.acting:
        return None
    least = "at least " if len(waiting) >= _BACKLOG_AT_ONCE else ""  # no more are kept
    unread = f"{least}{counted(len(waiting), 'notification')} of ISR changes"
    return _condition(
        kind=kinds.NOTIFICATION_BACKLOG,
        cause=f"controller {header.controller} has not read {unread}: brokers and clients know old ISRs",
        ending="no notification is left",
        since_ms=min(waiting),
        patience_ms=0 if len(waiting) >= _BACKLOG_AT_ONCE else None,
    )


def _invalid_reassignment(header: Header) -> Condition | None:
    entries = header.triggers.reassign
    busy = any(event.writes_due for event in header.events.values())
    # ZnodeRefused has the step for a request that Kafka cannot read. Afterwards the request still blocks the next one.
    is_told = Place.REASSIGN_PARTITIONS.value in header.flawed and kinds.ZNODE_REFUSED.name in header.alerts.occurrences
    if entries is None or not header.acting or busy or is_told:
        return None
    if any(key.startswith(PartitionIssue.REASSIGNING.value) for key in header.tally.issues):
        return None
    named = ", ".join(
        f"{entry.topic}-{entry.partition} to {list(entry.replicas)}" for entry in entries[:_ENTRIES_IN_A_SENTENCE]
    )
    more = ", …" if len(entries) > _ENTRIES_IN_A_SENTENCE else ""
    return _condition(
        kind=kinds.INVALID_REASSIGNMENT,
        cause="/admin/reassign_partitions stays but reassigns no partition: it blocks the next reassignment there. "
        f"It names {named or 'no partition'}{more}",
        ending="/admin/reassign_partitions is gone",
        partitions=len(entries),
        examples=tuple(f"{entry.topic}-{entry.partition}" for entry in entries[:EXAMPLES_NAMED]),
    )


def _imbalance(header: Header) -> Condition | None:
    gauge_counts, settings = header.tally.gauges, header.settings
    worst = 0
    for broker, imbalanced in gauge_counts.imbalanced.items():
        if broker in header.brokers:
            worst = max(worst, imbalanced * 100 // gauge_counts.preferring[broker])
    if worst <= settings.leader_imbalance_per_broker_percentage:
        return None
    interval_ms = settings.leader_imbalance_check_interval_seconds * 1_000
    automatic = settings.auto_leader_rebalance_enable
    count = gauge_counts.imbalanced_partitions
    return _condition(
        kind=kinds.PREFERRED_IMBALANCE,
        cause=f"{counted(count, 'partition')} {plural(count, 'is', 'are')} not led by the preferred replica: load is "
        f"uneven. One live broker lacks {worst} % of the partitions that prefer it",
        ending="enough partitions are led by the preferred replica",
        patience_ms=2 * interval_ms + MINUTE_MS if automatic else _REBALANCE_AFTER_MS,
        expected="The controller moves the leaders back at its next check."
        if automatic
        else "The controller elects no leader without a request.",
        partitions=count,
    )


def _storm(header: Header) -> Condition | None:
    partitions = header.partitions
    storm = max(_STORM_AT_LEAST, 2 * partitions)
    pace = header.alerts.recent_elections
    elections = max(pace.last_minute, header.elections - pace.total)
    if elections <= storm:
        return None
    return _condition(
        kind=kinds.ELECTION_STORM,
        cause=f"{elections} leaders were elected within a minute for {counted(partitions, 'partition')}: clients keep "
        "looking for leaders",
        ending="fewer leaders are elected",
    )
