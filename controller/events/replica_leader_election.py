"""Elections requested by an operator, and the automatic rebalance (Kafka's ReplicaLeaderElection).

The source is Kafka 3.9's `processReplicaLeaderElection`. Kontrast predicts a request by znode. A request by the API and
the automatic rebalance show only in their writes.
"""

from __future__ import annotations

from controller.contract.ids import TopicPartition
from controller.contract.records import Record
from controller.contract.znodes import PartitionsZnode, ReassignmentEntry, decode
from controller.events import partition_reassignment
from controller.machines import partition_machine
from controller.model.context import Header
from controller.model.event import EventKind
from controller.model.mutable_state import MutableState
from controller.rules import timing
from controller.rules.election import Strategy
from controller.transaction.transaction import Transaction
from wording.sentences import counted


def znode_written(tx: Transaction, record: Record) -> None:
    """Handle /admin/preferred_replica_election. From 1.1 on the controller ignores later edits. Raise ZnodeError."""
    header, named = tx.header, decode(record.content, PartitionsZnode).partitions
    header.triggers.preferred = tuple([ReassignmentEntry(each.topic, each.partition, ()) for each in named])
    if header.acting and (record.version == 0 or header.profile.hears_edits_of_triggers):
        take_up(tx)


def znode_removed(header: Header) -> None:
    """Handle the removal of /admin/preferred_replica_election, which the controller has finished."""
    header.triggers.preferred = None
    header.term.note_act(header.time_ms)


def take_up(tx: Transaction, *, at_failover: bool = False) -> None:
    """Run the elections in /admin/preferred_replica_election. A failover leaves out replicas that lead already."""
    if tx.header.triggers.preferred is None:
        return
    tps = list(dict.fromkeys(TopicPartition(entry.topic, entry.partition) for entry in tx.header.triggers.preferred))
    if any(_ends_in_an_exception(tx.state, tp) for tp in tps):
        return
    tx.events.begin(
        EventKind.REPLICA_LEADER_ELECTION,
        f"a preferred election of {counted(len(tps), 'partition')} was asked for by znode",
    )
    tps = [tp for tp in tps if _may_be_elected(tx.state, tp) and not (at_failover and _leads_already(tx.state, tp))]
    if not tx.header.profile.rewrites_preferred_that_lead:
        partition_machine.stay_online(tx, [tp for tp in tps if _leads_already(tx.state, tp)])
        tps = [tp for tp in tps if not _leads_already(tx.state, tp)]
    partition_machine.elect(tx, tps, Strategy.PREFERRED)


def _ends_in_an_exception(state: MutableState, tp: TopicPartition) -> bool:
    # The filter reads each partition's state. A partition without a state ends the whole election, and the znode stays.
    topic, partition = state.topic(tp.topic), state.partition(tp)
    if (
        topic is None
        or topic.queued_for_deletion
        or partition is None
        or not state.header.profile.skips_preferred_that_lead
    ):
        return False
    return partition.value(state.header.controller_epoch) is None


def preferred(tx: Transaction, tp: TopicPartition) -> None:
    """Elect the preferred replica of a partition, by the automatic rebalance or the API."""
    automatic = _is_rebalancing(tx.state, tp)
    kind = EventKind.AUTO_PREFERRED_REPLICA_LEADER_ELECTION if automatic else EventKind.REPLICA_LEADER_ELECTION
    tx.events.begin(kind, f"the preferred replica of partition {tp} leads again")
    partition_machine.elect(tx, [tp], Strategy.PREFERRED)


def unclean(tx: Transaction, tp: TopicPartition) -> None:
    """Run an unclean election that the API requested, regardless of the partition's settings."""
    tx.events.begin(EventKind.REPLICA_LEADER_ELECTION, f"an unclean election of partition {tp} was asked for")
    partition_machine.bring_online(tx, [tp], allow_unclean=True)


def _may_be_elected(state: MutableState, tp: TopicPartition) -> bool:
    topic, partition = state.topic(tp.topic), state.partition(tp)
    value = partition.value(state.header.controller_epoch) if partition else None
    if topic is None or topic.queued_for_deletion or partition is None or value is None or not partition.replicas:
        return False
    return value.leader != partition.replicas[0] or not state.header.profile.skips_preferred_that_lead


def _leads_already(state: MutableState, tp: TopicPartition) -> bool:
    partition = state.partition(tp)
    value = partition.value(state.header.controller_epoch) if partition else None
    return value is not None and partition is not None and value.leader == partition.replicas[0]


def _is_rebalancing(state: MutableState, tp: TopicPartition) -> bool:
    """Return whether the automatic rebalance is moving leaders back to the partition's preferred broker.

    The rebalance begins once more than the configured share of the broker's partitions has another leader. Then it
    elects the broker for all these partitions.
    """
    header, partition = state.header, state.partition(tp)
    if partition is None or not partition.replicas or not header.settings.auto_leader_rebalance_enable:
        return False
    broker = partition.replicas[0]
    since_ms = header.triggers.rebalancing.get(broker)
    if since_ms is not None and not header.has_passed(timing.ONE_REBALANCE, since_ms):
        return True
    if not header.profile.rebalances_while_reassigning and partition_reassignment.reassigning(state):
        return False
    interval_ms = header.settings.leader_imbalance_check_interval_seconds * 1_000
    since_first_ms = header.time_ms - header.term.began_ms - timing.FIRST_REBALANCE.ms
    if header.term.began_ms and since_first_ms % interval_ms > timing.REBALANCE_SLACK.of(header.partitions):
        return False
    imbalanced = header.tally.gauges.imbalanced.get(broker, 0)
    preferred = header.tally.gauges.preferring.get(broker, 0)
    if imbalanced * 100 <= preferred * header.settings.leader_imbalance_per_broker_percentage:
        return False
    header.triggers.rebalancing = {**header.triggers.rebalancing, broker: header.time_ms}
    return True
