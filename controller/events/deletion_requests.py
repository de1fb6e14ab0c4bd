"""Entries of /admin/delete_topics that delete no topic, or that are removed before the deletion ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import TopicPartition
from controller.machines.partition_machine import create, with_initial_states
from controller.model.event import EventKind
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition, Topic
from controller.rules.states import ReplicaState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction
from wording.sentences import counted

# A topic that the controller seems to have loaded may also be one that its first notification brought.
_READS_OF_TOPICS: Final = (EventKind.TOPIC_CHANGE, EventKind.CONTROLLER_FAILOVER)
_DELETIONS: Final = (EventKind.TOPIC_DELETION, EventKind.TOPIC_DELETION_STOP_REPLICA_RESPONSE_RECEIVED)


def note_unheeded(state: MutableState, name: str) -> None:
    """Note an entry that deletes no topic. A working controller removes it at once."""
    if _deletes_nothing(state, name):
        state.header.deletions.note_unheeded(name, state.header.time_ms)
    else:
        state.header.deletions.heed(name)


def note_read(state: MutableState, names: Sequence[str]) -> None:
    """Note at once which entries delete no topic, because a complete read may have very many."""
    unheeded = [name for name in names if _deletes_nothing(state, name)]
    state.header.deletions.note_all_unheeded(unheeded, state.header.time_ms)


def _deletes_nothing(state: MutableState, name: str) -> bool:
    topic = state.topic(name)
    return topic is None or not topic.queued_for_deletion


def entry_removed(tx: Transaction, name: str) -> None:
    """Handle the removal of an entry in /admin/delete_topics, of a topic that may still exist.

    A controller that had not read of the topic removed it, and keeps the topic. After a person's removal the controller
    continues the deletion (seen on 3.9), and only the next controller keeps the topic.
    """
    header, topic = tx.header, tx.state.topic(name)
    header.deletions.heed(name)
    if header.led_by_kraft:
        left = tuple(other for other in header.migration.deletions_asked if other != name)
        header.migration.deletions_asked = left
        if topic is not None and topic.queued_for_deletion:
            tx.state.put_topic(name, replace(topic, request_removed=True))
    elif topic is None or not topic.exists or not topic.queued_for_deletion:
        return
    elif _removed_for_unknown_topic(tx, name):
        _take_back_request(tx, name)
    else:
        tx.state.put_topic(name, replace(topic, request_removed=True))
        cause = (
            f"the deletion of {name} was withdrawn by hand after it had begun: data may be gone. The controller "
            "continues to delete until a failover"
        )
        occurrences.note(tx.state, kinds.DELETION_GIVEN_UP, cause, about=name)


def judge_removed(tx: Transaction) -> None:
    """Keep topics whose entry was removed by hand before the controller read it. A deletion takes leaders away."""
    if not tx.header.acting or kinds.DELETION_GIVEN_UP.name not in tx.header.alerts.occurrences:
        return
    for name, topic in list(tx.state.topics):
        if topic.seems_unread and tx.header.has_outlasted_a_hang(topic.asked_ms):
            _go_on_unread(tx, name)


def state_written(tx: Transaction, tp: TopicPartition) -> None:
    """Take in a partition that was left out because its topic was under deletion, but that the controller created."""
    topic = tx.state.topic(tp.topic)
    if topic is None or tp.partition not in topic.refused:
        return
    if topic.seems_unread and tx.header.acting:
        _go_on_unread(tx, tp.topic)
    else:
        tx.state.put_topic(tp.topic, with_refused(topic))


def _go_on_unread(tx: Transaction, name: str) -> None:
    """Give a topic whose deletion never began the states that ZooKeeper shows, and create the added partitions."""
    _take_back_request(tx, name)
    topic = tx.state.topics[name]
    for number in list(topic.partitions):
        tx.events.take_back(TopicPartition(name, number), bool)  # also what was planned for a broker that left
        partition = tx.state.topics[name].partitions[number]
        loaded = with_initial_states(tx, partition, ReplicaState.OFFLINE)
        tx.state.put_partition(TopicPartition(name, number), loaded)
    if topic.refused:
        added = counted(len(topic.refused), "partition")
        tx.events.begin(EventKind.PARTITION_MODIFICATIONS, f"{added} added to topic {name}")
        tx.state.put_topic(name, with_refused(tx.state.topics[name]))
        create(tx, [TopicPartition(name, number) for number in topic.refused])


def with_refused(topic: Topic) -> Topic:
    """Return the topic with the partitions that were added during its deletion."""
    added = {number: Partition(assignment.replicas) for number, assignment in topic.refused.items()}
    return replace(topic, partitions={**topic.partitions, **added}, refused={})


def _removed_for_unknown_topic(tx: Transaction, name: str) -> bool:
    """Return whether the controller removed the entry before it read of the topic (3.9 `processTopicDeletion`)."""
    by_controller = tx.state.record.author in (0, tx.header.term.session)
    is_created = any(partition.zk_state is not None for partition in tx.state.topics[name].partitions.values())
    return (by_controller and not is_created) and any(
        event.kind in _READS_OF_TOPICS and name in event.topics and not event.begun for event in tx.events.open_events()
    )


def _take_back_request(tx: Transaction, name: str) -> None:
    for event in tx.events.open_events():
        if event.kind in _DELETIONS and name in event.topics:
            tx.requests.undo(event.id)
    tx.header.deletions.go_on(name)
    tx.state.put_topic(name, not_asked(tx.state.topics[name]))


def not_asked(topic: Topic) -> Topic:
    """Return a topic whose deletion nobody asked for any more."""
    return replace(
        topic, queued_for_deletion=False, deletion_started=False, ineligible=False, request_removed=False, asked_ms=0
    )


def forget_removed_requests(state: MutableState) -> None:
    """Keep topics whose entry was removed by hand, because a new controller reads the entries again."""
    for name, topic in list(state.topics):
        if topic.request_removed:
            state.put_topic(name, not_asked(topic))
