"""A ZooKeeper that exists only as the records it would cause, with its zxids, versions and sequence numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import RefusedRow, Request, RequestedState, Status, Transition
from controller.contract.forwarder_status import Ensemble, ForwarderStatus, MaintenanceWindow
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import BrokerRow, PartitionRow
from controller.contract.records import Record, RecordKind, data_fields
from controller.contract.row import Row
from controller.model.broker_replica_index import BrokerReplicaIndex
from controller.model.context import Context, Phase
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.rules.releases import profile_of
from controller.rules.settings import GivenSettings
from controller.step import step, steps
from controller.view.partition_issues import index_issues, issues_of

# A session's number shows its owner, with the broker's id in the last digits and its life in front.
_FIRST_SESSION, _NEXT_LIFE = 0x1000, 0x10000

LOG_DIR_EVENT = "/log_dir_event_notification/log_dir_event_0000000000"


# By topic and partition: (replicas,), or (replicas, leader, leader epoch, ISR).
Topics = Mapping[str, Mapping[int, tuple[Any, ...]]]


class ZnodeHistory:
    """Changes znodes, hands each change to the core as a record, and keeps the rows."""

    def __init__(
        self,
        cluster: str = "c",
        chunk_count: int = 8,
        *,
        release: tuple[int, int] | None = None,
        settings: GivenSettings | None = None,
        preferred_controllers: tuple[BrokerId, ...] = (),
    ) -> None:
        profile = None if release is None else profile_of(release)
        self.context: Context = new_context(cluster, settings, profile, preferred_controllers, chunk_count=chunk_count)
        self.effects: list[Row] = []
        self.records: list[Record] = []
        self.cluster = cluster
        self.generation = 1
        self.seq = -1
        self.zxid = 100
        self.now_ms = 1_000_000
        self.wall_ahead_ms = 0  # how wrong the forwarder's wall clock is
        self.steady_from_ms: int | None = None  # when its steady clock was at 0. None without such a clock
        self.znodes: dict[str, tuple[int, int]] = {}  # path -> czxid, version
        self.contents: dict[str, object] = {}  # path -> last written content
        self.sessions: dict[int, int] = {}  # broker -> its ZooKeeper session
        self.registered: set[int] = set()  # brokers that were there before. Another registration is another session
        self.block_began = 0  # the number of rows before this block of a story
        self.reading = False  # between a complete read's begin and its end

    def send(self, kind: RecordKind, **fields: Any) -> tuple[Row, ...]:
        self.seq += 1
        self.now_ms += 10
        self.reading = kind is RecordKind.SNAPSHOT_BEGIN or (self.reading and kind is not RecordKind.SNAPSHOT_END)
        record = Record(
            cluster=self.cluster,
            generation=self.generation,
            seq=self.seq,
            kind=kind,
            observed_ms=self.now_ms + self.wall_ahead_ms,
            steady_ms=-1 if self.steady_from_ms is None else self.now_ms - self.steady_from_ms,
            **fields,
        )
        self.records.append(record)
        before = encode_header(self.context)
        outcome = step(self.context, record)
        assert encode_header(self.context) == before, "a step changes nothing in the context that it is given"
        self.context = outcome.context
        self.effects.extend(outcome.effects)
        return outcome.effects

    def write(
        self, path: str, content: object = None, *, same_zxid: bool = False, owner: int | None = None, **fields: Any
    ) -> tuple[Row, ...]:
        if owner is None:
            owner = self._owner(path, content)
        read_again = self.reading and path in self.znodes and self.contents.get(path, ...) == content
        if not same_zxid and not read_again:
            self.zxid += 1
        czxid, version = self.znodes.get(path, (self.zxid, -1))
        version -= read_again
        self.znodes[path] = (czxid, version + 1)
        self.contents[path] = content
        data = content if isinstance(content, bytes) or content is None else json.dumps(content).encode()
        stat = {"czxid": czxid, "mzxid": self.zxid, "version": version + 1, "ephemeral_owner": owner}
        return self.send(RecordKind.NODE, path=path, **{"zxid": self.zxid} | stat | fields, **data_fields(data))

    def _owner(self, path: str, content: object) -> int:
        """Return the session that brokers would give an ephemeral znode."""
        if path.startswith("/brokers/ids/") and path.rpartition("/")[2].isdigit():
            broker = int(path.rpartition("/")[2])
            if path not in self.znodes and broker in self.registered:
                self.sessions[broker] += _NEXT_LIFE
            self.registered.add(broker)
            return self.session_of(broker)
        if path == "/controller" and isinstance(content, dict):
            return self.session_of(content["brokerid"])
        return 0

    def session_of(self, broker: int) -> int:
        return self.sessions.setdefault(broker, _FIRST_SESSION + broker)

    def lose(self, name: str, partition: int, count: int = 1) -> None:
        """Write a partition's state this often without a record. Only its version shows the writes."""
        path = f"/brokers/topics/{name}/partitions/{partition}/state"
        czxid, version = self.znodes[path]
        self.znodes[path] = (czxid, version + count)

    def came_and_went(self, path: str) -> tuple[Row, ...]:
        """Create a znode that is gone before its value can be read."""
        self.zxid += 1
        return self.send(RecordKind.CREATED, path=path, zxid=self.zxid)

    def delete(self, path: str, *, same_zxid: bool = False, **fields: Any) -> tuple[Row, ...]:
        if not same_zxid:
            self.zxid += 1
        self.znodes.pop(path, None)
        return self.send(RecordKind.DELETED, path=path, **{"zxid": self.zxid} | fields)

    def heartbeat(
        self,
        after_ms: int = 1_000,
        *,
        session: str = "connected",
        maintenance: tuple[MaintenanceWindow, ...] = (),
        ensemble: Ensemble | None = None,
    ) -> tuple[Row, ...]:
        self.now_ms += after_ms
        status = ForwarderStatus(session, "persistent", maintenance, ensemble=ensemble)
        return self.send(RecordKind.HEARTBEAT, zxid=self.zxid, data=msgspec.json.encode(status).decode())

    def snapshot(self, *writes: tuple[str, object]) -> None:
        self.send(RecordKind.SNAPSHOT_BEGIN)
        for path, content in writes:
            self.write(path, content)
        self.send(RecordKind.SNAPSHOT_END, zxid=self.zxid)

    def start(
        self, *brokers: int, controller: int = 1, epoch: int = 1, topics: Topics | None = None, **more: object
    ) -> ZnodeHistory:
        """Make a complete read. `topics` gives each partition's (replicas,) or (replicas, leader, epoch, isr)."""
        writes: list[tuple[str, object]] = [
            ("/controller", controller_znode(controller)),
            ("/controller_epoch", str(epoch).encode()),
        ]
        writes += [(f"/brokers/ids/{broker}", broker_znode(broker)) for broker in brokers]
        for name, partitions in (topics or {}).items():
            replicas = {number: list(partition[0]) for number, partition in partitions.items()}
            writes.append((f"/brokers/topics/{name}", topic_znode(replicas, **more)))
            for number, (_, *state) in partitions.items():
                if state:
                    leader, leader_epoch, isr = state
                    path = f"/brokers/topics/{name}/partitions/{number}/state"
                    writes.append((path, state_znode(leader, leader_epoch, list(isr), epoch)))
        self.snapshot(*writes)
        return self

    def start_from(self, znodes: dict[str, object]) -> None:
        """Make a complete read of many znodes, applied at once. The history does not keep its records."""
        kinds: list[tuple[RecordKind, dict[str, Any]]] = [
            (RecordKind.SNAPSHOT_BEGIN, {}),
            *self._read(znodes),
            (RecordKind.SNAPSHOT_END, {"zxid": self.zxid}),
        ]
        records = []
        for kind, fields in kinds:
            self.seq += 1
            records.append(
                Record(
                    cluster=self.cluster,
                    generation=self.generation,
                    seq=self.seq,
                    kind=kind,
                    observed_ms=self.now_ms,
                    **fields,
                )
            )
        outcome = steps(self.context, records)
        self.context = outcome.context
        self.effects.extend(row for row in outcome.effects if isinstance(row, AlertRow))

    def _read(self, znodes: dict[str, object]) -> Iterator[tuple[RecordKind, dict[str, Any]]]:
        for path, content in znodes.items():
            owner = self._owner(path, content)
            self.znodes[path] = (self.zxid, 0)
            self.contents[path] = content
            stat = {"czxid": self.zxid, "mzxid": self.zxid, "version": 0, "ephemeral_owner": owner, "zxid": self.zxid}
            yield RecordKind.NODE, {"path": path, **stat, **data_fields(json.dumps(content).encode())}

    def restart(self) -> None:
        """Start the job again with the stored context."""
        header = self.context.header
        stored = changed_chunks(new_context(header.cluster, chunk_count=header.chunk_count), self.context)
        self.context = restore_context(header.cluster, encode_header(self.context), stored.get)

    # --- the cluster's vocabulary

    def broker(self, broker: int) -> tuple[Row, ...]:
        return self.write(f"/brokers/ids/{broker}", broker_znode(broker))

    def broker_leaves(self, broker: int) -> tuple[Row, ...]:
        return self.delete(f"/brokers/ids/{broker}")

    def broker_closes(self, broker: int) -> tuple[Row, ...]:
        """Let the broker close its own session. Only ZooKeeper's log distinguishes that from an expiry."""
        return self.delete(f"/brokers/ids/{broker}", cxid=9, author=self.session_of(broker))

    def broker_bounces(self, broker: int) -> tuple[Row, ...]:
        """Register the broker again before its absence could be seen."""
        path = f"/brokers/ids/{broker}"
        del self.znodes[path]
        return self.broker(broker)

    def controller_dies(self, broker: int) -> tuple[Row, ...]:
        """End the controller's session. Its two ephemeral znodes vanish in one transaction."""
        effects = self.delete("/controller")
        return effects + self.delete(f"/brokers/ids/{broker}", same_zxid=True)

    def reassign(self, *targets: tuple[str, int, list[int]]) -> tuple[Row, ...]:
        entries = [{"topic": topic, "partition": number, "replicas": to} for topic, number, to in targets]
        return self.write("/admin/reassign_partitions", {"version": 1, "partitions": entries})

    def elect_preferred(self, *partitions: tuple[str, int]) -> tuple[Row, ...]:
        entries = [{"topic": topic, "partition": number} for topic, number in partitions]
        return self.write("/admin/preferred_replica_election", {"version": 1, "partitions": entries})

    def delete_topic(self, name: str) -> tuple[Row, ...]:
        return self.write(f"/admin/delete_topics/{name}")

    def topic_vanishes(self, name: str, *partitions: int) -> tuple[Row, ...]:
        """Make the last writes of a deletion, in the controller's order."""
        effects: tuple[Row, ...] = ()
        for number in partitions:
            effects += self.delete(f"/brokers/topics/{name}/partitions/{number}/state")
        effects += self.delete(f"/brokers/topics/{name}")
        return effects + self.delete(f"/admin/delete_topics/{name}")

    def the_controller_writes_its_due(self, *topics: str) -> tuple[Row, ...]:
        """Write every state that the controller still has to write, one after the other."""
        effects: tuple[Row, ...] = ()
        names = topics or tuple(name for name, _ in self.context.topics)
        written = None
        while (write := next(filter(None, map(self._next_write, names)), None)) and write != written:
            effects += self.state(*write)
            written = write
        return effects

    def _next_write(self, name: str) -> tuple[str, int, int, int, list[int], int] | None:
        topic = self.context.topics.get(name)
        epoch = self.context.header.controller_epoch
        for number, partition in topic.partitions.items() if topic else ():
            for intent in partition.queue:
                value = intent.apply(partition.zk_state, epoch)
                if value is not None:
                    return name, number, value.leader, value.leader_epoch, list(value.isr), epoch
        return None

    def controller(self, broker: int, epoch: int) -> tuple[Row, ...]:
        effects = self.write("/controller", controller_znode(broker))
        return effects + self.write("/controller_epoch", str(epoch).encode(), same_zxid=True)

    def migration(self, offset: int = -1, controller: int = -1, kraft_epoch: int = -1) -> tuple[Row, ...]:
        return self.write("/migration", migration_znode(offset, controller, kraft_epoch))

    def kraft_claims(self, controller: int, kraft_epoch: int, epoch: int) -> tuple[Row, ...]:
        """Let a KRaft controller make /controller persistent and raise /controller_epoch, in one transaction."""
        self.znodes.pop("/controller", None)
        claim = controller_znode(controller) | {"kraftControllerEpoch": kraft_epoch}
        effects = self.write("/controller", claim, owner=0)
        return effects + self.write("/controller_epoch", str(epoch).encode(), same_zxid=True)

    def migrates(self, *, offset: int = 300) -> ZnodeHistory:
        """Let a quorum claim, copy and write its first pulse. KRaft controller 3001 leads, with epochs 3 and 2."""
        self.migration()
        self.kraft_claims(3001, 3, 2)
        self.migration(-1, 3001, 3)
        self.migration(offset, 3001, 3)
        self.migration(offset + 1, 3001, 3)
        return self

    def pulses(self, seconds: int, *, offset: int = 400, controller: int = 3001, kraft_epoch: int = 3) -> ZnodeHistory:
        """Continue the dual write for some seconds, with a heartbeat each."""
        for second in range(seconds):
            self.migration(offset + second, controller, kraft_epoch)
            self.heartbeat()
        return self

    def topic(self, name: str, assignment: dict[int, list[int]], **more: object) -> tuple[Row, ...]:
        return self.write(f"/brokers/topics/{name}", topic_znode(assignment, **more))

    def state(
        self,
        name: str,
        partition: int,
        leader: int,
        leader_epoch: int,
        isr: Sequence[int],
        controller_epoch: int | None = None,
        **more: object,
    ) -> tuple[Row, ...]:
        path = f"/brokers/topics/{name}/partitions/{partition}/state"
        written_by = max(1, self.context.header.controller_epoch) if controller_epoch is None else controller_epoch
        return self.write(path, state_znode(leader, leader_epoch, isr, written_by, **more))

    # --- the rows

    def row(self, topic: str, partition: int) -> PartitionRow:
        rows = [row for row in self.effects if isinstance(row, PartitionRow)]
        return next(row for row in reversed(rows) if (row.topic, row.partition) == (topic, partition))

    def brokers(self) -> dict[int, BrokerRow]:
        """Return the registered brokers, by their newest rows."""
        last = {row.broker: row for row in self.effects if isinstance(row, BrokerRow)}
        return {broker: row for broker, row in last.items() if row.registered}

    def alerts(self) -> list[tuple[str, str]]:
        return [(row.state, row.id) for row in self.effects if isinstance(row, AlertRow)]

    def open_alerts(self) -> dict[str, AlertRow]:
        """Return alerts that are open or unknown, by their last rows."""
        last = {row.id: row for row in self.effects if isinstance(row, AlertRow)}
        return {key: row for key, row in last.items() if row.state != "resolved"}

    def gauges(self) -> GaugesRow:
        row = self.heartbeat(0)[-1]
        assert isinstance(row, GaugesRow)
        return row

    def transitions(self, effects: tuple[Row, ...]) -> list[str]:
        return [told(row) for row in effects if isinstance(row, Transition)]

    def moves(self, effects: tuple[Row, ...], status: Status) -> list[str]:
        """Return the transitions of one status, without the status word."""
        rows = [row for row in effects if isinstance(row, Transition) and row.status is status]
        return [told(row).partition(" ")[2] for row in rows]

    def requests(self, effects: tuple[Row, ...]) -> list[str]:
        return [line for row in effects if isinstance(row, Request) for line in asked(row)]

    def refusals(self) -> list[RefusedRow]:
        return [row for row in self.effects if isinstance(row, RefusedRow)]

    def predicted(self, topic: str, partition: int) -> tuple[int, int, tuple[int, ...]] | None:
        """Return the state that the controller must still write, as leader, leader epoch, ISR."""
        in_topic = self.context.topics.get(topic)
        assert in_topic is not None
        known = in_topic.partitions[PartitionId(partition)]
        if not known.write_due:
            return None
        value = known.value(self.context.header.controller_epoch)
        assert value is not None
        return value.leader, value.leader_epoch, value.isr


def on(replicas: list[int], leader: int, epoch: int, isr: list[int]) -> Topics:
    """Return topics for a start, t with one partition in this state."""
    return {"t": {0: (replicas, leader, epoch, isr)}}


def t0(history: ZnodeHistory) -> tuple[int, int, tuple[int, ...]] | None:
    """Return the state that the controller must still write for t-0."""
    return history.predicted("t", 0)


def catch_up(history: ZnodeHistory) -> None:
    """Let every live replica get in sync."""
    live = history.context.header.brokers
    for name, topic in list(history.context.topics):
        for number, partition in topic.partitions.items():
            value, isr = partition.zk_state, [replica for replica in partition.replicas if replica in live]
            if value is not None and value.leader in live and set(isr) != set(value.isr):
                history.state(name, number, value.leader, value.leader_epoch, isr)


def assert_all_as_expected(history: ZnodeHistory) -> None:
    gauges = history.gauges()
    differing = {kind for kind in gauges.divergences if kind != "missed_changes"}
    assert (gauges.pending_writes, differing) == (0, set())


def assert_each_effect_ends_once(history: ZnodeHistory) -> None:
    """Check that each transition or request ends once. A large request counts by its first part."""
    rows = [row for row in history.effects if isinstance(row, (Transition, Request)) and getattr(row, "part", 1) == 1]
    ended = Counter(row.effect for row in rows if row.status is not Status.PROVISIONAL)
    assert {effect for effect, times in ended.items() if times > 1} == set()


def assert_the_replica_index_is_as_if_made_anew(context: Context) -> None:
    if context.replica_index is not None:
        kept, rebuilt = context.replica_index, BrokerReplicaIndex(context.topics)
        assert kept.topics is context.topics
        assert kept.unsettled == rebuilt.unsettled
        assert {host: dict(kept.hosted_by(host)) for host in kept.hosts} == {
            host: dict(rebuilt.hosted_by(host)) for host in rebuilt.hosts
        }


def assert_the_issues_are_as_if_made_anew(context: Context) -> None:
    if context.header.phase is Phase.FOLLOWING:
        kept, (rebuilt, offline_by_topic) = context.header.tally.issues, index_issues(context.topics, context.header)
        assert context.header.tally.offline_by_topic == offline_by_topic
        assert {key: group.count for key, group in kept.items()} == {key: group.count for key, group in rebuilt.items()}
        assert all(set(group.examples) <= names_in(context, key) for key, group in kept.items())


def names_in(context: Context, key: str) -> set[str]:
    """Return the partitions that belong to a group."""
    rules = context.header.counting_rules
    return {
        f"{name}-{number}"
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if key in issues_of(topic, partition, rules)
    }


def told(row: Transition) -> str:
    subject = {"partition": f"{row.topic}-{row.partition}", "replica": f"{row.topic}-{row.partition}@{row.broker}"}
    what = subject.get(row.subject, f"{row.subject} {row.topic or row.broker}")
    led = "" if row.leader is None else f" leader={row.leader} epoch={row.leader_epoch} isr={list(row.isr or ())}"
    return f"{row.status.value} {what} {row.from_state} -> {row.to_state}{led}"


def asked(row: Request) -> list[str]:
    """Return the content of a request, a line for each partition."""
    head = f"{row.status.value} {row.api} to {','.join(map(str, row.brokers))}"
    if row.status is Status.WITHDRAWN:
        return [head]
    if row.all_partitions or not row.partition_states:
        return [f"{head}: {'all' if row.all_partitions else 'no'} partitions"]
    return [f"{head}: {_requested(row, state)}" for state in row.partition_states]


def _requested(row: Request, state: RequestedState) -> str:
    said = f"{state.topic}-{state.partition}"
    if state.leader is not None:
        said += f" leader={state.leader} epoch={state.leader_epoch} isr={list(state.isr or ())}"
    said += f" offline={list(state.offline_replicas)}" * bool(state.offline_replicas)
    return said + " new" * state.is_new + " delete" * (row.delete_partitions or state.delete_partition)


def broker_znode(broker: int) -> dict[str, Any]:
    return {
        "version": 5,
        "jmx_port": -1,
        "host": "h",
        "port": 9092,
        "endpoints": [f"PLAINTEXT://h:{9092 + broker}"],
        "rack": None,
    }


def controller_znode(broker: int) -> dict[str, Any]:
    return {"version": 2, "brokerid": broker, "timestamp": "1", "kraftControllerEpoch": -1}


def migration_znode(offset: int = -1, controller: int = -1, kraft_epoch: int = -1) -> dict[str, Any]:
    metadata_epoch = kraft_epoch if offset > 0 else -1
    return {
        "version": 0,
        "kraft_metadata_offset": offset,
        "kraft_controller_id": controller,
        "kraft_metadata_epoch": metadata_epoch,
        "kraft_controller_epoch": kraft_epoch,
    }


def topic_znode(assignment: dict[int, list[int]], **more: object) -> dict[str, Any]:
    partitions = {str(number): replicas for number, replicas in assignment.items()}
    return {"version": 3, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}} | more


def state_znode(
    leader: int, leader_epoch: int, isr: Sequence[int], controller_epoch: int = 1, **more: object
) -> dict[str, Any]:
    base = {"version": 1, "leader": leader, "leader_epoch": leader_epoch, "controller_epoch": controller_epoch}
    return base | {"isr": isr} | more
