"""Consequences of a migration's state, such as the way back, the next step, leftovers, and the row with these."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from controller.contract.ids import NO_BROKER, BrokerId
from controller.contract.metadata_rows import MigrationRow
from controller.contract.row import Stamp
from controller.model.context import Header
from controller.model.controllership import Ownership
from controller.rules.migration_phases import MigrationPhase as Phase
from controller.view.gauges import replicas_by_broker
from controller.view.partition_issues import PartitionIssue, parse_group
from wording.sentences import counted, listed

YES, RAISE_EPOCH, LOSES, NO, DONE = "yes", "raise_epoch", "loses", "no", "done"

# A sync writes /migration with each operation, and states in between, so it counts as silent as soon as the dual write.
SYNC_SILENT_AFTER_MS: Final = 10_000

_FIELDS_OF_THE_PULSE: Final = frozenset({"offset", "pulse_ms"})


class Rollback(msgspec.Struct, frozen=True):
    """Possibility for ZooKeeper's controllers to take over again, as one word and one sentence."""

    verdict: str  # yes | raise_epoch | loses | no | done
    sentence: str
    epoch: int | None = None  # the least /controller_epoch for a rollback, if the present one is lower


def rollback_of(header: Header) -> Rollback:
    """Return whether and how ZooKeeper's controllers can take over again now.

    A ZooKeeper controller holds no election for a partition whose state has a controller epoch above its own. KRaft
    writes its own epoch there, which rises faster than /controller_epoch, often by two a leader (KAFKA-20488). The
    epoch that the next broker adds is not counted on, because another leader may come until the last one is stopped.
    """
    migration = header.migration
    phase = migration.phase
    if phase is Phase.ROLLED_BACK or (phase in (Phase.ZOOKEEPER, Phase.WAITING) and never_elected_count(header)):
        return _after(header)
    if phase is Phase.ZOOKEEPER:
        return Rollback(DONE, "no rollback is needed, because brokers elect the controller")
    if phase is Phase.WAITING:
        return Rollback(YES, f"yes. Stop the KRaft controllers and delete /migration{_obeyed(header)}")
    if phase is Phase.SILENT or is_stuck(header) or broken_by_hand(header):
        return _without_pulse(header)
    epoch = _epoch_of_states(header)
    steps = f"the KRaft controllers, {{}}delete /controller, then /migration{_obeyed(header)}"
    in_kraft_mode = header.in_kraft_mode
    if in_kraft_mode:
        steps = f"Take {listed(in_kraft_mode)} back to ZooKeeper mode with the migration flag, stop {steps}"
    else:
        steps = f"Stop {steps}"
    if epoch <= header.controller_epoch:
        return Rollback(YES, "yes. " + steps.format(""))
    raised = f"set {_raised(header, epoch)}, "
    return Rollback(RAISE_EPOCH, "yes, after raising the epoch. " + steps.format(raised), epoch)


def _epoch_of_states(header: Header) -> int:
    """Return the highest epoch that a state has, or gets by the newest leader's next write."""
    return max(header.migration.highest_epoch, header.migration.claim.kraft_epoch)


def _raised(header: Header, epoch: int) -> str:
    return f"/controller_epoch (now {header.controller_epoch}) to {epoch} or more"


def is_stuck(header: Header) -> bool:
    """Return whether a KRaft leader stopped while it made ZooKeeper equal to its log."""
    migration = header.migration
    last_ms = max(migration.since_ms, migration.alive_ms)
    return migration.phase is Phase.SYNCING and header.time_ms - last_ms >= SYNC_SILENT_AFTER_MS


def broken_by_hand(header: Header) -> str:
    """Return how the dual write was broken by hand, as a clause, empty unless ZooKeeper shows it.

    Each dual write checks the versions of /controller_epoch and /migration.
    """
    migration = header.migration
    return migration.edited if migration.led_by_kraft and header.kraft_owns_controller else ""


def epoch_raised(header: Header) -> bool:
    """Return whether /controller_epoch was written by hand since KRaft's claim.

    A rollback writes it before a broker claims /controller.
    """
    return header.kraft_owns_controller and header.term.epoch_zxid > header.migration.claim.zxid >= 0


def _without_pulse(header: Header) -> Rollback:
    since = f"after offset {header.migration.offset}"
    if len(header.brokers) > len(header.in_kraft_mode):
        stopped = (
            f"only with the loss of KRaft's changes {since}. Restart the active KRaft controller and wait for its "
            "pulse. If you stopped the controllers at that offset, no change is lost"
        )
        epoch = _epoch_of_states(header)
        if epoch <= header.controller_epoch:
            return Rollback(LOSES, stopped)
        return Rollback(LOSES, f"{stopped}. Set {_raised(header, epoch)} before you delete /controller", epoch)
    sentence = f"no. No broker is in ZooKeeper mode, and ZooKeeper lacks KRaft's changes {since}"
    restart = "Unless the migration is finalized, restart the active KRaft controller and wait for its pulse"
    return Rollback(NO, f"{sentence}. {restart}")


def _after(header: Header) -> Rollback:
    lacking, migration = never_elected_count(header), header.migration
    if lacking:
        sentence = (
            f"it is done, but the controller elects no leader for {counted(lacking, 'partition')}. Set "
            f"/controller_epoch to {migration.highest_epoch} or more, then delete /controller"
        )
        return Rollback(RAISE_EPOCH, sentence, migration.highest_epoch)
    left = ". Delete /migration, and format the KRaft controllers before another attempt" if migration.exists else ""
    return Rollback(DONE, f"it is done, and a broker is controller in epoch {header.controller_epoch}{left}")


def never_elected_count(header: Header) -> int:
    """Return the number of partitions whose epoch is above the present ZooKeeper controller's.

    The controller elects no leader for these partitions.
    """
    if header.led_by_kraft or header.term.broker == NO_BROKER:
        return 0
    return header.migration.partitions_above(header.term.epoch)


def _obeyed(header: Header) -> str:
    """Return a sentence with the requests in /admin, which the next ZooKeeper controller obeys."""
    waiting = _waiting_in_admin(header)
    return f". Before, delete {' and '.join(waiting)}, which the next controller obeys" if waiting else ""


def _waiting_in_admin(header: Header) -> tuple[str, ...]:
    found = []
    if header.triggers.reassign is not None:
        found.append("/admin/reassign_partitions")
    if header.triggers.preferred is not None:
        found.append("/admin/preferred_replica_election")
    return (*found, *(f"/admin/delete_topics/{name}" for name in header.migration.deletions_asked))


def leftovers_of(header: Header) -> tuple[str, ...]:
    """Return an earlier attempt's leftovers, and while KRaft leads the requests in /admin for a rollback."""
    migration, found = header.migration, []
    if not header.led_by_kraft and migration.offset > 0:
        found.append(f"/migration with offset {migration.offset}")
    lacking = never_elected_count(header)
    if lacking:
        found.append(f"controller epoch {migration.highest_epoch} in states, {lacking} above the controller's")
    return (*found, *(_waiting_in_admin(header) if header.led_by_kraft else ()))


def missing_brokers(header: Header) -> tuple[BrokerId, ...]:
    """Return the brokers with replicas that are neither registered nor live in KRaft mode.

    Topics under deletion do not count.
    """
    hosted = replicas_by_broker(header)
    away = hosted.keys() - header.brokers.keys()
    return tuple(sorted(broker for broker in away if hosted[broker] > _to_be_deleted(header, broker)))


def _to_be_deleted(header: Header, broker: BrokerId) -> int:
    groups = ((parse_group(key), group.count) for key, group in header.tally.issues.items())
    return sum(count for key, count in groups if key.issue is PartitionIssue.UNDELETED and broker in key.brokers)


def _waits_for(header: Header, broker: BrokerId) -> str:
    """Return the broker and why the quorum waits for it, with a partition that lacks it, if known."""
    for key, group in header.tally.issues.items():
        issue, brokers, *_ = parse_group(key)
        if issue is not PartitionIssue.UNDELETED and broker in brokers and group.examples:
            return f"broker {broker} (in the assignment of {group.examples[0]})"
    return f"broker {broker} (has replicas)"


def next_step(header: Header) -> str:
    """Return the brokers that the migration waits for, by name, or the next step."""
    phase, missing = header.migration.phase, missing_brokers(header)
    if phase is Phase.WAITING and missing:
        named = " and ".join(_waits_for(header, broker) for broker in missing[:2])
        more = f" and {len(missing) - 2} more" if len(missing) > 2 else ""
        start = (
            "is not registered. Start it, or reassign its"
            if len(missing) == 1
            else ("are not registered. Start them, or reassign their")
        )
        return f"the quorum waits for {named}{more}, which {start} partitions"
    registered = sorted(header.brokers.keys() - set(header.in_kraft_mode))
    if phase is Phase.WAITING:
        return f"the quorum waits until {listed(registered)} and all its voters are started with the migration flag"
    if phase is Phase.HYBRID:
        still = f"{listed(registered, 'is').capitalize()} still in ZooKeeper mode"
        return f"restart {listed(registered[:1])} in KRaft mode. {still}"
    if phase is Phase.SILENT and not registered:
        forget = f"end its `kontrast watch`, then run `kontrast forget {header.cluster}`"
        return f"restart the active KRaft controller. If the migration is finalized, {forget}"
    if phase is Phase.DUAL_WRITE:
        return (
            "finalize when you are sure. Restart the controllers without the migration flag. After that no rollback is "
            "possible, and Kontrast is blind"
        )
    return _NEXT_STEPS[phase]


_NEXT_STEPS: Final = {
    Phase.ZOOKEEPER: "no step, because no quorum is there",
    Phase.CLAIMED: "the KRaft controller copies ZooKeeper, which takes half a second for a small cluster",
    Phase.SYNCING: "the KRaft controller makes ZooKeeper equal to its log. Then it writes /migration every half second",
    Phase.SILENT: "restart the active KRaft controller, unless the migration is finalized",
    Phase.ROLLED_BACK: "delete /migration and restart brokers without the migration flag",
}


def migration_row(header: Header, stamp: Stamp) -> MigrationRow | None:
    """Return the row of the migration as it is now, None if it would repeat the last row and KRaft does not lead."""
    migration = header.migration
    fields = _fields(header)
    said = msgspec.json.encode({name: value for name, value in fields.items() if name not in _FIELDS_OF_THE_PULSE})
    if said == migration.published and not header.led_by_kraft:
        return None
    migration.published = said
    return MigrationRow(*stamp, **fields)


def _fields(header: Header) -> dict[str, Any]:
    migration, rollback = header.migration, rollback_of(header)
    leads = header.term.ownership is Ownership.KRAFT
    return {
        "phase": migration.phase.value,
        "since_ms": migration.since_ms,
        "leader": header.controller if leads else NO_BROKER,
        "kraft_epoch": migration.claim.kraft_epoch if leads else -1,
        "controller_epoch": header.controller_epoch,
        "exists": migration.exists,
        "offset": migration.offset,
        "pulse_ms": migration.pulse_ms or None if migration.exists else None,
        "highest_state_epoch": migration.highest_epoch,
        "rollback": rollback.verdict,
        "rollback_epoch": rollback.epoch,
        "rollback_sentence": rollback.sentence,
        "next_step": next_step(header),
        "zookeeper_brokers": tuple(sorted(header.brokers.keys() - set(header.in_kraft_mode))),
        "kraft_brokers": header.in_kraft_mode,
        "missing_brokers": missing_brokers(header),
        "leftovers": leftovers_of(header),
        "never_elected_partitions": never_elected_count(header),
        "never_elected_examples": migration.never_elected if never_elected_count(header) else (),
    }
