"""Conditions of partitions, one for each kind and incident, with its sentence.

Partitions by issue are counted in `view/partition_issues`, brokers joined to incidents in `incidents`. Partitions that
no broker's absence explains are one condition for each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from controller.alerts.affected import (
    FORBID_FIRST,
    Affected,
    Blamed,
    damage_in_words,
    must_stay_up,
    next_step,
    returns,
    where_they_are,
)
from controller.alerts.conditions import Condition
from controller.alerts.controller_conditions import step_without_controller
from controller.alerts.incident_partitions import IncidentPartitions
from controller.contract.alert_row import Severity
from controller.model.alert_state import Outage
from controller.model.context import Header
from controller.rules.topic_ranks import rank_at
from controller.says.alert_kinds import kinds as kinds
from controller.says.remedies.partitions import ELECT_UNCLEAN, FORBID_UNCLEAN
from controller.says.remedies.remedy import Advice
from controller.view.gauges import common_leader
from controller.view.health import absence, is_without_trace, never_registered, whereabouts
from controller.view.held_back import DELETING_MS, deletion_off, held_back
from controller.view.migration import never_elected_count
from controller.view.partition_issues import LAST_ONES, LOST, OFFLINE_ISSUES, PartitionIssue
from wording.facts import Fact
from wording.sentences import counted, in_brackets, listed, one_of, plural

_DELETES: Final = "The controller removes the topics once all replicas are deleted."
# How long a live broker may take to copy a replica.
_COPYING_MS: Final = 30 * 60_000

# A controller that has written later events is not paused, so less patience is enough.
_PASSED_OVER_MS: Final = 10_000

# While KRaft leads, a controlled shutdown looks like a crash in ZooKeeper. A broker that was restarted in the other
# mode led again within 6 to 12 s (six restarts). A broker with a large log needs a maintenance window.
_RESTARTING_MS: Final = 30_000

_BACK: Final = "the partitions have leaders again, are gone, or wait for other brokers"
_CONTROLLER: Final = "controller"
_ELECTION_DUE: Final = f"{PartitionIssue.ELECTION_DUE.value}/"  # beginning of such a group's key


def conditions_of_partitions(
    header: Header, by_incident: Iterable[tuple[Outage | None, Affected]]
) -> Iterator[Condition]:
    """Yield a condition for each kind and incident."""
    for incident, affected in by_incident:
        partitions = IncidentPartitions(header, incident, affected)
        yield from _unusable(partitions)
        found = ((describe, partitions.affected.of(*issues)) for issues, describe in _CONDITIONS.items())
        yield from filter(None, (describe(partitions, each) for describe, each in found if each.groups))


def _unusable(partitions: IncidentPartitions) -> Iterator[Condition]:
    """Yield a condition of offline partitions, with those that reject acks=all, or only a condition of the latter."""
    refusing = partitions.affected.of(PartitionIssue.UNDER_MIN_ISR).unexcused()
    offline = _offline(partitions, refusing)
    if offline is not None:
        yield offline
    if refusing.groups and (offline is None or offline.severity is Severity.INFO and refusing.excuse is None):
        yield _under_min_isr(partitions, refusing)


def _offline(partitions: IncidentPartitions, refusing: Affected) -> Condition | None:
    """Return the condition of offline partitions, with the brokers whose return ends it and other effects."""
    header, kind = partitions.header, kinds.PARTITIONS_OFFLINE
    offline = partitions.affected.of(*OFFLINE_ISSUES).unexcused()
    lost = offline.of(*LOST, PartitionIssue.NEVER_CREATED)
    if not lost.groups:
        return _coming_back(partitions, offline) if offline.groups else None
    rejected = _rejected(refusing, header)
    said = (f"{_offline_partitions(lost, header)}{returns(lost, refusing, header)}", *rejected.values())
    cause = ". ".join(said)
    waiting, never = offline.of(PartitionIssue.COMING_BACK), offline.of(PartitionIssue.NEVER_CREATED)
    if waiting.count:
        verb = plural(waiting.count, "waits", "wait")
        cause += f". {waiting.count:,} more only {verb} for an election by {_elector(header)}"
    if never.count:
        cause += f". {never.count:,} {plural(never.count, 'was', 'were')} created while no replica was live"
    # A live replica could win an unclean election.
    helped = lost.of(*LOST).where(lambda group: not header.brokers.keys().isdisjoint(group.others))
    cause += _unclean(helped, lost, header)
    rest = damage_in_words(
        partitions.affected.of(PartitionIssue.UNDER_REPLICATED, PartitionIssue.AT_MIN_ISR, *LAST_ONES), header
    )
    condition = partitions.condition(
        kind,
        lost,
        cause + (f". {rest}" if rest else ""),
        _BACK,
        examples=offline.examples,
        replaces=(kinds.UNDER_MIN_ISR,),
        advice=_advice(helped.count, lost, header),
        damage=_damage(Fact.OFFLINE, lost) | rejected,
        rank=rank_at(min(lost.rank, refusing.rank)),
        next_step=next_step((*lost.groups, *refusing.groups), header),
    )
    return _not_yet_paged(condition, lost, header)


def _damage(fact: Fact, found: Affected, more: str = "") -> dict[str, str]:
    """Return the damage with its sentence, which names the most important topic first, empty if there is none."""
    return {fact.word: f"{fact.of(found.count)}{more}{in_brackets(found.examples, found.count)}"} if found.count else {}


def _rejected(found: Affected, header: Header) -> dict[str, str]:
    """Return the partitions that reject acks=all as damage. Titles count some as offline while their elections wait."""
    late_ms = header.time_ms - kinds.ELECTION_DUE.patience_ms
    due = (group for key, group in header.tally.issues.items() if key.startswith(_ELECTION_DUE))
    waits = any(group.since_ms <= late_ms for group in due)
    return _damage(Fact.REJECTS_ACKS_ALL, found, ", or will once they have a leader" if waits else "")


def _advice(helped: int, lost: Affected, header: Header) -> Advice | None:
    """Return advice if an unclean election helps only some of the lost partitions, or none."""
    if not lost.brokers:
        if not lost.of(*LOST).groups:
            return Advice("Assign brokers to the partition in the topic's znode, or take it out of there.")
        return Advice(
            "Put an in-sync broker back into the assignment in the topic's znode, so that no record is lost, and "
            "let the controller fail over.",
            (ELECT_UNCLEAN,),
        )
    if helped == lost.count:
        is_left = lost.with_empty_isr.count == lost.count and header.brokers.keys() >= {*lost.brokers}
        return Advice(remedies=(ELECT_UNCLEAN.met,)) if is_left else None  # no return puts a broker into an empty ISR
    if not lost.of(*LOST).groups:
        if all(never_registered(header, broker) for broker in lost.brokers):
            return Advice("Check the ids in the assignment. No election can help. If these brokers exist, start them.")
        return Advice(
            "Start one of the named brokers, so that the controller creates the partitions. No election can help."
        )
    if not helped and lost.with_empty_isr.count == lost.count:
        return Advice(
            "Start the named brokers with their data, the last leader of a partition first, because the first one to "
            "return becomes leader where unclean elections are allowed."
        )
    look = "Bring back the named brokers with their data, so that no record is lost. "
    if not lost.with_empty_isr.count and header.brokers.keys() >= {*lost.brokers}:
        look = f"{kinds.LOG_DIR_FAILED.advice.look} Rescue its data, because no other replica in sync has it. "
    if not helped:
        return Advice(look + "No other live broker has a replica, so no election can help.")
    look += f"An unclean election makes only {helped} of {lost.partitions} usable."
    return Advice(look, (ELECT_UNCLEAN,))


def _not_yet_paged(condition: Condition, lost: Affected, header: Header) -> Condition:
    """Return the condition, as info while KRaft leads and a broker's restart may bring the partitions back."""
    if not header.led_by_kraft or header.time_ms - lost.since_ms >= _RESTARTING_MS:
        return condition
    return msgspec.structs.replace(condition, severity=Severity.INFO)


def _coming_back(partitions: IncidentPartitions, waiting: Affected) -> Condition | None:
    """Return the condition of partitions that only wait for an election, once the controller is late with it."""
    kind, header = kinds.PARTITIONS_OFFLINE, partitions.header
    cause = f"{_offline_partitions(waiting, header)} until {_elector(header)} elects a leader"
    condition = partitions.condition(
        kind, waiting, cause, _BACK, patience_ms=0, replaces=(kinds.UNDER_MIN_ISR,), advice=kinds.ELECTION_DUE.advice
    )
    patience_ms = kinds.ELECTION_DUE.patience_ms
    is_due = header.time_ms - waiting.since_ms >= patience_ms or condition.id in header.alerts.open
    return _not_yet_paged(_up_to_controller(condition, header), waiting, header) if is_due else None


def _up_to_controller(condition: Condition, header: Header) -> Condition:
    """Return the condition of elections. Without an acting controller only the controller's alert pages and helps."""
    step = step_without_controller(header)
    if step is None:
        return condition
    severity = condition.severity or Severity.WARN
    return msgspec.structs.replace(condition, group=_CONTROLLER, advice=step, severity=severity)


def _offline_partitions(offline: Affected, header: Header) -> str:
    """Return a clause that names partitions of the worst topic first."""
    by_topic, them = header.tally.offline_by_topic, plural(offline.count, "it", "them")
    ranked = offline.ranked
    worst_first = sorted(ranked, key=lambda name: (ranked[name], -by_topic.get(name.rpartition("-")[0], 0)))
    return f"{Fact.OFFLINE.counted(offline.count)}{in_brackets(worst_first, offline.count)}: no client can use {them}"


def _unclean(helped: Affected, lost: Affected, header: Header) -> str:
    """Return a sentence with the cost of an unclean election, if a live replica could win it."""
    allowed = lost.of(*LOST) if header.allows_unclean_election else lost.of(PartitionIssue.OFFLINE_UNCLEAN)
    if any(not set(group.others) <= {*group.brokers} for group in allowed.groups):
        before = "A replica out of sync may be elected before, as unclean elections are allowed, and records are lost"
        return f". {before}. {FORBID_FIRST}"
    if not helped.brokers:
        return ""
    winners = [broker for broker in helped.others if broker in header.brokers]
    election, losers = "An unclean election", "in-sync replicas have"
    if len(winners) <= 2 and len(helped.groups) == 1:
        election += f" of {one_of(winners)}"
        losers = f"{listed(helped.brokers)} {plural(len(helped.brokers), 'has', 'have')}"
    only = "" if helped.count == lost.count else f"make only {helped.count} usable, and "
    return f". {election} would {only}lose the records that only {losers}"


def _under_min_isr(partitions: IncidentPartitions, refusing: Affected) -> Condition:
    lacking = (
        where_they_are(refusing.brokers, partitions.header)
        if refusing.brokers
        else "all replicas are in sync, but min.insync.replicas asks for more. Lower min.insync.replicas"
    )
    damage = _rejected(refusing, partitions.header)
    return partitions.condition(
        kinds.UNDER_MIN_ISR,
        refusing,
        f"{damage[Fact.REJECTS_ACKS_ALL.word]}: {lacking}{must_stay_up(partitions.affected, partitions.header)}",
        "enough replicas are in sync again",
        damage=damage,
        rank=rank_at(refusing.rank),
        next_step=next_step(refusing.groups, partitions.header),
    )


def _leaderless(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    if never_elected_count(partitions.header):
        return None  # the alert on all partitions that the controller refuses to touch has the advice
    live = [broker for broker in found.brokers if broker in partitions.header.brokers]
    cause = (
        f"{Fact.WITHOUT_LEADER.of(found.count)}{in_brackets(found.examples, found.count)}: no client can use "
        f"{plural(found.count, 'it', 'them')}, though {one_of(live)} is live and in sync"
    )
    return partitions.condition(kinds.PARTITIONS_LEADERLESS, found, cause, _BACK, group=_CONTROLLER)


def _election_due(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    """Return the condition of elections that the controller has yet to hold, or of all `found` if none is active."""
    due = found.of(PartitionIssue.ELECTION_DUE) if partitions.header.acting else found
    if not due.groups:
        return None
    cause = (
        f"{due.partitions}{in_brackets(due.examples, due.count)} lost {plural(due.count, 'its', 'their')} leader, "
        f"{listed(due.brokers)}. No client can use {plural(due.count, 'it', 'them')} until "
        f"{_elector(partitions.header)} elects another"
    )
    advice = None
    if not partitions.header.acting and partitions.header.allows_unclean_election:
        cause += ", uncleanly if only a lagging one is live"
        advice = Advice(remedies=(FORBID_UNCLEAN.given(f"{one_of(due.brokers)} can return"),))
    condition = partitions.condition(kinds.ELECTION_DUE, due, cause, _BACK, advice=advice)
    return _up_to_controller(condition, partitions.header)


def _election_owed(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    """Return the condition of elections that the controller passed over.

    An excuse of the brokers does not count, because the controller has made later writes.
    """
    if not partitions.header.acting:
        return None
    cause = (
        f"{_elector(partitions.header)} passed over {plural(found.count, 'an election', 'elections')} and made later "
        f"writes: {Fact.WITHOUT_LEADER.of(found.count)}{in_brackets(found.examples, found.count)}"
    )
    condition = partitions.condition(
        kinds.CONTROLLER_OVERDUE, found, cause, _BACK, subject="elections", group=_CONTROLLER
    )
    controller = partitions.header.controller
    return msgspec.structs.replace(
        condition, cause=cause, severity=None, broker=controller, brokers=(controller,), patience_ms=_PASSED_OVER_MS
    )


def _creation_due(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    if partitions.header.led_by_kraft:
        # KRaft leads a partition whose state ZooKeeper lacked when it was copied, and does not write it back.
        return None
    them, is_new = plural(found.count, "it", "them"), plural(found.count, "it is", "they are")
    lost = found.of(PartitionIssue.STATE_LOST)
    if_new = f" if {is_new} new" if lost.groups else ""
    cause = (
        f"{counted(found.count, 'partition', 'has')} no state{in_brackets(found.examples, found.count)}: "
        f"{_elector(partitions.header)} creates {them}{if_new}"
    )
    if lost.groups:
        cause += ". Brokers ignore the new state of an old partition, because they know a higher leader epoch"
    return partitions.condition(kinds.CREATION_DUE, found, cause, _BACK)


def _elector(header: Header) -> str:
    if header.acting and step_without_controller(header) is None:
        return f"controller {header.controller} in epoch {header.controller_epoch}"
    if header.led_by_kraft:
        return f"KRaft controller {header.migration.claim.controller}"
    return "the next controller (none is active)"


def _under_replicated(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    """Return the condition of replicas on live brokers without an excuse. Absent brokers have their own alert."""
    header, lagging = partitions.header, {}
    # If all lagging replicas have one leader, it is the cause. A single read names it at once, because it cannot wait.
    lonely = not header.knows_past and common_leader(header, found.brokers) is not None
    patience_ms = 0 if lonely else kinds.UNDER_REPLICATED.patience_ms
    for group in found.groups:
        there = tuple(broker for broker in group.brokers if broker in header.brokers)
        if there and group.excuse is None:
            since_ms = max(group.since_ms, *(header.brokers[broker].since_ms for broker in there))
            if header.time_ms - since_ms >= patience_ms:
                lagging[group.brokers] = msgspec.structs.replace(group, brokers=there, since_ms=since_ms)
    if not lagging:
        return None
    ripe = Affected(tuple(lagging.values()))
    lacking = partitions.affected.where(lambda group: group.brokers in lagging)
    ending = "the replicas are in sync again"
    leader = common_leader(header, ripe.brokers)
    if leader is None:
        cause = f"{listed(ripe.brokers, 'lags behind')}: {damage_in_words(lacking, header)}"
        why = held_back(ripe.brokers, header)
        advice = Advice(why) if why else None
        return partitions.condition(kinds.UNDER_REPLICATED, ripe, cause, ending, advice=advice)
    led = f"all {counted(ripe.count, 'partition')} that lack {listed(ripe.brokers)}, which are in sync elsewhere"
    cause = f"broker {leader} leads {led}: {damage_in_words(lacking, header)}"
    condition = partitions.condition(kinds.UNDER_REPLICATED, ripe, cause, ending, patience_ms=0)
    advice = Advice(
        f"Look at the connections, disks and log of broker {leader} first, because its followers are in sync with "
        "other leaders. Move its leaderships away once another replica is in sync."
    )
    return msgspec.structs.replace(condition, advice=advice, evidence=whereabouts((leader, *ripe.brokers), header))


def _undeleted(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    header = partitions.header

    def patience_ms(group: Blamed) -> int:
        return _patience_ms(group, header, kinds.DELETION_STUCK.patience_ms, DELETING_MS)

    ripe = found.where(lambda group: header.time_ms - group.since_ms >= patience_ms(group))
    if not ripe.groups:
        return None
    topics = sorted({name.rpartition("-")[0] for name in ripe.examples})
    away = [broker for broker in ripe.brokers if broker not in header.brokers]
    which_are = f"which {plural(len(away or ripe.brokers), 'is', 'are')} {'down' if away else 'live'}"
    which = ", ".join(topics[:2]) + (", …" if len(topics) > 2 else "")
    left = f"{ripe.partitions} {plural(ripe.count, 'is', 'are')} not deleted"
    cause = f"deletion of {which} waits for {listed(away or ripe.brokers)}, {which_are}: {left}"
    if any(is_without_trace(header, broker) for broker in away):
        cause = f"deletion of {which} waits for {listed(away)}: {left}, because {absence(away, header)}"
    ending = "the topics are deleted, or their deletion was withdrawn"
    condition = partitions.condition(kinds.DELETION_STUCK, ripe, cause, ending, patience_ms=0)
    if away:
        return condition
    why = deletion_off(header)
    expected = "While delete.topic.enable is false, the controller does nothing." if why else _DELETES
    return msgspec.structs.replace(condition, advice=Advice(why) if why else None, expected=expected)


def _reassigning(partitions: IncidentPartitions, found: Affected) -> Condition | None:
    header = partitions.header

    def patience_ms(group: Blamed) -> int:
        at_once_ms = kinds.REASSIGNMENT_STUCK.patience_ms
        return _patience_ms(group, header, at_once_ms, _COPYING_MS) if group.brokers else at_once_ms

    ripe = found.where(lambda group: header.time_ms - group.since_ms >= patience_ms(group))
    if not ripe.groups:
        return None
    away = [broker for broker in ripe.brokers if broker not in header.brokers]
    cause = f"{plural(ripe.count, 'reassignment', 'reassignments')} of {ripe.partitions}"
    cause += f"{in_brackets(ripe.examples, ripe.count)} {plural(ripe.count, 'waits', 'wait')} "
    waits = f"until {listed(ripe.brokers, 'is in sync')}"
    cause += waits if ripe.brokers else "though all replicas are in sync"
    cause += f": {absence(away, header)}" if away else ""
    why = "" if away else held_back(ripe.brokers, header)
    ending = "the reassignments are complete, or were cancelled"
    advice = Advice(why) if why else None
    return partitions.condition(kinds.REASSIGNMENT_STUCK, ripe, cause, ending, patience_ms=0, advice=advice)


def _patience_ms(group: Blamed, header: Header, where_away_ms: int, where_live_ms: int) -> int:
    return where_away_ms if any(broker not in header.brokers for broker in group.brokers) else where_live_ms


_CONDITIONS: Final[Mapping[tuple[PartitionIssue, ...], Callable[[IncidentPartitions, Affected], Condition | None]]] = {
    (PartitionIssue.ELECTION_DUE, PartitionIssue.ELECTION_OWED): _election_due,
    (PartitionIssue.ELECTION_OWED,): _election_owed,
    (PartitionIssue.CREATION_DUE, PartitionIssue.STATE_LOST): _creation_due,
    (PartitionIssue.LEADERLESS,): _leaderless,
    (PartitionIssue.UNDER_REPLICATED,): _under_replicated,
    (PartitionIssue.UNDELETED,): _undeleted,
    (PartitionIssue.REASSIGNING,): _reassigning,
}
