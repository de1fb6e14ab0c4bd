"""Conditions of a migration to KRaft, from the header alone.

The conditions cover the copy, the sync, the pulse, leaders, leftovers, and the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from controller.alerts.conditions import Condition
from controller.contract.ids import NO_BROKER
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.context import Header
from controller.rules.migration_phases import LED_BY_KRAFT, MigrationPhase
from controller.says.alert_kinds import kinds as kinds
from controller.view.migration import broken_by_hand, epoch_raised, is_stuck, never_elected_count, next_step
from wording.sentences import counted, in_brackets, plural

# A rolling restart of three controllers makes up to three leaders, of five up to five.
_FLAPPING_LEADERS: Final = 6
_FLAPPING_WITHIN_MS: Final = 10 * 60_000

# A sync of 200,000 partitions is as many transactions. The paged person must see it until all is deleted.
_OLD_CLAIM_SHOWN_MS: Final = 30 * 60_000

_condition: Final = partial(Condition, group="migration")
_PULSES_AGAIN: Final = "/migration is written again, or a broker is controller"


def conditions_of_migration(header: Header) -> Iterator[Condition]:
    """Yield the conditions of a migration to KRaft, from its progress to its problems."""
    if header.migration.seen:
        yield from filter(None, (check(header) for check in _CHECKS))


def stands_still(header: Header) -> bool:
    """Return whether ZooKeeper shows no sign of the cluster any more, from registered brokers or KRaft's writes."""
    registered = len(header.brokers) > len(header.in_kraft_mode)
    return header.migration.phase is MigrationPhase.SILENT and not registered


def _under_way(header: Header) -> Condition | None:
    migration = header.migration
    if migration.phase in (MigrationPhase.ZOOKEEPER, MigrationPhase.ROLLED_BACK):
        return None
    leads = migration.phase in LED_BY_KRAFT
    who = f"KRaft controller {migration.claim.controller}" if leads else "the ZooKeeper controller"
    return _condition(
        kind=kinds.MIGRATION_UNDER_WAY,
        cause=f"on the way to KRaft ({migration.phase.value.replace('_', ' ')}), {who} leads: {next_step(header)}",
        ending="a broker elected through ZooKeeper is controller, and no quorum waits",
    )


def _copy_fails(header: Header) -> Condition | None:
    migration = header.migration
    if migration.phase is not MigrationPhase.CLAIMED:
        return None
    claims = sum(at_ms >= migration.since_ms for at_ms in migration.claims_ms)
    times = f", {claims} claims so far" if claims > 1 else ""
    return _condition(
        kind=kinds.MIGRATION_COPY_FAILS,
        cause=f"no controller acts: KRaft controller {migration.claim.controller} owns /controller and has not copied "
        f"ZooKeeper (KRaft epoch {migration.claim.kraft_epoch}{times}). Fix the znode that its log names, or delete "
        "/controller",
        ending="ZooKeeper is copied, or a broker is controller",
        since_ms=migration.since_ms,
    )


def _sync_stuck(header: Header) -> Condition | None:
    migration = header.migration
    if not is_stuck(header):
        return None
    return _condition(
        kind=kinds.MIGRATION_SYNC_STUCK,
        cause=f"KRaft controller {migration.claim.controller} stopped its sync of ZooKeeper at offset "
        f"{migration.offset}: brokers in ZooKeeper mode get no metadata. Fix the cause that its log names, then "
        "restart it",
        ending=_PULSES_AGAIN,
        since_ms=max(migration.since_ms, migration.alive_ms),
    )


def _stalled(header: Header) -> Condition | None:
    migration = header.migration
    edited = broken_by_hand(header)
    if migration.phase is not MigrationPhase.SILENT and not edited:
        return None
    registered = len(header.brokers) > len(header.in_kraft_mode)
    may_be_finalized = not (edited or registered) and migration.exists
    event, why = edited, "Every dual write fails since"
    if not edited and not migration.exists:
        event = "/migration was deleted while KRaft leads"
    elif not edited:
        event, why = f"/migration stays at offset {migration.offset}", "The dual write is broken or the quorum is lost"
        if may_be_finalized:
            why = "The dual write is broken, the quorum is lost, or it is finalized"
    harm = "brokers in ZooKeeper mode get no metadata" if registered else "a rollback would lose every new change"
    step = f"Restart KRaft controller {migration.claim.controller}"
    if not migration.exists:
        step = "Create /migration again before any restart"
    elif epoch_raised(header) and not edited:
        step = f"To go back, delete /controller, then /migration. Otherwise r{step[1:]}"
    elif may_be_finalized:
        step += f". If it is finalized, run `kontrast forget {header.cluster}`"
    return _condition(
        kind=kinds.DUAL_WRITE_STALLED,
        cause=f"{event}: {harm}. {why}. {step}",
        ending=_PULSES_AGAIN,
        since_ms=migration.alive_ms,
        evidence=(
            f"/migration was last written at zxid {migration.pulse_zxid:#x}",
            "a finalized controller answers ApiVersions without ZkMigrationReady, a broken one with it",
            "since then Kontrast is blind to leaders, ISRs, topics and brokers in KRaft mode. Use Kafka's own metrics",
        ),
    )


def _flapping(header: Header) -> Condition | None:
    migration = header.migration
    recent = [at_ms for at_ms in migration.claims_ms if header.time_ms - at_ms <= _FLAPPING_WITHIN_MS]
    if len(recent) < _FLAPPING_LEADERS or migration.phase is MigrationPhase.CLAIMED:
        return None
    return _condition(
        kind=kinds.KRAFT_LEADER_FLAPPING,
        cause=f"KRaft elected {len(recent)} leaders within ten minutes (KRaft epoch {migration.claim.kraft_epoch}): "
        "each writes all topics to ZooKeeper again and raises the epoch that a rollback needs",
        ending=f"KRaft elected fewer than {_FLAPPING_LEADERS} leaders within ten minutes",
        since_ms=recent[0],
    )


def _old_migration(header: Header) -> Condition | None:
    migration = header.migration
    if header.led_by_kraft or migration.offset <= 0:
        return None
    topics = header.tally.gauges.topics
    made, configured = migration.made, migration.configured
    since = f", in any case {made.count} created since{in_brackets(made.examples, made.count)}" if made.count else ""
    if configured.count:
        since += f". It resets settings written since{in_brackets(configured.examples, configured.count)}"
    return _condition(
        kind=kinds.OLD_MIGRATION,
        cause=f"/migration of an earlier attempt has offset {migration.offset}: a quorum that starts now deletes up to "
        f"{counted(topics, 'topic')}{since}. Delete /migration and format the KRaft controllers",
        ending="/migration is gone, or KRaft leads",
        examples=tuple(dict.fromkeys((*made.examples, *configured.examples)))[:EXAMPLES_NAMED],
    )


def _old_claimed(header: Header) -> Condition | None:
    migration = header.migration
    claim, deleted = migration.claim, migration.deleted
    shown = header.time_ms - claim.time_ms <= _OLD_CLAIM_SHOWN_MS
    if not (header.led_by_kraft and claim.over_old_attempt and shown):
        return None
    topics = header.tally.gauges.topics
    left = f"{counted(topics, 'topic')} {plural(topics, 'is', 'are')} left"
    so_far = f", {deleted.count} {plural(deleted.count, 'is', 'are')} deleted" if deleted.count else ""
    return _condition(
        kind=kinds.OLD_MIGRATION_CLAIMED,
        cause=f"KRaft controller {claim.controller} took over with the /migration of an earlier attempt (offset "
        f"{claim.offset}): it deletes each topic that it lacks. {left}{so_far}. Stop all KRaft controllers now",
        ending="a broker is controller again, or the sync is long over",
        since_ms=claim.time_ms,
        examples=deleted.examples,
    )


def _never_elected(header: Header) -> Condition | None:
    migration, count = header.migration, never_elected_count(header)
    if not count or header.controller == NO_BROKER:
        return None
    return _condition(
        kind=kinds.LEADERS_NEVER_ELECTED,
        cause=f"controller {header.controller} in epoch {header.term.epoch} elects no leader for "
        f"{counted(count, 'partition')}{in_brackets(migration.never_elected, count)}: "
        f"{plural(count, 'its state has', 'their states have')} KRaft's higher epoch. Set /controller_epoch to "
        f"{migration.highest_epoch}, then delete /controller",
        ending="the controller's epoch is at least that of every state",
        since_ms=header.term.began_ms or None,
        partitions=count,
        examples=migration.never_elected,
        broker=header.controller,
    )


_CHECKS: Final[tuple[Callable[[Header], Condition | None], ...]] = (
    _under_way,
    _copy_fails,
    _sync_stuck,
    _stalled,
    _flapping,
    _old_migration,
    _old_claimed,
    _never_elected,
)
