"""Entrance to the replica: `step` applies one record, by the handler of its kind and its znode's place.

`docs/explanation/architecture.md` describes the rooms that the handlers are in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from controller.contract.forwarder_status import FROM_FILES, decode_status
from controller.contract.ids import TopicPartition
from controller.contract.records import Position, Record, RecordKind
from controller.contract.row import Row
from controller.contract.znode_table import Place, ZnodePath, locate
from controller.contract.znodes import (
    BrokerZnode,
    ClusterIdZnode,
    ConfigZnode,
    ControllerZnode,
    FeatureZnode,
    MigrationZnode,
    StateZnode,
    ZnodeError,
    decode,
    decode_config,
    decode_lasting_epoch,
)
from controller.events import (
    broker_change,
    broker_config,
    controlled_shutdown,
    controller_change,
    deletion_requests,
    flawed_znodes,
    isr_change_notification,
    log_dir_event_notification,
    migration,
    partition_reassignment,
    replica_leader_election,
    topic_change,
    topic_deletion,
)
from controller.inference import partition_state, read_by_load, shown_by_time, topic_assignment
from controller.model.context import BOOTSTRAPPING, FOLLOWING, LOADING, Context
from controller.model.published_rows import EVERY_CHANGE, RowKinds
from controller.transaction.conclusion import Conclusion, Outcome as Outcome
from controller.transaction.transaction import Transaction
from controller.watch import complete_read, ensemble, generations, loaded_states

_STATES_IN_A_TRANSACTION: Final = 4_096
_EVENTS_FOR_EACH_RECORD: Final = 256  # in flight. To judge one takes 2 to 5 µs, so a record takes up to a millisecond
_STALLED_MS: Final = 2_000  # without a heartbeat
_NODE: Final = RecordKind.NODE
_DISCONNECTED: Final = ("suspended", "lost")  # the states of its session in which the forwarder is blind


def step(context: Context, record: Record) -> Outcome:
    """Apply one record. A record at or before the context's position is a repetition and has no effect.

    Never raises for any content of ZooKeeper. An unreadable znode becomes a `RefusedRow`, and its last good value stays
    in force.
    """
    return _in_one_transaction(context, (record,))


def steps(
    context: Context, records: Sequence[Record], *, shows_partitions: bool = True, shows_steps: bool = True
) -> Outcome:
    """Apply records one after the other, as `step` does. Records of partition states share transactions.

    `shows_partitions` is whether the caller needs rows of partitions, `shows_steps` those of transitions and requests.
    """
    effects: list[Row] = []
    begin = 0
    while begin < len(records):
        end = _end_of_transaction(records, begin)
        batch, begin = records[begin:end], end
        if len(batch) > 1 and (loaded := loaded_states.load(context, batch)) is not None:
            context = loaded
            continue
        outcome = _in_one_transaction(context, batch, RowKinds(partitions=shows_partitions, steps=shows_steps))
        context = outcome.context
        effects += outcome.effects
    return Outcome(context, tuple(effects))


def _end_of_transaction(records: Sequence[Record], begin: int) -> int:
    """Return the index after the batch of state records that begins here. Any other record is a batch of its own."""
    end, most = begin, min(len(records), begin + _STATES_IN_A_TRANSACTION)
    while end < most and records[end].kind is _NODE and records[end].path.endswith("/state"):
        end += 1
    return max(end, begin + 1)


def _in_one_transaction(context: Context, records: Sequence[Record], shown: RowKinds = EVERY_CHANGE) -> Outcome:
    """Apply the records as if each had its own transaction, but at the fixed cost of a single transaction."""
    tx: Transaction | None = None
    effects: list[Row] = []
    position = context.header.position
    if records[0].kind is RecordKind.FORGOTTEN and records[0].position > position:
        return generations.forget_cluster(context, records[0])
    for record in records:
        at = record.position
        if at <= position:
            if tx is None and (refused := generations.refuse(context, record)) is not None:
                context = Context(refused.context.header, context.topics, context.replica_index)
                effects += refused.effects
            continue
        if tx is None:
            tx = Transaction(context, record, shown.by(record, is_loading=context.header.phase is LOADING))
            conclusion = Conclusion(tx)
        else:
            conclusion.next_record(record)
        _apply(tx, record, position)
        position = at
    if tx is None:
        return Outcome(context, tuple(effects))
    outcome = conclusion.finish()
    return Outcome(outcome.context, (*effects, *outcome.effects)) if effects else outcome


def _apply(tx: Transaction, record: Record, last: Position) -> None:
    tx.state.count(tx.state.happened.records, _WORDS[record.kind])
    header = tx.header
    header.feed.forgotten = False
    if _lacks_records_before(record, last):
        # The content of lost records is not known, which prevents conclusions until the next complete read.
        header.enter(BOOTSTRAPPING)
        header.feed.lacks_records = True
        tx.state.count(tx.state.happened.divergences, "records_missing")
    if tx.state.clock_set_by_ms:
        generations.note_clock_step(tx.state, of_another_generation=record.generation != last.generation)
    generations.forget_in_time(header, last)
    if record.author and record.author == header.term.session and record.cxid > 0:
        header.term.note_sign_of_life(header.time_ms)
    if record.kind is not RecordKind.DELETED or locate(record.path).place is not Place.BROKER:
        broker_change.plan_failures(tx)
    # A forwarder that came to nothing for so long may have lost events, whose differences then follow.
    stalled = bool(record.path) and tx.state.gone_ms > _STALLED_MS
    header.feed.catches_up = header.feed.catches_up or record.resync or stalled
    _run_timers(tx, record)
    _HANDLERS[record.kind](tx, record)


def _lacks_records_before(record: Record, position: Position) -> bool:
    """Return whether earlier records are missing. A generation's first record begins a complete read."""
    if record.generation == position.generation:
        return record.seq != position.seq + 1
    return record.kind is not RecordKind.SNAPSHOT_BEGIN


def _run_timers(tx: Transaction, record: Record) -> None:
    header = tx.header
    if header.phase is not FOLLOWING:
        return
    # During a storm of thousands of deletions, events are judged only at each heartbeat and each n-th record, so that a
    # record costs on average no more than with 256 events.
    every = 1 + len(header.events) // _EVENTS_FOR_EACH_RECORD
    if header.events and (record.seq % every == 0 or record.kind is RecordKind.HEARTBEAT):
        shown_by_time.judge(tx)
    if header.shutdowns.attempts:
        controlled_shutdown.ask_again(tx)
    if header.deletions.halted and header.acting:
        topic_deletion.judge_halted(tx)


def _node(tx: Transaction, record: Record) -> None:
    if tx.header.phase is BOOTSTRAPPING:
        return
    where = locate(record.path)
    handler = _WRITTEN.get(where.place)
    if handler is None:
        return
    try:
        handler(tx, where, record)
    except ZnodeError as error:
        flawed_znodes.refuse(tx, record, error)
    else:
        flawed_znodes.forget(tx.header, record.path)


def _created(tx: Transaction, record: Record) -> None:
    # The value vanished before it could be read. A deletion request needs only its name.
    where = locate(record.path)
    if where.place is Place.DELETE_TOPIC and tx.header.phase is not BOOTSTRAPPING:
        topic_deletion.deletion_asked(tx, where.name)
        migration.deletion_asked(tx.state, where.name)
    elif where.place is Place.LOG_DIR_EVENT and tx.header.phase is FOLLOWING:
        log_dir_event_notification.reported_by_unknown_broker(tx.header)
    elif where.place is Place.ISR_CHANGE and tx.header.phase is FOLLOWING:
        lagging = tx.state.unsettled(lambda partition: partition.cached is not None)
        isr_change_notification.states_read(tx.state, lagging)
    elif where.place is Place.PREFERRED_ELECTION and tx.header.acting:
        tx.header.triggers.preferred_asked_ms = tx.header.time_ms


def _deleted(tx: Transaction, record: Record) -> None:
    if tx.header.phase is BOOTSTRAPPING:
        return
    where = locate(record.path)
    flawed_znodes.forget(tx.header, record.path)
    handler = _REMOVED.get(where.place)
    if handler is not None:
        handler(tx, where)


def _heartbeat(tx: Transaction, record: Record) -> None:
    _session(tx, record)
    tx.header.read.is_ahead = False
    controller_change.judge_former_in_time(tx)
    if tx.header.phase is FOLLOWING:
        migration.judge_pulse(tx.header)
        deletion_requests.judge_removed(tx)
        broker_config.judge_again(tx.state)
        broker_change.forget_departed(tx)


def _session(tx: Transaction, record: Record) -> None:
    header, status = tx.header, decode_status(record.content)
    header.feed.session, header.feed.watch_mode = status.session, status.watch_mode
    since_ms = header.feed.disconnected_ms or header.time_ms
    header.feed.disconnected_ms = since_ms if status.session in _DISCONNECTED else 0
    if record.kind is RecordKind.HEARTBEAT:
        header.maintenance = status.maintenance
        flawed_znodes.note_besides(header, status.flaws)
        ensemble.note(tx.state, status.ensemble)
    ensemble.note_rollback(tx.state, status.lost_zxid)
    complete_read.end_gap(tx)


def _snapshot_begin(tx: Transaction, record: Record) -> None:
    header, status = tx.header, decode_status(record.content)
    header.clocks.wall_clock_of = status.clock_of
    flawed_znodes.note_besides(header, status.flaws)
    if status.session == FROM_FILES:
        _session(tx, record)  # the first row has it, although the read has no heartbeat yet
    complete_read.begin(tx)


def _controller_written(tx: Transaction, _: ZnodePath, record: Record) -> None:
    try:
        znode = decode(record.content, ControllerZnode)
    except ZnodeError as error:
        controller_change.controller_unreadable(tx, error.flaw)
        raise
    controller_change.controller_written(tx, znode, record)


def _epoch_written(tx: Transaction, _: ZnodePath, record: Record) -> None:
    controller_change.epoch_written(tx, decode_lasting_epoch(record.raw))


def _broker_written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    unread = None
    try:
        znode = decode(record.content, BrokerZnode)
    except ZnodeError as error:
        if tx.header.phase is FOLLOWING:
            raise
        znode, unread = _EDITED_BROKER, error  # the session lasts, so the broker is live, whoever edited its znode
    broker_change.broker_written(tx, where.broker, znode, record)
    migration.broker_registered(tx, where.broker)
    if where.broker == tx.header.controller:
        controller_change.controllers_broker_registered(tx)
        # In a complete read /controller came first, when this broker's session was not known yet.
        controller_change.take_over_if_due(tx)
    if unread is not None:
        raise unread


_EDITED_BROKER: Final = BrokerZnode(version=2, jmx_port=-1, endpoints=())


def _controller_removed(tx: Transaction, _: ZnodePath) -> None:
    controlled_shutdown.session_ended(tx, tx.header.controller)  # because the registration of its broker goes with it
    controller_change.controller_removed(tx)


def _broker_removed(tx: Transaction, where: ZnodePath) -> None:
    waits = broker_change.waits_for_more(tx, where.broker)
    if not waits:
        broker_change.plan_failures(tx)
    controlled_shutdown.session_ended(tx, where.broker)
    controller_change.broker_ended(tx, where.broker)
    broker_change.broker_removed(tx, where.broker, waits=waits)
    read_by_load.judge_failure(tx, where.broker)
    migration.brokers_changed(tx.header)


def _topic_written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    znode = topic_change.decoded(tx, where.name, record)
    topic_change.end_former(tx, where.name)
    before = tx.state.topic(where.name)
    topic_change.topic_written(tx, where.name, znode)
    if (before is None or not before.exists) and tx.header.phase is FOLLOWING:
        migration.topic_created(tx.state, where.name, has_id=bool(znode.topic_id))
    if tx.header.phase is FOLLOWING:
        topic_assignment.topic_written(tx, where.name, before, znode)


def _state_written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    tp = TopicPartition(where.name, where.partition)
    partition_state.state_written(tx, tp, decode(record.content, StateZnode), record.version)


def _deletion_written(tx: Transaction, where: ZnodePath, _: Record) -> None:
    if tx.header.phase is LOADING:
        complete_read.deletion_listed(tx, where.name)
    else:
        topic_deletion.deletion_asked(tx, where.name)
        deletion_requests.note_unheeded(tx.state, where.name)
        migration.deletion_asked(tx.state, where.name)


def _reassignment_asked(tx: Transaction, _: ZnodePath, record: Record) -> None:
    asked = () if tx.header.triggers.reassign is None else tx.header.triggers.reassign
    # The error refuses unreadable content, but the znode was written all the same, and the former request goes on.
    try:
        asked = partition_reassignment.requested(record.content, tx.header.profile.release)
    finally:
        partition_reassignment.znode_written(tx, asked, is_new=record.version == 0)


def _migration_written(tx: Transaction, _: ZnodePath, record: Record) -> None:
    migration.znode_written(tx, decode(record.content, MigrationZnode), record)


def _features_written(tx: Transaction, _: ZnodePath, record: Record) -> None:
    znode = decode(record.content, FeatureZnode)
    tx.header.witness(feature_version=znode.version, finalizes_features=znode.status)


def _cluster_id_written(tx: Transaction, _: ZnodePath, record: Record) -> None:
    flawed_znodes.identified(tx.header, decode(record.content, ClusterIdZnode).id)


def _broker_config_written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    broker_config.written(tx, where.name, decode_config(record.raw))


def _settings_written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    topic_change.settings_written(tx, where.name, decode_config(record.raw))
    migration.settings_written(tx.state, where.name)


_HANDLERS: Final[Mapping[RecordKind, Callable[[Transaction, Record], None]]] = {
    RecordKind.SNAPSHOT_BEGIN: _snapshot_begin,
    RecordKind.NODE: _node,
    RecordKind.SNAPSHOT_END: lambda tx, _: complete_read.end(tx),
    RecordKind.CREATED: _created,
    RecordKind.DELETED: _deleted,
    RecordKind.HEARTBEAT: _heartbeat,
    RecordKind.SESSION: _session,
}

_WORDS: Final[Mapping[RecordKind, str]] = {kind: kind.value for kind in RecordKind}

# Handlers of a znode's new value, by its place. The replica ignores other places.
_WRITTEN: Final[Mapping[Place, Callable[[Transaction, ZnodePath, Record], None]]] = {
    Place.CONTROLLER: _controller_written,
    Place.CONTROLLER_EPOCH: _epoch_written,
    Place.BROKER: _broker_written,
    Place.TOPIC: _topic_written,
    Place.PARTITION_STATE: _state_written,
    Place.DELETE_TOPIC: _deletion_written,
    Place.TOPIC_CONFIG: _settings_written,
    Place.LOG_DIR_EVENT: log_dir_event_notification.written,
    Place.REASSIGN_PARTITIONS: _reassignment_asked,
    Place.PREFERRED_ELECTION: lambda tx, _, record: replica_leader_election.znode_written(tx, record),
    Place.ISR_CHANGE: isr_change_notification.written,
    Place.MIGRATION: _migration_written,
    Place.BROKER_CONFIG: _broker_config_written,
    Place.FEATURE: _features_written,
    Place.CLUSTER_ID: _cluster_id_written,
}

# Handlers of a znode's removal, by its place.
_REMOVED: Final[Mapping[Place, Callable[[Transaction, ZnodePath], None]]] = {
    Place.CONTROLLER: _controller_removed,
    Place.BROKER: _broker_removed,
    Place.TOPIC: lambda tx, where: topic_change.topic_removed(tx, where.name),
    Place.PARTITION_STATE: lambda tx, where: partition_state.state_removed(
        tx, TopicPartition(where.name, where.partition)
    ),
    Place.DELETE_TOPIC: lambda tx, where: deletion_requests.entry_removed(tx, where.name),
    Place.ISR_CHANGE: lambda tx, where: isr_change_notification.removed(tx, where.name),
    Place.LOG_DIR_EVENT: lambda tx, where: tx.header.triggers.note_log_dir_event(where.name, waits=False),
    Place.MIGRATION: lambda tx, _: migration.znode_removed(tx.header),
    Place.REASSIGN_PARTITIONS: lambda tx, _: partition_reassignment.znode_removed(tx),
    Place.PREFERRED_ELECTION: lambda tx, _: replica_leader_election.znode_removed(tx.header),
    Place.BROKER_CONFIG: lambda tx, where: broker_config.written(tx, where.name, ConfigZnode()),
    Place.TOPIC_CONFIG: lambda tx, where: topic_change.settings_written(tx, where.name, ConfigZnode()),
    Place.CLUSTER_ID: lambda tx, _: flawed_znodes.lost(tx.header, Place.CLUSTER_ID.value),
    Place.CONTROLLER_EPOCH: lambda tx, _: flawed_znodes.lost(tx.header, Place.CONTROLLER_EPOCH.value),
}
