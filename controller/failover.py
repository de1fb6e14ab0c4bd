"""Who is controller: elections, failovers, and what a controller's loss leaves undone.

Here belongs what Kafka 3.9's `elect`, `onControllerFailover` and `onControllerResignation` mean to the state. A
controller acts once its epoch is larger than the last one's and /controller names it, in either order.
"""

from __future__ import annotations

from controller import reassignment, replica_machine, topic_deletion
from controller.broker_change import initial_partition_state, trigger_online, with_initial_states
from controller.context import NO_BROKER, Event, Phase
from controller.leadership import Remove
from controller.outputs import ControllerRow
from controller.records import Record
from controller.replica_machine import Replica
from controller.states import ReplicaState
from controller.topics import Partition, TopicPartition
from controller.turn import Turn, replace
from controller.znodes import ControllerZnode


def controller_written(turn: Turn, znode: ControllerZnode, record: Record) -> None:
    """/controller has this value."""
    header = turn.header
    header.witness(controller_version=znode.version)
    # An election creates the znode; a later version is somebody's edit, and whom it names never took over.
    header.controller_overwritten = record.version > 0
    if znode.brokerid == header.controller and not header.controller_overwritten:
        return
    _lose(turn, f"broker {header.controller} lost /controller")
    header.controller, header.controller_since_ms = znode.brokerid, record.observed_ms
    _take_over(turn)
    publish_controller(turn)


def controller_removed(turn: Turn) -> None:
    """/controller vanished: nobody is controller."""
    header = turn.header
    if header.controller == NO_BROKER:
        return
    _lose(turn, f"broker {header.controller} is no longer controller")
    header.controller, header.controller_since_ms = NO_BROKER, turn.record.observed_ms
    header.controller_overwritten = False
    publish_controller(turn)


def epoch_written(turn: Turn, epoch: int) -> None:
    """/controller_epoch has this value."""
    header = turn.header
    if epoch < header.controller_epoch:
        turn.count("divergences/controller_epoch_went_back")
    if epoch != header.controller_epoch:
        header.controller_epoch = epoch
        _take_over(turn)
        publish_controller(turn)


def publish_controller(turn: Turn) -> None:
    """The controller's row as it is now; during a complete read nothing is published."""
    header = turn.header
    if header.phase is Phase.FOLLOWING:
        turn.effects.append(
            ControllerRow(
                **turn.stamp(),
                broker=header.controller,
                epoch=header.controller_epoch,
                since_ms=header.controller_since_ms,
            )
        )


def adopt(turn: Turn) -> None:
    """At the end of a complete read: the controller that was found is taken as acting, its past is unknown."""
    header = turn.header
    header.term_active = header.controller != NO_BROKER and not header.controller_overwritten
    header.term_epoch = header.controller_epoch


def cut(turn: Turn) -> None:
    """What was not written when the controller went was never done.

    The controller is one thread: an event that has begun and has writes due is where it stopped, and what it had done
    of it is published already. If it stopped among removals from the ISR, its process is poisoned (KAFKA-12315).
    """
    header = turn.header
    if not header.events:
        return
    stopped_in = next((event for event in header.events.values() if event.begun and event.writes_due), None)
    fenced = header.profile.fences_writes
    if fenced and stopped_in is not None and _is_among_removals(turn, stopped_in):
        registered = header.brokers.get(header.controller)
        if registered is not None:
            header.poisoned = {**header.poisoned, header.controller: registered.epoch}
    for name, topic in turn.topics:
        for number, partition in topic.partitions.items():
            if partition.queue:
                _drop_queue(turn, TopicPartition(name, number), partition)


def _is_among_removals(turn: Turn, event: Event) -> bool:
    for name in event.topics:
        topic = turn.topic(name)
        for partition in topic.partitions.values() if topic else ():
            for step in partition.queue:
                if step.event == event.id and step.at_pass == event.frontier and isinstance(step, Remove):
                    return True
    return False


def _drop_queue(turn: Turn, tp: TopicPartition, partition: Partition) -> None:
    for step in partition.queue:
        turn.withdraw(tp, step)
    turn.put_partition(tp, replace(partition, queue=()))


def _lose(turn: Turn, cause: str) -> None:
    header = turn.header
    if header.phase is not Phase.FOLLOWING:
        return
    if header.term_active:
        turn.begin("ControllerResignation", cause)
        turn.moved("controller", "Active", "Resigned", broker=header.controller)
    cut(turn)
    header.term_active = False
    _touch_unusable(turn)


def _take_over(turn: Turn) -> None:
    """Fail over to the new controller if the epoch and /controller both say that there is one."""
    header = turn.header
    if header.phase is not Phase.FOLLOWING or header.controller == NO_BROKER or header.controller_overwritten:
        return
    # /controller_epoch is made as 0 before anybody is controller (from 2.1 on): the first term is 1.
    if header.controller_epoch <= max(header.term_epoch, 0):
        return
    cut(turn)
    header.term_epoch, header.term_active = header.controller_epoch, True
    header.shutting_down, header.shutdown_attempts, header.log_dir_failures = (), {}, {}
    header.halted_deletions = {}
    header.controller_changes += 1
    turn.begin("ControllerFailover", f"broker {header.controller} became controller in epoch {header.controller_epoch}")
    turn.moved("controller", "Elected", "Active", broker=header.controller)
    if header.brokers:
        turn.request("UpdateMetadata", tuple(sorted(header.brokers)), partitions=())
    _start_machines(turn)
    reassignment.resume_all(turn)
    topic_deletion.resume_all(turn)
    _touch_unusable(turn)


def _start_machines(turn: Turn) -> None:
    online: list[Replica] = []
    offline: list[Replica] = []
    for name, topic in turn.topics:
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
    for name, topic in turn.topics:
        for number in topic.partitions:
            tp = TopicPartition(name, number)
            settled = turn.partition(tp)
            if settled is not None:
                turn.put_partition(tp, replace(settled, state=initial_partition_state(turn, settled)))
    trigger_online(turn)


def _touch_unusable(turn: Turn) -> None:
    """Whether an election is due depends on the controller: judge again what cannot be used."""
    for name, topic in turn.topics:
        for number, partition in topic.partitions.items():
            if partition.problem is not None:
                turn.touch(TopicPartition(name, number))
