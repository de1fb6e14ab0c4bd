"""Failovers: what a new controller does first, and what a lost one leaves undone.

Here belongs what Kafka 3.9's `onControllerFailover` and `onControllerResignation` mean to the state. Who is controller
is the business of `controllership`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.events import controlled_shutdown, partition_reassignment, replica_leader_election, topic_deletion
from controller.events.broker_change import initial_partition_state, trigger_online, with_initial_states
from controller.machines import replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import NO_BROKER, Event
from controller.model.leadership import Remove
from controller.model.topics import Topic, TopicPartition
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Turn, replace

# Of 33 topics that were created within a second after a takeover it had read those after 5 ms and 30 ms, and from 31 ms
# on it heard of them later; only a controller whose process had just started took longer.
_LOADING_MS: Final = 20

# By then any controller has read it (the slowest of 140 took 0.68 s, just started).
_LOADED_MS: Final = 700


def run(turn: Turn) -> None:
    """A controller takes over: it forgets what only memory held, starts the machines, and takes up what is pending."""
    header = turn.header
    header.shutting_down, header.log_dir_failures = (), {}
    controlled_shutdown.keep_attempts(turn)
    header.halted_deletions, header.rebalancing, header.ineligible_leftovers = {}, {}, ()
    header.reassign_blind, header.leaked_offline = False, 0
    became = f"broker {header.controller} became controller in epoch {header.controller_epoch}"
    event = turn.begin("ControllerFailover", became)
    turn.await_proof(event)
    turn.moved("controller", "Elected", "Active", broker=header.controller)
    if header.brokers:
        turn.broadcast(turn.registered)
    topic_deletion.forget_unasked(turn)
    start_machines(turn, list(turn.topics))
    partition_reassignment.take_up(turn)
    topic_deletion.resume_all(turn)
    replica_leader_election.take_up(turn, at_failover=True)


def is_loading(turn: Turn) -> bool:
    """Whether the controller took over so lately that it reads what is there by now, and will not hear of it."""
    return turn.header.time_ms - turn.header.term_began_ms <= _LOADING_MS


def may_have_read(turn: Turn, event: Event) -> bool:
    """Whether the controller had taken over so lately that it may have read what the event is about when it did."""
    return event.time_ms - turn.header.term_began_ms <= _LOADED_MS


def load(turn: Turn, name: str, numbers: Iterable[int]) -> None:
    """A new controller finds these partitions of a topic when it reads the cluster."""
    topic = turn.topics[name]
    turn.begin("ControllerFailover", f"topic {name} was there when the cluster was read")
    found = {number: topic.partitions[number] for number in numbers}
    start_machines(turn, [(name, replace(topic, partitions=found))])


def cut(turn: Turn, broker: int) -> None:
    """What was not written when the controller on this broker went was never done.

    The controller is one thread: an event that has begun and has writes due is where it stopped, and what it had done
    of it is published already. If it stopped among removals from the ISR, its process is poisoned (KAFKA-12315).
    """
    header, events = turn.header, turn.open_events()
    header.deposed = NO_BROKER
    if not events:
        return
    stopped_in = next((event for event in events if event.begun and event.writes_due), None)
    fenced = header.profile.fences_writes
    if fenced and stopped_in is not None and _is_among_removals(turn, stopped_in):
        registered = header.brokers.get(broker)
        if registered is not None:
            header.poisoned = {**header.poisoned, broker: registered.epoch}
    for event in events:
        for tp in turn.waiting(event):
            _drop_queue(turn, tp)
        turn.withdraw_requests(turn.open_event(event.id))


def _is_among_removals(turn: Turn, event: Event) -> bool:
    return any(isinstance(step, Remove) and step.at_pass == event.frontier for step in turn.steps_of(event))


def _drop_queue(turn: Turn, tp: TopicPartition) -> None:
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} waits, and is not there"
    for step in partition.queue:
        turn.withdraw(tp, step)
    turn.put_partition(tp, replace(partition, queue=()))


def start_machines(turn: Turn, topics: list[tuple[str, Topic]]) -> None:
    """Set the states of topics' replicas and partitions as found, and move them on from there."""
    online: list[Replica] = []
    offline: list[Replica] = []
    for name, topic in topics:
        for number, partition in topic.partitions.items():
            tp = TopicPartition(name, number)
            loaded = replace(partition, offline_dirs=(), announced=None, expected=(), known=None)
            if partition.announced is not None:
                loaded = loaded.with_assignment(partition.announced)
            turn.put_partition(tp, with_initial_states(turn, loaded, ReplicaState.DELETION_INELIGIBLE))
            for broker in loaded.replicas:
                (online if broker in turn.header.brokers else offline).append(Replica(tp, broker))
    replica_machine.enter_state(turn, online, ReplicaState.ONLINE)
    if turn.header.profile.removes_dead_replicas_at_failover:
        # The dead leave the ISR before leaders are elected: a dead leader costs two writes at a failover.
        replica_machine.enter_state(turn, offline, ReplicaState.OFFLINE)
    for name, topic in topics:
        for number in topic.partitions:
            partition = turn.topics[name].partitions[number]
            state = initial_partition_state(turn, partition)
            turn.put_partition(TopicPartition(name, number), replace(partition, state=state))
    trigger_online(turn)
