"""Rules of inference, in the order in which they are tried.

If two rules would give the same written state, the likelier cause comes first. Failovers precede requests of brokers,
which precede requests of operators. If no recording shows a rule's writes, its docstring names its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.events import (
    controlled_shutdown,
    fenced_controller,
    partition_reassignment,
    topic_deletion,
    unfenced_controller,
)
from controller.events.replica_leader_election import preferred, unclean
from controller.events.topic_deletion import failed_unanswered, halted_answered
from controller.inference import led_meanwhile, read_by_load, read_together, topic_assignment
from controller.inference.hypotheses import creations, failovers, losses
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_machine
from controller.machines.partition_machine import with_initial_states
from controller.model.event import EventKind
from controller.rules import timing
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Transaction

# Events that try to elect a leader for every offline partition.
_TRY_AGAIN: Final = (EventKind.BROKER_CHANGE, EventKind.CONTROLLER_FAILOVER)


def elected_after_all(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the newest event that tries offline partitions elected the new leader.

    It explains an offline partition that gets a leader from its ISR, elected among others after a broker change. If all
    members of an ISR leave at once, only the write shows which member stays, and so which can lead again.
    """
    elected = write.is_next and write.elects_leader and not write.left_isr
    if elected and write.partition.state is PartitionState.OFFLINE:
        yield lambda trial: _elect(trial, write.tp)


def _elect(tx: Transaction, tp: TopicPartition) -> None:
    tried = [(event.kind, event.cause) for event in tx.events.open_events() if event.kind in _TRY_AGAIN]
    tx.events.begin(*(tried[-1] if tried else (EventKind.BROKER_CHANGE, f"partition {tp} can be led again")))
    partition_machine.bring_online(tx, [tp])


def preferred_election(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the preferred replica was elected, and the ISR stayed.

    It explains a preferred replica that leads again, by the automatic rebalance or by a request to the API.
    """
    leads = write.elects_leader and write.partition.replicas[:1] == (write.written.leader,)
    if write.is_next and leads and not write.left_isr:
        yield lambda trial: preferred(trial, write.tp)


def preferred_election_in_vain(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an election of the preferred replica that leads already.

    From 1.1 to 2.1 the election increments the leader epoch, which is written too. No recording has such a write.
    """
    # The znode of a request vanished before it could be read, so this write may be a consequence.
    requested_lately = not tx.header.has_passed(timing.REQUEST_CONSEQUENCE, tx.header.triggers.preferred_asked_ms)
    if requested_lately and write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: preferred(trial, write.tp)


def reassigned_again(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose a reassignment requested by the API that completed at once.

    It explains a leader epoch that grows alone, because the partition was reassigned to its present replicas.
    """
    if write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: _reassign(trial, write)


def _reassign(tx: Transaction, write: ObservedWrite) -> None:
    tx.events.begin(EventKind.API_PARTITION_REASSIGNMENT, f"partition {write.tp} was reassigned to the replicas it has")
    partition_reassignment.run(tx, write.tp, write.partition.assignment)
    shown = write.partition.zk_assignment
    if shown is not None and not tx.header.profile.reassigns_in_topic_znode:
        # Its request was not read, and is not done, so the topic's znode stays as it is.
        now = tx.state.topics[write.tp.topic].partitions[write.tp.partition]
        tx.state.put_partition(write.tp, replace(now, zk_assignment=shown, pending_assignments=()))


def unclean_election(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an unclean election regardless of the settings (ElectLeaders, from Kafka 2.4 on).

    It explains a leader that no election by the settings gives, after a request for an unclean election by the API.
    """
    if write.is_next and write.elects_leader:
        yield lambda trial: unclean(trial, write.tp)


def deletion_answered(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the live brokers have deleted their replicas of the partition's topic.

    The rule explains the continued deletion of a topic that an offline replica holds up, after StopReplica responses of
    the live brokers. The responses are never seen, but the controller's next writes show it (Kafka 3.9
    `TopicDeletionManager`).
    """
    if write.is_next and write.tp.topic in tx.header.deletions.halted:
        yield lambda trial: halted_answered(trial, write.tp.topic)


def deletion_unanswered(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a failed broker in the ISR had not deleted its replicas of the partition's topic.

    It explains a topic deletion that waits for a failed broker again, which had not answered its StopReplica
    despite enough time. After an answer, its failure would write nothing for a topic under deletion. A broker
    answers requests in their order, so it has not answered later ones either (Kafka's `RequestSendThread`).
    """
    topic = tx.state.topics[write.tp.topic]
    if not (write.is_next and write.before is not None and topic.queued_for_deletion):
        return
    for broker in write.before.isr:
        deleted = write.partition.replica_state(broker) is ReplicaState.DELETION_SUCCESSFUL
        if deleted and broker not in tx.header.brokers:
            yield partial(failed_unanswered, broker=broker, since_ms=topic.asked_ms)


def deletion_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller begins now with a deletion that the read found.

    A read cannot show how far a deletion is, so it counts as done (Kafka 3.9 `TopicDeletionManager.onTopicDeletion`).
    Later writes show that it was not. A soak's first read had this moment.
    """
    topic = tx.state.topics[write.tp.topic]
    if topic.deletion_started and topic.asked_ms <= tx.header.read.began_ms:
        yield lambda trial: _delete(trial, write.tp.topic)


def _delete(tx: Transaction, name: str) -> None:
    topic = tx.state.topics[name]
    partitions = {
        number: with_initial_states(tx, partition, ReplicaState.OFFLINE)
        for number, partition in topic.partitions.items()
    }
    tx.state.put_topic(name, replace(topic, partitions=partitions, deletion_started=False, ineligible=False))
    tx.events.begin(EventKind.TOPIC_DELETION, f"the deletion of topic {name} was asked for")
    topic_deletion.start(tx, name)


class Rule(NamedTuple):
    """Rule of inference, with the recordings of real clusters in which it explains writes."""

    name: str  # the rule's name in its counter
    propose: Callable[[Transaction, ObservedWrite], Iterator[Hypothesis]]
    seen_in: tuple[str, ...]
    assumes_controlled_shutdown: bool = False  # not tried where controlled.shutdown.enable is false


RULES: Final = (
    Rule("loaded-before-registration", creations.loaded_before_registration, ("fuzz39e",)),
    Rule(
        "created-without-broker",
        creations.created_without_broker,
        ("fuzz28f", "unseen11"),
        assumes_controlled_shutdown=True,
    ),
    Rule("never-poisoned", failovers.never_poisoned, ()),
    Rule("deletion-answered", deletion_answered, ("fuzz39c", "fuzz28h", "unseen39")),
    Rule("deletion-unanswered", deletion_unanswered, ("fuzz11a",)),
    Rule("completed-without-leader", losses.completed_without_leader, ("fuzz24b",), assumes_controlled_shutdown=True),
    Rule("elected-after-all", elected_after_all, ("fuzz20b",)),
    Rule("preferred-election", preferred_election, ("unseen39b", "fuzz22a", "fuzz27a")),
    Rule("log-dir-failed", losses.log_dir_failed, ("hard39",)),
    Rule(
        "shutdown-reached-late",
        losses.shutdown_reached_late,
        ("fuzz0102a", "fuzz011a"),
        assumes_controlled_shutdown=True,
    ),
    Rule(
        "shutdown-asked",
        losses.shutdown_asked,
        ("fuzz011a", "fuzz20f", "fuzz32a", "fuzz28d"),
        assumes_controlled_shutdown=True,
    ),
    Rule("preferred-election-in-vain", preferred_election_in_vain, ()),
    Rule("reassigned-again", reassigned_again, ("unseen11", "unseen39b")),
    Rule("creation-found-early", creations.creation_found_early, ()),
    Rule("failure-found-early", failovers.failure_found_early, ()),
    Rule("unclean-election", unclean_election, ("fuzz39a", "fuzz28g", "fuzz32a")),
    Rule("deletion-found-early", deletion_found_early, ()),
    Rule("failover-found-early", failovers.failover_found_early, ()),
)


class OtherInference(NamedTuple):
    """Inference that is not tried on a written state, with the recordings of real clusters in which it is drawn."""

    name: str
    seen_in: tuple[str, ...]


# Events read at once, and failures read by the load, are looked for before the rules. The other inferences rest on
# time, a session's end, another controller or a topic's znode. Inferences without a recording were seen in none.
OTHER_INFERENCES: Final = (
    OtherInference(read_together.RULE, ("fuzz39a",)),
    OtherInference(read_by_load.RULE, ("fuzz11c",)),
    OtherInference(controlled_shutdown.ASKED_AGAIN, ("fuzz0102a", "fuzz28d")),
    OtherInference(controlled_shutdown.ASKED_BEFORE_SESSION_END, ("fuzz39a", "race39")),
    OtherInference(fenced_controller.RAN_TO_FENCED_WRITE, ("fuzz22a", "fuzz28c", "unseen39b")),
    OtherInference(unfenced_controller.RAN_UNFENCED, ("fuzz20d",)),
    OtherInference(topic_deletion.ANSWERED_IN_TIME, ("fuzz39c", "fuzz28a", "fuzz0102a")),
    OtherInference(topic_assignment.COMPLETED_UNREAD, ()),
    OtherInference(led_meanwhile.RULE, ()),
)
