"""What is the case with partitions: troubles of the same kind with the same brokers as their cause are one condition.

Here belong the sentences. Which partitions are in trouble is counted by `troubles`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from controller import alert_kinds as kinds
from controller.conditions import Condition, counted, either, explanation, named, whereabouts
from controller.context import EXAMPLES_NAMED, Header, TroubleGroup
from controller.outputs import Severity
from controller.troubles import Trouble, parse_group

# A live broker may take its time to delete, or to copy a replica.
_DELETING_MS: Final = 5 * 60_000
_COPYING_MS: Final = 30 * 60_000

# A controller that has written what came later is not paused.
_PASSED_OVER_MS: Final = 10_000

_BACK: Final = "they are led again, are gone, or wait for other brokers"


class Affected(msgspec.Struct, frozen=True):
    """The partitions of some groups together; `others` are live replicas that are not in sync."""

    brokers: tuple[int, ...]
    count: int
    since_ms: int
    examples: tuple[str, ...]
    others: tuple[int, ...] = ()

    @property
    def partitions(self) -> str:
        """How many there are, in words."""
        return counted(self.count, "partition")

    @property
    def verb(self) -> str:
        """The verb that goes with their number."""
        return "has" if self.count == 1 else "have"


def conditions_of_partitions(header: Header) -> Iterator[Condition]:
    """One for each trouble and each set of brokers that is its cause."""
    found: dict[tuple[Trouble, tuple[int, ...]], list[tuple[tuple[int, ...], TroubleGroup]]] = {}
    for key, group in header.troubles.items():
        trouble, brokers, others = parse_group(key)
        found.setdefault((trouble, brokers), []).append((others, group))
    # What is said last of the same alert holds: some that are offline count more than others that come back.
    for trouble, brokers in sorted(found, key=lambda at: _ORDER[at[0]]):
        condition = _CONDITIONS[trouble](_together(brokers, found[trouble, brokers]), header)
        if condition is not None:
            yield condition


def _together(brokers: tuple[int, ...], found: Iterable[tuple[tuple[int, ...], TroubleGroup]]) -> Affected:
    groups = [group for _, group in found]
    return Affected(
        brokers,
        sum(group.count for group in groups),
        min(group.since_ms for group in groups),
        tuple(name for group in groups for name in group.examples)[:EXAMPLES_NAMED],
        tuple(sorted({broker for others, _ in found for broker in others})),
    )


def _condition(kind: kinds.AlertKind, affected: Affected, header: Header, cause: str, ending: str) -> Condition:
    """A condition that these brokers are the cause of, held back if they have a reason to be missed."""
    excuse = explanation(affected.brokers, header)
    condition = _unexcused(kind, affected, header, cause, ending)
    if excuse is None:
        return condition
    return msgspec.structs.replace(condition, cause=f"{cause} ({excuse})", severity=Severity.INFO)


def _unexcused(kind: kinds.AlertKind, affected: Affected, header: Header, cause: str, ending: str) -> Condition:
    brokers = affected.brokers
    subject = named(brokers) if brokers else "partitions"
    return Condition(
        kind=kind,
        subject=subject,
        group=subject,
        cause=cause,
        ending=ending,
        since_ms=affected.since_ms,
        evidence=whereabouts(brokers, header),
        partitions=affected.count,
        examples=affected.examples,
        broker=brokers[0] if len(brokers) == 1 else None,
    )


def _offline(affected: Affected, header: Header) -> Condition:
    brokers = affected.brokers
    gone = [broker for broker in brokers if broker not in header.brokers]
    if not gone:
        cause = (
            f"{affected.partitions} {affected.verb} in-sync replicas only in failed log directories of {named(brokers)}"
        )
        return _unexcused(kinds.PARTITIONS_OFFLINE, affected, header, cause, _BACK)
    back = f"broker {either(gone)} returns"
    cause = f"{affected.partitions} {affected.verb} no live in-sync replica: offline until {back}"
    losers = [broker for broker in affected.others if broker in header.brokers]
    if losers:
        cause += (
            f"; an unclean election would make broker {either(losers)} leader and lose what only {named(brokers)} had"
        )
    return _condition(kinds.PARTITIONS_OFFLINE, affected, header, cause, _BACK)


def _never_created(affected: Affected, header: Header) -> Condition:
    cause = (
        f"{affected.partitions} {affected.verb} no state, because none of their replicas was live when they were made; "
        f"broker {either(affected.brokers)} would create them"
    )
    return _condition(kinds.PARTITIONS_OFFLINE, affected, header, cause, _BACK)


def _leaderless(affected: Affected, header: Header) -> Condition:
    live = [broker for broker in affected.brokers if broker in header.brokers]
    cause = f"{affected.partitions} {affected.verb} no leader though in-sync replica {either(live)} is live"
    return _condition(kinds.PARTITIONS_LEADERLESS, affected, header, cause, _BACK)


def _coming_back(affected: Affected, header: Header) -> Condition:
    """They stay offline until they are elected; a controller that takes over leaves some so for a moment only."""
    cause = f"{affected.partitions} {affected.verb} no leader yet: {_elector(header)} must elect one"
    condition = _condition(kinds.PARTITIONS_OFFLINE, affected, header, cause, _BACK)
    return msgspec.structs.replace(condition, patience_ms=kinds.ELECTION_DUE.patience_ms)


def _election_due(affected: Affected, header: Header) -> Condition:
    cause = (
        f"{affected.partitions} {affected.verb} lost their leader, {named(affected.brokers)}: "
        f"{_elector(header)} must elect another"
    )
    return _condition(kinds.ELECTION_DUE, affected, header, cause, _BACK)


def _election_owed(affected: Affected, header: Header) -> Condition:
    """Only the controller can be the cause, whatever excuses the brokers: it lives, for it has written since."""
    if not header.acting:
        return _election_due(affected, header)
    elections = "an election" if affected.count == 1 else "elections"
    cause = (
        f"{_elector(header)} owes {elections} and has written what came later: {affected.partitions} "
        f"{affected.verb} no leader"
    )
    condition = _unexcused(kinds.CONTROLLER_OVERDUE, affected, header, cause, _BACK)
    return msgspec.structs.replace(condition, patience_ms=_PASSED_OVER_MS)


def _creation_due(affected: Affected, header: Header) -> Condition:
    cause = f"{affected.partitions} {affected.verb} no state yet, and {_elector(header)} must write it"
    return _condition(kinds.CREATION_DUE, affected, header, cause, _BACK)


def _elector(header: Header) -> str:
    if header.acting:
        return f"controller {header.controller} in epoch {header.controller_epoch}"
    return "the next controller (none is active)"


def _under_min_isr(affected: Affected, header: Header) -> Condition:
    lacking = f"without {named(affected.brokers)}" if affected.brokers else "with all their replicas"
    cause = f"{affected.partitions} {affected.verb} fewer in-sync replicas than min.insync.replicas {lacking}"
    return _condition(kinds.UNDER_MIN_ISR, affected, header, cause, "enough replicas are in sync again")


def _at_min_isr(affected: Affected, header: Header) -> Condition:
    cause = (
        f"{affected.partitions} {affected.verb} just min.insync.replicas in sync without {named(affected.brokers)}: "
        "one less, and writes with acks=all fail"
    )
    return _condition(kinds.AT_MIN_ISR, affected, header, cause, "more replicas are in sync again")


def _under_replicated(affected: Affected, header: Header) -> Condition | None:
    """Only of replicas that are there and have nothing to excuse them: other brokers have an alert of their own."""
    there = [broker for broker in affected.brokers if broker in header.brokers]
    if not there or explanation(affected.brokers, header) is not None:
        return None
    cause = f"{affected.partitions} {affected.verb} replicas on {named(there)} that are not in sync"
    condition = _unexcused(kinds.UNDER_REPLICATED, affected, header, cause, "the replicas are in sync again")
    returned_ms = max(header.brokers[broker].since_ms for broker in there)
    return msgspec.structs.replace(condition, since_ms=max(affected.since_ms, returned_ms))


def _one_left(affected: Affected, header: Header) -> Condition:
    cause = (
        f"{affected.partitions} {affected.verb} one replica in sync without {named(affected.brokers)}: the loss of "
        f"broker {either(affected.others)} would take them offline"
    )
    return _unexcused(kinds.SINGLE_POINT_OF_FAILURE, affected, header, cause, "other replicas are in sync again")


def _undeleted(affected: Affected, header: Header) -> Condition:
    away = tuple(broker for broker in affected.brokers if broker not in header.brokers)
    if away:
        cause = f"the deletion of topics waits for {named(away)}, which must delete {affected.partitions} and is away"
    else:
        cause = f"the deletion of topics waits for {named(affected.brokers)}, live, to delete {affected.partitions}"
    condition = _condition(kinds.DELETION_STUCK, affected, header, cause, "they are deleted, or no longer to be")
    return msgspec.structs.replace(condition, patience_ms=None if away else _DELETING_MS)


def _reassigning(affected: Affected, header: Header) -> Condition:
    away = tuple(broker for broker in affected.brokers if broker not in header.brokers)
    waits = f"wait for {named(affected.brokers)} to get in sync" if affected.brokers else "have all replicas in sync"
    cause = f"reassignments of {affected.partitions} {waits}" + (f", of which {named(away)} is away" if away else "")
    condition = _condition(kinds.REASSIGNMENT_STUCK, affected, header, cause, "they are complete, or were cancelled")
    patient = bool(affected.brokers) and not away
    return msgspec.structs.replace(condition, patience_ms=_COPYING_MS if patient else None)


_CONDITIONS: Final[Mapping[Trouble, Callable[[Affected, Header], Condition | None]]] = {
    Trouble.COMING_BACK: _coming_back,
    Trouble.NEVER_CREATED: _never_created,
    Trouble.OFFLINE: _offline,
    Trouble.ELECTION_DUE: _election_due,
    Trouble.ELECTION_OWED: _election_owed,
    Trouble.CREATION_DUE: _creation_due,
    Trouble.LEADERLESS: _leaderless,
    Trouble.UNDER_MIN_ISR: _under_min_isr,
    Trouble.AT_MIN_ISR: _at_min_isr,
    Trouble.UNDER_REPLICATED: _under_replicated,
    Trouble.ONE_LEFT: _one_left,
    Trouble.UNDELETED: _undeleted,
    Trouble.REASSIGNING: _reassigning,
}
_ORDER: Final = {trouble: at for at, trouble in enumerate(_CONDITIONS)}
