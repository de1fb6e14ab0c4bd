"""Migration to KRaft, from the quorum's arrival and claim to dual writes, and the brokers' way back.

As Kafka 3.9's `KRaftMigrationDriver` shows itself in ZooKeeper. Kontrast predicts no writes while KRaft leads, and
takes the partitions from KRaft's writes. Brokers that leave /brokers/ids live in KRaft mode if a later write elects
them or takes them into an ISR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import NO_BROKER, NO_LEADER, BrokerEpoch, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.records import Record
from controller.contract.znodes import ControllerZnode, MigrationZnode
from controller.events import broker_change, controller_failover, deletion_requests, topic_deletion
from controller.machines.partition_machine import with_initial_states
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.brokers import Broker, Departure
from controller.model.context import FOLLOWING, Header
from controller.model.controllership import Ownership
from controller.model.migration import Claim, SomeTopics
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.migration_phases import NEXT_PHASE, WITH_PULSE, MigrationPhase, PhaseEvidence
from controller.rules.states import PartitionState, ReplicaState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction
from controller.view.migration import epoch_raised
from controller.view.state_epochs import count_state_epochs, never_elected


def follow(header: Header, evidence: PhaseEvidence) -> None:
    """Enter the phase to which the evidence leads. Evidence outside the present phase's list has no effect."""
    phase = NEXT_PHASE[header.migration.phase].get(evidence)
    if phase is not None:
        enter(header, phase)


def enter(header: Header, phase: MigrationPhase) -> None:
    """Enter a phase, as a complete read shows it. Each claim begins its phase again."""
    migration = header.migration
    migration.phase, migration.since_ms = phase, header.time_ms


# The dual write writes /migration every 483 ms (the median of 908 gaps), whatever the cluster's size. The longest gap
# that ended by itself was 5.0 s, a pause of ZooKeeper. The death of a KRaft leader caused a gap of 3.8 s. Between two
# writes KRaft may write a topic with thousands of partitions, in 1.5 ms each, so writes of states are signs of life,
# too.
SILENT_AFTER_MS: Final = 10_000

# 99 % of the gaps were shorter than 592 ms, a restarted leader's was 1.0 s. On the way back the epoch is raised after
# all controllers have stopped, by a tool that needs a second to start.
_PULSES_WITHIN_MS: Final = 2_000

_CLAIMS_KEPT: Final = 10

_LEADS: Final = "while KRaft leads: the next KRaft leader"


def znode_written(tx: Transaction, znode: MigrationZnode, record: Record) -> None:
    """Handle the content of /migration."""
    state, header = tx.state, tx.header
    migration, before = header.migration, header.migration.offset if header.migration.exists else -1
    _see(state)
    migration.exists, migration.offset = True, znode.kraft_metadata_offset
    if header.phase is not FOLLOWING:
        return
    if _is_edit(header, znode, before):
        migration.edited = f"/migration was written by hand at zxid {record.mzxid:#x}"
    migration.pulse_ms, migration.pulse_zxid = header.time_ms, record.mzxid
    migration.alive_ms = header.time_ms
    if header.term.ownership is not Ownership.KRAFT:
        _written_without_controller(state, znode)
    elif znode.kraft_metadata_offset > migration.claim.offset:
        copied, syncs = migration.phase is MigrationPhase.CLAIMED, migration.phase is MigrationPhase.SYNCING
        follow(header, PhaseEvidence.COPIED if copied else PhaseEvidence.PULSE)
        if copied:
            migration.claim = replace(migration.claim, offset=znode.kraft_metadata_offset)
        if syncs:
            _keep_topics(tx)
        brokers_changed(header)


def _keep_topics(tx: Transaction) -> None:
    """Keep the topics that KRaft has not deleted by the end of its sync, because it reads no deletion request later."""
    for name, topic in list(tx.state.topics):
        if topic.exists and topic.queued_for_deletion:
            tx.state.put_topic(name, deletion_requests.not_asked(topic))
            for number, partition in topic.partitions.items():
                show(tx, TopicPartition(name, number), partition)
            if not topic.request_removed:
                topic_deletion.deletion_asked(tx, name)


def show(tx: Transaction, tp: TopicPartition, partition: Partition) -> None:
    """Show a partition while KRaft leads as a controller would load it, because ZooKeeper has all that is known."""
    tx.state.put_partition(tp, with_initial_states(tx, partition, ReplicaState.OFFLINE))


def _is_edit(header: Header, znode: MigrationZnode, before: int) -> bool:
    """Return whether /migration was written by someone other than a KRaft controller.

    Such a write has an older leader's epoch, or an offset that goes back under the same leader.
    """
    if not header.migration.led_by_kraft:
        return False
    claim = header.migration.claim
    goes_back = znode.kraft_controller_epoch == claim.kraft_epoch and znode.kraft_metadata_offset < before
    return znode.kraft_controller_epoch < claim.kraft_epoch or goes_back


def _written_without_controller(state: MutableState, znode: MigrationZnode) -> None:
    """Handle a write of /migration while no KRaft controller owns /controller."""
    migration = state.header.migration
    if migration.led_by_kraft or (migration.phase is MigrationPhase.ROLLED_BACK and migration.claim.zxid >= 0):
        cause = (
            f"KRaft controller {znode.kraft_controller_id} has lost /controller and still writes: brokers may follow "
            "two controllers. Stop the KRaft controllers, or restart the active one so that it claims /controller"
        )
        occurrences.note(state, kinds.SECOND_CONTROLLER, cause)
    elif znode.kraft_metadata_offset > 0:
        follow(state.header, PhaseEvidence.OFFSET_FOUND)
    else:
        follow(state.header, PhaseEvidence.QUORUM_CAME)


def epoch_written(state: MutableState) -> None:
    """Note a write of /controller_epoch while KRaft writes. Each dual write checks its version, so now all fail.

    A claim writes the znode too. The transaction identifies the newest claim, and the next claim clears this note. A
    write after the end of the pulse broke no dual write.
    """
    header, migration = state.header, state.header.migration
    writes = header.time_ms - max(migration.since_ms, migration.alive_ms) <= _PULSES_WITHIN_MS
    if header.phase is FOLLOWING and migration.led_by_kraft and epoch_raised(header) and writes:
        migration.edited = f"/controller_epoch was written by hand at zxid {state.record.mzxid:#x}"


def znode_removed(header: Header) -> None:
    """Handle the removal of /migration."""
    migration = header.migration
    migration.exists, migration.offset = False, -1
    migration.made = migration.configured = SomeTopics()
    follow(header, PhaseEvidence.ZNODE_DELETED)


def claimed(tx: Transaction, znode: ControllerZnode, record: Record) -> None:
    """Handle a KRaft controller's claim of /controller. It voids the ZooKeeper controller's events in flight."""
    header, migration = tx.header, tx.header.migration
    _see(tx.state)
    # During a complete read the offset is not known yet, but the phase before it is.
    over_old = migration.phase is MigrationPhase.ROLLED_BACK and (migration.offset > 0 or header.phase is not FOLLOWING)
    migration.claim = Claim(
        znode.brokerid,
        znode.kraftControllerEpoch,
        record.mzxid,
        header.time_ms,
        record.author,
        migration.offset,
        over_old,
    )
    migration.edited, migration.deleted = "", SomeTopics()
    if header.phase is not FOLLOWING:
        return
    controller_failover.abort_in_flight_events(tx, header.former.deposed)
    header.shutdowns.end_all()
    for broker in header.departures.last:
        broker_change.touch_hosted(tx.state, broker)
    _show_again(tx, tx.state.every(lambda partition: partition.state is PartitionState.OFFLINE))
    migration.claims_ms = (*migration.claims_ms, header.time_ms)[-_CLAIMS_KEPT:]
    follow(header, PhaseEvidence.CLAIM_WITH_OFFSET if migration.offset > 0 else PhaseEvidence.CLAIM)


def broker_claimed(tx: Transaction) -> None:
    """Handle the takeover by a broker, which knows registered brokers only, and obeys the requests in /admin."""
    header, migration = tx.header, tx.header.migration
    if not migration.seen:
        return
    if migration.led_by_kraft:
        for broker in header.in_kraft_mode:
            _leaves(tx, broker)
        migration.made = migration.configured = SomeTopics()
        occurrences.forget(header, kinds.WRITTEN_PAST_KRAFT)  # because no KRaft leader will undo them any more
        follow(header, PhaseEvidence.BROKER_CLAIMED)
        if not migration.exists:  # /migration was deleted before /controller, so this claim completes the rollback
            follow(header, PhaseEvidence.ZNODE_DELETED)
        for name in migration.deletions_asked if header.settings.delete_topic_enable else ():
            topic = tx.state.topic(name)
            if topic is not None and topic.exists:
                tx.state.put_topic(name, replace(topic, queued_for_deletion=True))
        migration.deletions_asked = ()
    migration.never_elected = never_elected(tx.state.topics, header.controller_epoch, EXAMPLES_NAMED)


def adopt(tx: Transaction) -> None:
    """Take the phase that a complete read found, at the end of the read."""
    header, migration = tx.header, tx.header.migration
    if not migration.seen:
        return
    migration.partitions_by_epoch = count_state_epochs(tx.state.topics)
    migration.pulse_ms = header.time_ms if migration.exists else 0
    migration.alive_ms = header.time_ms  # KRaft's silence counts from now on
    if header.kraft_owns_controller:
        if migration.offset > 0:  # before the copy all brokers are in ZooKeeper mode
            _infer_leaders(tx)
    elif header.controller != NO_BROKER:
        migration.never_elected = never_elected(tx.state.topics, header.controller_epoch, EXAMPLES_NAMED)
    found = _found_phase(header)
    if found is not migration.phase:
        enter(header, found)


def _found_phase(header: Header) -> MigrationPhase:
    """Return the phase that a complete read shows. Without /controller the present leader continues."""
    migration = header.migration
    if header.kraft_owns_controller:
        if migration.offset <= 0:
            return MigrationPhase.CLAIMED
        if epoch_raised(header):  # no dual write has succeeded since the epoch was raised
            return MigrationPhase.SILENT
        registered = len(header.brokers) > len(header.in_kraft_mode)
        return MigrationPhase.HYBRID if registered else MigrationPhase.DUAL_WRITE
    if header.controller == NO_BROKER and migration.led_by_kraft:
        return migration.phase
    if migration.offset > 0:
        return MigrationPhase.ROLLED_BACK
    return MigrationPhase.WAITING if migration.exists else MigrationPhase.ZOOKEEPER


def _infer_leaders(tx: Transaction) -> None:
    """Infer brokers in KRaft mode from the leaders that a complete read found, because KRaft leaves no dead leader."""
    leaders = {
        partition.zk_state.leader
        for _, topic in tx.state.topics
        for partition in topic.partitions.values()
        if partition.zk_state is not None and partition.zk_state.leader != NO_LEADER
    }
    for broker in sorted(leaders - tx.header.brokers.keys()):
        _lives(tx, broker)


def broker_registered(tx: Transaction, broker: BrokerId) -> None:
    """Handle the registration of a broker."""
    if tx.header.led_by_kraft:
        _show_again(tx, tx.state.hosted_by(broker))
    brokers_changed(tx.header)


def _show_again(tx: Transaction, tps: Iterable[TopicPartition]) -> None:
    """Show partitions that the ZooKeeper controller took offline."""
    for tp in tps:
        topic = tx.state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        if partition.state is PartitionState.OFFLINE and not topic.queued_for_deletion:
            show(tx, tp, partition)


def brokers_changed(header: Header) -> None:
    """Follow brokers that registered, left, or live in KRaft mode."""
    if header.migration.phase not in WITH_PULSE:
        return
    inferred = len(header.in_kraft_mode)
    if len(header.brokers) > inferred:
        follow(header, PhaseEvidence.REGISTERED)
    elif inferred:
        follow(header, PhaseEvidence.NONE_REGISTERED)


def infer_modes(tx: Transaction, partition: Partition, before: LeaderAndIsr | None, written: LeaderAndIsr) -> None:
    """Infer from a state that KRaft wrote which brokers live in KRaft mode, and which broker no longer does.

    A broker that joins an ISR or becomes leader lives. A broker that loses its last leadership has left, unless it
    stays in sync under another leader.
    """
    header = tx.header
    was_in_sync = before.isr if before is not None else ()
    joined = set(written.isr).difference(was_in_sync)
    if written.leader != NO_LEADER and (before is None or before.leader != written.leader):
        joined.add(written.leader)
    last, at = header.departures.last, tx.state.record.mzxid
    for broker in sorted(joined - header.brokers.keys()):
        if broker not in last or last[broker].zxid < at:  # a gap delays states, so this one may be of before
            _lives(tx, broker)
    if before is None or before.leader == written.leader or before.leader not in header.in_kraft_mode:
        return
    lost = written.leader == NO_LEADER or before.leader not in written.isr
    if lost and before.leader in partition.replicas and header.tally.gauges.led_by.get(before.leader) == 1:
        _leaves(tx, before.leader)
        brokers_changed(header)


def _lives(tx: Transaction, broker: BrokerId) -> None:
    header = tx.header
    departure = header.departures.last.get(broker)
    # The broker returns in KRaft mode with its last registered listeners, because its other settings stay.
    was = departure.was if departure is not None else None
    lives = (
        Broker(BrokerEpoch(-1), 0, header.time_ms, inferred=True)
        if was is None
        else replace(was, epoch=BrokerEpoch(-1), session=0, since_ms=header.time_ms, inferred=True, at_work=False)
    )
    header.register(broker, lives)
    header.departures.end(broker)
    broker_change.touch_hosted(tx.state, broker)
    broker_change.publish_broker(tx, broker)
    brokers_changed(header)


def _leaves(tx: Transaction, broker: BrokerId) -> None:
    header = tx.header
    left = header.brokers[broker]
    gone = Departure(tx.state.record.zxid, header.time_ms, was=left)
    header.unregister((broker,))
    header.departures.note(broker, gone)
    broker_change.touch_hosted(tx.state, broker)
    broker_change.publish_broker(tx, broker)


def judge_pulse(header: Header) -> None:
    """Judge at a heartbeat whether /migration is still written."""
    migration = header.migration
    if migration.phase in WITH_PULSE and header.time_ms - migration.alive_ms >= SILENT_AFTER_MS:
        follow(header, PhaseEvidence.SILENCE)


def topic_created(state: MutableState, name: str, *, has_id: bool) -> None:
    """Note a new topic that the next sync would delete.

    Such a topic was created after a rollback, or past KRaft by another client.
    """
    migration = state.header.migration
    if migration.phase is MigrationPhase.ROLLED_BACK and migration.offset > 0:
        migration.made = migration.made.joined_by(name)
    elif state.header.led_by_kraft and (not has_id or _is_foreign(state)):
        _note_past_kraft(state, f"topic {name} was created in ZooKeeper {_LEADS} deletes it", name)


def topic_deleted(state: MutableState, name: str, *, asked: bool) -> None:
    """Note a topic that a sync deleted because KRaft lacks it. Other deletions were requested by a client."""
    migration = state.header.migration
    if asked or migration.phase is not MigrationPhase.SYNCING:
        return
    migration.deleted = migration.deleted.joined_by(name)
    cause = (
        f"KRaft lacked topic {name} and deleted it from ZooKeeper: the topic was created without KRaft, or /migration "
        "is of an earlier attempt"
    )
    occurrences.note(state, kinds.DELETED_BY_SYNC, cause, about=name)


def settings_written(state: MutableState, topic: str) -> None:
    """Note topic settings that the next sync would set back, written after a rollback or past KRaft.

    While KRaft leads, the author of the write must be known, which only ZooKeeper's log shows.
    """
    migration, known = state.header.migration, state.topic(topic)
    if migration.phase is MigrationPhase.ROLLED_BACK and migration.offset > 0 and state.header.phase is FOLLOWING:
        if known is not None and known.exists and topic not in migration.configured.examples:
            migration.configured = migration.configured.joined_by(topic)
    elif state.header.led_by_kraft and _is_foreign(state):
        cause = f"settings of topic {topic} were written in ZooKeeper {_LEADS} resets them"
        _note_past_kraft(state, cause, topic)


def deletion_asked(state: MutableState, topic: str) -> None:
    """Note an entry in /admin/delete_topics, where KRaft does not look."""
    if state.header.led_by_kraft:
        cause = f"the deletion of topic {topic} was requested in ZooKeeper while KRaft leads: it waits for a rollback"
        _note_past_kraft(state, cause, topic)


def _note_past_kraft(state: MutableState, cause: str, about: str) -> None:
    occurrences.note(state, kinds.WRITTEN_PAST_KRAFT, cause, about=about)


def _is_foreign(state: MutableState) -> bool:
    """Return whether another session than the KRaft leader's is known to have written the record."""
    leader = state.header.migration.claim.session
    return leader != 0 and state.record.author not in (0, leader)


def _see(state: MutableState) -> None:
    migration = state.header.migration
    if not migration.seen:
        migration.seen = True
        migration.partitions_by_epoch = count_state_epochs(state.topics)
