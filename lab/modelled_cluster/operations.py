"""Operations of a history. Each uses its numbers to choose among the objects of that moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lab.modelled_cluster.checks import Checked
from lab.modelled_cluster.cluster import BROKER_IDS, Cluster
from lab.modelled_cluster.controller import PREFERRED, TOPICS
from lab.modelled_cluster.forwarder import Forwarder, Gap
from lab.modelled_cluster.memory import TopicPartition
from lab.modelled_cluster.reassignment import REASSIGN

_TOPICS: Final = ("a", "b", "c")
_HANGS_MS: Final = 6_000
_GAPS: Final = tuple(Gap)
_MEANWHILE: Final = (
    "controller_moves", "broker_crashes", "broker_registers", "broker_bounces", "delete_topic", "create_topic",
    "topic_is_created_again", "reassign_by_api", "reassign_by_znode", "replicas_catch_up", "broker_closes", "set_topic",
)  # fmt: skip
_SETTINGS: Final[tuple[dict[str, str], ...]] = (
    {"min.insync.replicas": "2"},
    {"unclean.leader.election.enable": "true"},
    {"unclean.leader.election.enable": "false", "min.insync.replicas": "1"},
    {},
)


class Players:
    """Cluster, forwarder and core of one history, with the operations."""

    def __init__(self, cluster: Cluster, forwarder: Forwarder, checked: Checked) -> None:
        self.cluster = cluster
        self.forwarder = forwarder
        self.checked = checked
        self.zookeeper = cluster.zookeeper
        self._hung_ms = 0  # time without work of the controller

    def _broker(self, number: int) -> int:
        return BROKER_IDS[number % len(BROKER_IDS)]

    def _partition(self, number: int) -> TopicPartition | None:
        found = self.cluster.partitions()
        return found[number % len(found)] if found else None

    def _replicas(self, first: int, count: int) -> list[int]:
        step = 1 + first % 2 * 2  # both are coprime to the number of brokers
        return [self._broker(first // 2 + step * place) for place in range(1 + count % 3)]

    # --- time, controllers, the forwarder

    def time_passes(self, kind: int, *_: int) -> None:
        """Let some time pass, with a heartbeat. A controller that hung for longer would have lost its session."""
        passed_ms = (100, 1_000, 1_000, 4_000, 20_000, 70_000)[kind % 6]
        self._hung_ms += passed_ms
        if self._hung_ms > _HANGS_MS:
            self.controller_finishes()
        self.zookeeper.now_ms += passed_ms
        controller = self.cluster.controller
        if controller is not None and controller.rebalance_ms and controller.rebalance_ms < self.zookeeper.now_ms:
            controller.enqueue("AutoPreferredReplicaLeaderElection", controller.rebalance)
            controller.rebalance_ms = self.zookeeper.now_ms + 300_000
        if self.cluster.kraft is not None:
            self.cluster.kraft.pulse()
        self.forwarder.heartbeat()

    def controller_works(self, writes: int, *_: int) -> None:
        """Let the controller go on for some writes."""
        self._hung_ms = 0
        self.cluster.work(1 + writes % 8)

    def controller_finishes(self, *_: int) -> None:
        """Let the controller work off its queue."""
        self._hung_ms = 0
        self.cluster.work(200)

    def deposed_work(self, writes: int, *_: int) -> None:
        """Let deposed controllers go on for some writes."""
        self.cluster.work_deposed(1 + writes % 8)

    def read_everything(self, *numbers: int) -> None:
        """Begin a forwarder with a complete read, while things happen."""
        self.forwarder.read_everything(lambda: self._happens(numbers))

    def gap_begins(self, kind: int, *_: int) -> None:
        """Let the forwarder lose sight of ZooKeeper."""
        self.forwarder.lose(_GAPS[kind % len(_GAPS)])

    def _happens(self, numbers: tuple[int, ...]) -> None:
        """Let the controller write, and something else happen, while the forwarder reads."""
        writes, kind, *_ = numbers
        self.cluster.work(writes % 4)
        if kind % 4 == 0:
            OPERATIONS[_MEANWHILE[kind // 4 % len(_MEANWHILE)]][1](self, *reversed(numbers))
            self.cluster.work(writes // 4 % 4)

    def gap_ends(self, *numbers: int) -> None:
        """Let the forwarder catch up, while things happen, and send two heartbeats."""
        if self.forwarder.gap is not None:
            self.forwarder.catch_up(lambda: self._happens(numbers))
            for _beat in range(2):
                self.zookeeper.now_ms += 1_000
                self.forwarder.heartbeat()
            if self.forwarder.sees_all:
                self.checked.check_offline(self.zookeeper.znodes, self.cluster.failed)

    def topic_is_created_again(self, name: int, partitions: int, first: int, count: int) -> None:
        """Delete a topic, and create another one under its name."""
        self.delete_topic(name)
        for _round in range(2):
            self.cluster.work(200)
            for broker in BROKER_IDS:
                self.cluster.answer_stops(broker)
        self.cluster.work(200)
        self.create_topic(name, partitions, first, count)

    def zookeeper_elects_a_leader(self, *_: int) -> None:
        """Begin another epoch of ZooKeeper, whose number is in the upper half of each zxid."""
        self.zookeeper.zxid = ((self.zookeeper.zxid >> 32) + 1) << 32

    def restore(self, *_: int) -> None:
        """Start the job again with its stored state."""
        self.checked.restore()

    def windows(self, kind: int, *_: int) -> None:
        """Let the forwarder gather changes from now on, or publish each at once."""
        self.forwarder.gathers = bool(kind % 2)
        self.forwarder.flush()

    def controller_is_removed(self, *_: int) -> None:
        """Delete /controller by hand."""
        self.cluster.remove_controller()

    def broker_is_elected(self, broker: int, *_: int) -> None:
        """Let a broker become controller if there is none yet."""
        for number in range(len(BROKER_IDS)):
            self.cluster.elect(self._broker(broker + number))

    def controller_moves(self, broker: int, writes: int, *_: int) -> None:
        """Delete /controller, and let a broker become controller, which begins to work."""
        self.cluster.remove_controller()
        self.broker_is_elected(broker)
        self.cluster.work(writes % 8)

    def quorum_arrives(self, *_: int) -> None:
        """Let a quorum for the migration to KRaft arrive."""
        self.cluster.quorum_arrives()

    def kraft_claims(self, writes: int, *_: int) -> None:
        """Let a KRaft controller take over and begin to work."""
        self.cluster.kraft_claims()
        self.cluster.work(writes % 8)

    def kraft_is_rolled_back(self, kind: int, *_: int) -> None:
        """Go back from KRaft to brokers as controllers."""
        self.cluster.roll_back(forgets_first=bool(kind % 2))

    # --- brokers

    def broker_moves(self, broker: int, kind: int, *_: int) -> None:
        """Give a broker other listeners and another rack."""
        self.cluster.move(self._broker(broker), restarts=bool(kind % 2))

    def directory_fails(self, broker: int, number: int, more: int, *_: int) -> None:
        """Let a live broker lose one or two replicas with their log directory."""
        tps = {tp for tp in (self._partition(number), self._partition(more)) if tp is not None}
        self.cluster.fail_directory(self._broker(broker), tps)

    def all_brokers_crash(self, first: int, *_: int) -> None:
        """Crash all brokers, and start them one after the other."""
        for number in range(len(BROKER_IDS)):
            self.cluster.end_session(self._broker(first + number))
        for number in range(len(BROKER_IDS)):
            self.cluster.register(self._broker(first // 4 + 3 * number))

    def broker_registers(self, broker: int, *_: int) -> None:
        """Register a broker."""
        self.cluster.register(self._broker(broker))

    def broker_crashes(self, broker: int, *_: int) -> None:
        """Crash a broker, whose session expires."""
        self.cluster.end_session(self._broker(broker))

    def session_expires(self, broker: int, *_: int) -> None:
        """Expire the session of a broker that lives on."""
        self.cluster.end_session(self._broker(broker), runs=True)

    def broker_bounces(self, broker: int, runs: int, *_: int) -> None:
        """Let a broker leave and register again at once."""
        self.cluster.end_session(self._broker(broker), runs=bool(runs % 2))
        self.cluster.register(self._broker(broker))

    def broker_asks_for_shutdown(self, broker: int, *_: int) -> None:
        """Let a broker ask for its controlled shutdown."""
        self.cluster.shut_down(self._broker(broker))

    def broker_closes(self, *_: int) -> None:
        """Close brokers that asked for their controlled shutdown."""
        for broker in BROKER_IDS:
            self.cluster.close(broker)

    def broker_deletes(self, broker: int, *_: int) -> None:
        """Let a broker answer StopReplica."""
        self.cluster.answer_stops(self._broker(broker))

    def replicas_catch_up(self, number: int, *_: int) -> None:
        """Let a leader bring its followers into the ISR."""
        tp = self._partition(number)
        if tp is not None:
            self.cluster.change_isr(tp)

    def replica_lags(self, number: int, broker: int, *_: int) -> None:
        """Let a leader drop a follower that lags."""
        tp = self._partition(number)
        if tp is not None:
            self.cluster.change_isr(tp, without=self._broker(broker))

    def leaders_notify(self, broker: int, *_: int) -> None:
        """Let a leader announce the ISRs that it changed."""
        self.cluster.notify(self._broker(broker))

    def leaders_notify_together(self, broker: int, *_: int) -> None:
        """Let all leaders drop a follower and take it back, and announce each partition once, all before it is read."""
        for tp in self.cluster.partitions():
            self.cluster.change_isr(tp, without=self._broker(broker))
            self.cluster.change_isr(tp)
        for each in BROKER_IDS:
            self.cluster.notify(each)

    # --- operators

    def create_topic(self, name: int, partitions: int, first: int, count: int) -> None:
        """Create a topic."""
        topic = _TOPICS[name % 3]
        path = f"{TOPICS}/{topic}"
        if path in self.zookeeper.znodes or f"/admin/delete_topics/{topic}" in self.zookeeper.znodes:
            return
        assigned = {str(number): self._replicas(first + 2 * number, count) for number in range(1 + partitions % 3)}
        content: dict[str, object] = {"version": 1, "partitions": assigned}
        if self.cluster.release >= (2, 4):
            content |= {"version": 2, "adding_replicas": {}, "removing_replicas": {}}
        if self.cluster.release >= (2, 8):
            content |= {"version": 3, "topic_id": f"{self.zookeeper.zxid:022}"}
        with self._as_kraft("TopicChange", "topic_change"):
            self.zookeeper.write(f"/config/topics/{topic}", {"version": 1, "config": {}})
            self.zookeeper.create(path, content)

    def add_partition(self, name: int, first: int, *_: int) -> None:
        """Add a partition to a topic."""
        topic = _TOPICS[name % 3]
        content = self.zookeeper.content(f"{TOPICS}/{topic}")
        if content is None or len(content["partitions"]) > 3:
            return
        replicas = self._replicas(first, len(content["partitions"]["0"]) - 1)
        content["partitions"][str(len(content["partitions"]))] = replicas
        with self._as_kraft("PartitionModifications", "partition_modifications", topic):
            self.zookeeper.set(f"{TOPICS}/{topic}", content)

    def delete_topic(self, name: int, *_: int) -> None:
        """Ask for a topic's deletion."""
        topic, kraft = _TOPICS[name % 3], self.cluster.kraft
        if f"{TOPICS}/{topic}" in self.zookeeper.znodes:
            if kraft is None:
                self.zookeeper.create(f"/admin/delete_topics/{topic}")
            else:
                kraft.enqueue("DeleteTopics", lambda: kraft.delete_topic(topic))

    @contextmanager
    def _as_kraft(self, name: str, event: str, *about: str) -> Iterator[None]:
        """Let KRaft write in the body if it leads, and then handle what was written."""
        kraft = self.cluster.kraft
        if kraft is None:
            yield
            return
        with self.zookeeper.written_by(kraft.session):
            yield
        kraft.enqueue(name, lambda: getattr(kraft, event)(*about))

    def request_is_removed(self, kind: int, name: int, *_: int) -> None:
        """Remove a request by hand, which the controller does not notice."""
        paths = (REASSIGN, PREFERRED, f"/admin/delete_topics/{_TOPICS[name % 3]}")
        self.zookeeper.delete(paths[kind % 3])

    def set_topic(self, name: int, kind: int, *_: int) -> None:
        """Write a topic's settings."""
        topic = _TOPICS[name % 3]
        if f"{TOPICS}/{topic}" in self.zookeeper.znodes:
            config = {"version": 1, "config": _SETTINGS[kind % len(_SETTINGS)]}
            self.zookeeper.write(f"/config/topics/{topic}", config)

    def unset_topic(self, name: int, *_: int) -> None:
        """Remove a topic's settings."""
        self.zookeeper.delete(f"/config/topics/{_TOPICS[name % 3]}")

    def set_brokers(self, kind: int, broker: int, *_: int) -> None:
        """Write brokers' settings, or remove them."""
        path = f"/config/brokers/{('<default>', *BROKER_IDS)[broker % 5]}"
        if self.cluster.release < (1, 1):
            return
        if kind % 4 == 3:
            self.zookeeper.delete(path)
        else:
            self.zookeeper.write(path, {"version": 1, "config": _SETTINGS[kind % 4]})

    def reassign_by_znode(self, number: int, first: int, count: int, more: int) -> None:
        """Ask for a reassignment by /admin/reassign_partitions."""
        tps = {tp for tp in (self._partition(number), self._partition(more)) if tp is not None}
        targets = [self._replicas(first + place, count) for place in range(2)]
        entries = [
            {"topic": tp[0], "partition": tp[1], "replicas": target}
            for tp, target in zip(sorted(tps), targets, strict=False)
        ]
        if entries and self.cluster.release < (3, 0):
            self.zookeeper.create(REASSIGN, {"version": 1, "partitions": entries})

    def reassign_by_api(self, number: int, first: int, count: int, kind: int) -> None:
        """Ask for a reassignment by the API, or cancel it."""
        tp, controller = self._partition(number), self.cluster.controller
        if tp is None or controller is None or controller.is_over or self.cluster.release < (2, 4):
            return
        target = None if kind % 4 == 0 else tuple(self._replicas(first, count))
        controller.enqueue("ApiPartitionReassignment", lambda: controller.api_reassignment(tp, target))

    def elect_by_znode(self, number: int, more: int, *_: int) -> None:
        """Ask for preferred elections by /admin/preferred_replica_election."""
        tps = sorted({tp for tp in (self._partition(number), self._partition(more)) if tp is not None})
        entries = [{"topic": topic, "partition": partition} for topic, partition in tps]
        if entries and self.cluster.release < (3, 0):
            self.zookeeper.create(PREFERRED, {"version": 1, "partitions": entries})

    def elect_by_api(self, number: int, kind: int, *_: int) -> None:
        """Ask for an election by the API."""
        tp, controller = self._partition(number), self.cluster.controller
        if tp is None or controller is None or controller.is_over or self.cluster.release < (2, 2):
            return
        if kind % 3 and self.cluster.release >= (2, 4):
            controller.enqueue("ElectLeaders UNCLEAN", lambda: controller.elect_unclean(tp))
        else:
            controller.enqueue("ElectLeaders PREFERRED", lambda: controller.elect_preferred_leaders([tp]))


Play = Callable[..., None]

OPERATIONS: Final[Mapping[str, tuple[int, Play]]] = {
    "time_passes": (8, Players.time_passes),
    "controller_works": (14, Players.controller_works),
    "controller_finishes": (7, Players.controller_finishes),
    "deposed_work": (3, Players.deposed_work),
    "read_everything": (3, Players.read_everything),
    "gap_begins": (6, Players.gap_begins),
    "gap_ends": (4, Players.gap_ends),
    "zookeeper_elects_a_leader": (1, Players.zookeeper_elects_a_leader),
    "topic_is_created_again": (2, Players.topic_is_created_again),
    "restore": (4, Players.restore),
    "windows": (1, Players.windows),
    "controller_is_removed": (2, Players.controller_is_removed),
    "broker_is_elected": (6, Players.broker_is_elected),
    "controller_moves": (2, Players.controller_moves),
    "quorum_arrives": (1, Players.quorum_arrives),
    "kraft_claims": (2, Players.kraft_claims),
    "kraft_is_rolled_back": (2, Players.kraft_is_rolled_back),
    "broker_moves": (2, Players.broker_moves),
    "directory_fails": (3, Players.directory_fails),
    "all_brokers_crash": (1, Players.all_brokers_crash),
    "request_is_removed": (1, Players.request_is_removed),
    "broker_registers": (8, Players.broker_registers),
    "broker_crashes": (5, Players.broker_crashes),
    "session_expires": (3, Players.session_expires),
    "broker_bounces": (3, Players.broker_bounces),
    "broker_asks_for_shutdown": (3, Players.broker_asks_for_shutdown),
    "broker_closes": (4, Players.broker_closes),
    "broker_deletes": (5, Players.broker_deletes),
    "replicas_catch_up": (8, Players.replicas_catch_up),
    "replica_lags": (2, Players.replica_lags),
    "leaders_notify": (4, Players.leaders_notify),
    "leaders_notify_together": (2, Players.leaders_notify_together),
    "create_topic": (3, Players.create_topic),
    "add_partition": (2, Players.add_partition),
    "delete_topic": (3, Players.delete_topic),
    "set_topic": (2, Players.set_topic),
    "unset_topic": (1, Players.unset_topic),
    "set_brokers": (1, Players.set_brokers),
    "reassign_by_znode": (3, Players.reassign_by_znode),
    "reassign_by_api": (4, Players.reassign_by_api),
    "elect_by_znode": (1, Players.elect_by_znode),
    "elect_by_api": (3, Players.elect_by_api),
}
