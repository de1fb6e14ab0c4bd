"""Creation, expansion, configuration and removal of topics (Kafka's TopicChange and PartitionModifications).

The source is Kafka 3.9's `processTopicChange` and `processPartitionModifications`. The settings are those that the
controller's choices depend on.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.consequences import consequence_of
from controller.contract.ids import NO_LEADER, UNKNOWN_ZXID, PartitionId, TopicPartition
from controller.contract.records import Record, RecordKind
from controller.contract.znodes import ConfigZnode, TopicZnode, ZnodeError, decode
from controller.events import controller_failover, fenced_controller, flawed_znodes, migration, topic_deletion
from controller.machines import partition_machine
from controller.model.context import FOLLOWING, Header
from controller.model.event import Event, EventKind, UnknownBroker
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition, Topic
from controller.rules.assignment import ReplicaAssignment, assignment_in, distinct
from controller.rules.states import PartitionState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction
from wording.sentences import counted, listed, plural


def topic_written(tx: Transaction, name: str, znode: TopicZnode) -> None:
    """Handle the content of a topic's znode after a creation, an expansion, or a step of a reassignment."""
    tx.header.witness(topic_version=znode.version)
    record, before = tx.state.record, tx.state.topic(name) or Topic(exists=False)
    if _is_another(before, record):  # what is known of the topic before holds no more
        before = _settings_of(before)
    topic = replace(
        before, exists=True, topic_id=znode.topic_id or None, seen_generation=record.generation, czxid=record.czxid
    )
    if tx.header.phase is not FOLLOWING:
        partitions = _loaded(before, znode)
        tx.state.put_topic(name, replace(topic, partitions=partitions, refused={}))
        return
    added = [number for number in znode.partitions if number not in before.partitions]
    is_loading = tx.header.acting and controller_failover.is_loading(tx.state)
    is_notified = tx.header.acting and not is_loading
    refused: dict[PartitionId, ReplicaAssignment] = {}
    if topic.queued_for_deletion and is_notified:
        # The controller leaves added partitions out, and from 2.0 on restores the znode. A later controller that finds
        # them in the znode loads them.
        refused, added = {number: assignment_in(znode, number) for number in added}, []
    before = _without_unread(tx, name, before, znode)
    # A reassignment that the znode shows follows the creation (`topic_assignment`).
    created = {number: Partition(assignment_in(znode, number).origin) for number in added}
    tx.state.put_topic(name, replace(topic, partitions={**before.partitions, **created}, refused=refused))
    if added and is_loading:
        controller_failover.load(tx, name, added)
    elif added and is_notified:
        kind = EventKind.PARTITION_MODIFICATIONS if before.exists else EventKind.TOPIC_CHANGE
        added_count = counted(len(added), "partition")
        what = f"{added_count} added to topic {name}" if before.exists else f"topic {name} was created"
        event = tx.events.begin(kind, what)
        if not before.exists:
            event.detail = _unknown_broker(tx.header, event, created)
            tx.events.publish_transition("topic", "NonExistent", "Existing", topic=name)
            _note_risks(tx.state, name, created)
        leaked = before.leaked if before.leaked_epoch == tx.header.controller_epoch else ()
        partition_machine.create(tx, [TopicPartition(name, number) for number in added if number not in leaked])


def end_former(tx: Transaction, name: str) -> None:
    """Handle the removal of a topic, if the record is of another topic under its name. No watch reported the removal.

    A complete read stores values without conclusions.
    """
    topic = tx.state.topic(name)
    if topic is not None and _is_another(topic, tx.state.record) and tx.header.phase is FOLLOWING:
        topic_removed(tx, name)


def _is_another(topic: Topic, record: Record) -> bool:
    """Return whether the record's znode is another one than the topic's, because it was created later."""
    return topic.exists and UNKNOWN_ZXID < topic.czxid < record.czxid


def decoded(tx: Transaction, name: str, record: Record) -> TopicZnode:
    """Return the content of a topic's znode, and note its damage. Raise ZnodeError.

    The present controller keeps a topic as it was if its znode cannot be loaded.
    """
    try:
        znode = decode(record.content, TopicZnode)
    except ZnodeError as error:
        consequence = consequence_of(record.path, error.flaw, tx.header.profile.release)
        if consequence is not None and consequence.stops_controllers:
            tx.header.damaged.note_unloadable(name, tx.header.time_ms)
        raise
    topic = tx.state.topic(name)
    _note_damage(tx, name, znode, is_new=record.version == 0 or (topic is not None and _is_another(topic, record)))
    return znode


def _note_damage(tx: Transaction, name: str, znode: TopicZnode, *, is_new: bool) -> None:
    """Note whether a topic's znode lost or changed the id that its replicas have on disk, or got it back.

    A znode of version 0 belongs to a new topic, even if the removal of an earlier topic of this name was not seen.
    """
    topic, damaged = tx.state.topic(name), tx.header.damaged
    known = topic.topic_id if topic is not None and topic.exists and not is_new else None
    if is_new or tx.header.led_by_kraft:
        damaged.forget(name)
    elif known is not None or name in damaged.lost_ids or name in damaged.changed_ids or name in damaged.unloadable:
        damaged.load(name)
        damaged.note_id(name, known, znode.topic_id or None, tx.header.time_ms)


def _without_unread(tx: Transaction, name: str, topic: Topic, znode: TopicZnode) -> Topic:
    """Return the topic without partitions that the controller had not read when it rewrote the topic's znode."""
    kept = dict(topic.partitions)
    for number, partition in topic.partitions.items():
        if number in znode.partitions or partition.zk_state is not None or not _is_unread(tx, partition):
            continue
        for action in reversed(partition.queue):
            tx.events.withdraw(TopicPartition(name, number), action)
        del kept[number]
    return replace(topic, partitions=kept)


def _is_unread(tx: Transaction, partition: Partition) -> bool:
    events = [tx.events.open_event(action.event) for action in partition.queue]
    creation = next((event for event in events if event.kind is not EventKind.BROKER_CHANGE), None)
    if creation is not None and len(creation.topics) == 1:  # else a complete read began it for several topics
        return not creation.begun
    by_controller = tx.state.record.author in (0, tx.header.term.session)
    return partition.state is PartitionState.NON_EXISTENT or by_controller


def _unknown_broker(header: Header, event: Event, partitions: Mapping[PartitionId, Partition]) -> UnknownBroker | None:
    """Return a broker with replicas of a new topic, of which the controller may not know yet.

    A failover reads the brokers before the topics. A later BrokerChange handles brokers that register in between.
    """
    since_ms = header.term.began_ms
    late = {broker for broker, registered in header.brokers.items() if registered.since_ms >= since_ms}
    unknown = late.intersection(broker for partition in partitions.values() for broker in partition.replicas)
    return UnknownBroker(min(unknown)) if unknown and controller_failover.may_have_read(header, event) else None


def _note_risks(state: MutableState, name: str, partitions: Mapping[PartitionId, Partition]) -> None:
    if any(len(partition.replicas) == 1 for partition in partitions.values()):
        cause = f"{name} was created with partitions of one replica: each goes offline with its broker"
        occurrences.note(state, kinds.TOPIC_WITH_ONE_REPLICA, cause, about=name)
    offline = {broker for partition in partitions.values() for broker in partition.replicas} - set(state.header.brokers)
    if offline:
        were = plural(len(offline), "was", "were")
        brokers = listed(offline)
        cause = f"{name} was created with replicas on {brokers}, which {were} not live: it started with fewer replicas"
        occurrences.note(state, kinds.TOPIC_WITH_DEAD_REPLICA, cause, about=name)


def topic_removed(tx: Transaction, name: str) -> None:
    """Handle the removal of a topic's znode, at the end of its deletion or by hand."""
    tx.header.damaged.forget(name)
    topic, record = tx.state.topic(name), tx.state.record
    if topic is None or not topic.exists:
        return
    # A removal that was not seen is taken for a deletion, because the gap may hide its request.
    is_asked = topic.queued_for_deletion or record.resync or record.kind is not RecordKind.DELETED
    is_asked = is_asked or any(_was_taken_offline(tx.state, each) for each in topic.partitions.values())
    if tx.header.phase is FOLLOWING:
        if tx.header.led_by_kraft:
            migration.topic_deleted(tx.state, name, asked=is_asked)
        elif topic.queued_for_deletion:
            topic_deletion.completed(tx, name)
        elif not is_asked:
            _leak(tx.state, name, topic)
        by_controller = is_asked or tx.header.led_by_kraft
        tx.events.begin(
            EventKind.TOPIC_DELETION, f"topic {name} was {'deleted' if by_controller else 'removed by hand'}"
        )
        tx.events.publish_transition("topic", "Existing", "NonExistent", topic=name)
    fenced_controller.topic_ends(tx, name)
    topic = tx.state.topic(name) or topic
    for number, partition in topic.partitions.items():
        for action in partition.queue:
            tx.events.withdraw(TopicPartition(name, number), action)
    is_forgotten = is_asked or not tx.header.acting
    leaked = () if is_forgotten else tuple(sorted({*topic.leaked, *topic.partitions}))
    _keep(tx.state, name, replace(_settings_of(topic), leaked=leaked, leaked_epoch=tx.header.controller_epoch))


def _was_taken_offline(state: MutableState, partition: Partition) -> bool:
    """Return whether a partition is offline although its replicas live, as in a deletion whose request was not read."""
    value = partition.zk_state
    is_offline = partition.state is PartitionState.OFFLINE or (value is not None and value.leader == NO_LEADER)
    return is_offline and state.live.issuperset(partition.replicas) and not partition.offline_dirs


def settings_written(tx: Transaction, name: str, znode: ConfigZnode) -> None:
    """Apply a topic's settings, which may come before the topic itself if a tool creates it."""
    flawed_znodes.note_unparsable(tx.header, f"/config/topics/{name}", znode.config)
    topic = tx.state.topic(name) or Topic(exists=False)
    settings = replace(
        topic,
        min_insync_replicas=znode.integer("min.insync.replicas", at_least=1),
        unclean_election=znode.boolean("unclean.leader.election.enable"),
    )
    if settings != topic:
        _keep(tx.state, name, settings)
    retries = tx.header.acting and tx.header.profile.retries_topics_made_unclean
    if settings.exists and settings.unclean_election and not settings.queued_for_deletion and retries:
        tx.events.begin(
            EventKind.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE, f"unclean leader election is allowed for topic {name}"
        )
        waiting = (PartitionState.NEW, PartitionState.OFFLINE)
        tps = [TopicPartition(name, number) for number, part in settings.partitions.items() if part.state in waiting]
        partition_machine.bring_online(tx, tps)


def forget_settings(state: MutableState) -> None:
    """Forget the settings of all topics, because a complete read names only those that still have a znode."""
    for name, topic in state.topics:
        if _has_settings(topic):
            _keep(state, name, replace(topic, min_insync_replicas=None, unclean_election=None))


def forget_topic(state: MutableState, name: str, topic: Topic) -> None:
    """Forget a topic that a complete read did not name, except settings that it named."""
    _keep(state, name, _settings_of(topic))


def _leak(state: MutableState, name: str, topic: Topic) -> None:
    """Note a topic removed by hand. The controller forgets the topic, but not the states of its partitions."""
    cause = f"the znode of {name} was removed by hand: brokers keep and serve its replicas"
    occurrences.note(state, kinds.TOPIC_REMOVED_BY_HAND, cause, about=name)
    offline = sum(partition.state is PartitionState.OFFLINE for partition in topic.partitions.values())
    state.header.deletions.leak(offline if state.header.acting else 0)


def _settings_of(topic: Topic) -> Topic:
    return Topic(exists=False, min_insync_replicas=topic.min_insync_replicas, unclean_election=topic.unclean_election)


def _has_settings(topic: Topic) -> bool:
    return topic.min_insync_replicas is not None or topic.unclean_election is not None


def _keep(state: MutableState, name: str, topic: Topic) -> None:
    """Keep the topic, or forget it if it does not exist and leaves neither settings nor states behind."""
    state.put_topic(name, topic if topic.exists or topic.leaked or _has_settings(topic) else None)


def _loaded(before: Topic, znode: TopicZnode) -> dict[PartitionId, Partition]:
    """Return the partitions of a topic that a complete read found. Their states follow in the read."""
    if before.partitions or znode.adding_replicas or znode.removing_replicas:
        return {number: _unread(before, znode, number) for number in znode.partitions}
    # Nearly all topics are so, and this takes half the time.
    return {number: Partition(distinct(replicas)) for number, replicas in znode.partitions.items()}


def _unread(topic: Topic, znode: TopicZnode, number: PartitionId) -> Partition:
    assignment, before = assignment_in(znode, number), topic.partitions.get(number)
    if before is None:
        return Partition(assignment.replicas, adding=assignment.adding, removing=assignment.removing)
    # The partition's problem stays, so that a lasting problem keeps its beginning. The state follows in the read.
    unread = replace(before, zk_state=None, queue=(), zk_assignment=None, pending_assignments=())
    return unread.with_assignment(assignment)
