"""Modelled cluster of broker processes, their sessions, and their controllers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lab.modelled_cluster.controller import BROKERS, TOPICS, Controller
from lab.modelled_cluster.kraft import MIGRATION, Kraft, migration_znode
from lab.modelled_cluster.memory import State, TopicPartition, read_state, state_path, state_znode
from lab.modelled_cluster.zookeeper import Change, ZooKeeper

Release = tuple[int, int]
BROKER_IDS = (1, 2, 3, 4)
WORK_LIMIT = 5_000


@dataclass
class Process:
    """Process of a broker, with its session, or 0 without one."""

    session: int = 0
    runs: bool = True
    poisoned: bool = False  # KAFKA-12315: the process is not elected again before a restart
    leaves: bool = False  # it asked for its controlled shutdown
    failed: set[TopicPartition] = field(default_factory=set)  # replicas whose log directory failed
    to_notify: set[TopicPartition] = field(default_factory=set)


class Cluster:
    """ZooKeeper, brokers and controllers. Every method is a current action of one of these."""

    def __init__(self, release: Release, salt: int, *, deletes_topics: bool = True) -> None:
        self.zookeeper = ZooKeeper()
        self.release = release
        self.salt = salt
        self.deletes_topics = deletes_topics
        self.processes = {broker: Process() for broker in BROKER_IDS}
        self.controller: Controller | None = None
        self.deposed: list[Controller] = []
        self._notifications = 0
        self._kraft_epoch = 0
        self._moves: dict[int, int] = {}  # how often a broker was started with other listeners and in another rack
        self.zookeeper.listeners.append(self._hear)
        for broker in BROKER_IDS[:3]:
            self.register(broker)
        if release >= (2, 1):
            self.zookeeper.create("/controller_epoch", b"0")
        self.elect(1)

    def _hear(self, change: Change) -> None:
        for controller in (self.controller, *self.deposed):
            if controller is not None and not controller.is_over:
                controller.hear(change)

    # --- sessions

    def register(self, broker: int) -> None:
        """Start a broker, or let it register again with a new session."""
        process = self.processes[broker]
        if process.session:
            return
        if not process.runs:
            self.processes[broker] = process = Process()
        process.session = self.zookeeper.new_session()
        version = self.release >= (2, 2)
        with self.zookeeper.written_by(process.session):
            path = f"{BROKERS}/{broker}"
            self.zookeeper.create(path, self._broker_znode(broker), owner=process.session, version=int(version))

    def _broker_znode(self, broker: int) -> dict[str, Any]:
        moves = self._moves.get(broker, 0)
        endpoints = [f"PLAINTEXT://h{moves}:{9_092 + broker}"]
        versions = (((2, 7), 5), ((0, 10), 4))
        version = next(number for since, number in versions if self.release >= since)
        return {
            "version": version,
            "jmx_port": -1,
            "host": f"h{moves}",
            "port": 9_092 + broker,
            "endpoints": endpoints,
            "rack": f"r{moves}" if moves else None,
        }

    def move(self, broker: int, *, restarts: bool) -> None:
        """Give a broker other listeners and another rack, by its restart or by a change of its znode."""
        self._moves[broker] = self._moves.get(broker, 0) + 1
        session = self.processes[broker].session
        if restarts or not session:
            self.end_session(broker)
            self.register(broker)
            return
        with self.zookeeper.written_by(session):
            self.zookeeper.set(f"{BROKERS}/{broker}", self._broker_znode(broker))

    def fail_directory(self, broker: int, tps: Iterable[TopicPartition]) -> None:
        """Let a broker lose replicas with their log directory, from 1.0 on."""
        process = self.processes[broker]
        found = {tp for tp in tps if broker in self.replicas_of(tp)} - process.failed
        if not found or not process.session or self.release < (1, 0):
            return
        process.failed |= found
        name = f"/log_dir_event_notification/log_dir_event_{self._notifications:010}"
        self._notifications += 1
        with self.zookeeper.written_by(process.session):
            self.zookeeper.create(name, {"version": 1, "broker": broker, "event": 1})

    def end_session(self, broker: int, *, closed: bool = False, runs: bool = False) -> None:
        """End a broker's session, because it crashed, closed, or (`runs`) lost its session unnoticed."""
        process = self.processes[broker]
        if not process.session:
            return
        controller = self.controller
        if controller is not None and controller.session == process.session:
            self._depose(expired=runs)
            if not runs:
                controller.resign()
        session, process.session, process.runs = process.session, 0, runs
        self.zookeeper.end_session(session, closed=closed)

    def _depose(self, *, expired: bool) -> None:
        controller, self.controller = self.controller, None
        if controller is not None and not controller.is_over:
            self.deposed.append(controller)
            if expired:
                controller.expire()

    def remove_controller(self) -> None:
        """Delete /controller by hand. KRaft's is stopped before."""
        if isinstance(self.controller, Kraft):
            self.controller.resign()
        self.zookeeper.delete("/controller")
        self._depose(expired=False)

    def elect(self, broker: int) -> None:
        """Let a broker become controller if there is none yet."""
        process = self.processes[broker]
        still = any(each.broker == broker and not each.is_over for each in self.deposed)
        if self.zookeeper.get("/controller") or not process.session or process.poisoned or still:
            return
        controller = Controller(self.zookeeper, self.release, broker, process.session, self.salt)
        controller.deletes_topics = self.deletes_topics
        controller.storage = lambda each: self.processes[each].failed
        content = {"version": 1, "brokerid": broker, "timestamp": "1"}
        if self.release >= (3, 4):
            content |= {"version": 2, "kraftControllerEpoch": -1}
        self._depose(expired=False)
        self.controller = controller
        with self.zookeeper.written_by(process.session):
            if self.release >= (2, 1):
                with self.zookeeper.transaction():
                    self.zookeeper.create("/controller", content, owner=process.session)
                    controller.take_epoch()
            else:
                self.zookeeper.create("/controller", content, owner=process.session)
        if self.release >= (2, 1):  # fenced, so it ends before the next one has loaded, which may poison its process
            self.work_deposed(WORK_LIMIT)

    @property
    def kraft(self) -> Kraft | None:
        """Return the KRaft controller if one leads."""
        return self.controller if isinstance(self.controller, Kraft) and not self.controller.is_over else None

    def quorum_arrives(self) -> None:
        """Let a quorum make /migration, from 3.4 on."""
        if self.release >= (3, 4):
            self.zookeeper.create(MIGRATION, migration_znode(-1, -1, -1))

    def kraft_claims(self) -> None:
        """Let the quorum's next leader take /controller, once the quorum is there."""
        if self.zookeeper.get(MIGRATION) is None:
            return
        self._kraft_epoch += 1
        controller = Kraft(self.zookeeper, self.release, self.salt, self._kraft_epoch)
        controller.storage = lambda each: self.processes[each].failed
        if self.kraft is not None:
            self.kraft.resign()
        self._depose(expired=False)
        controller.claim()
        self.controller = controller
        self.work_deposed(WORK_LIMIT)

    def roll_back(self, *, forgets_first: bool) -> None:
        """Stop the quorum, and delete its znodes, in either order."""
        if self.kraft is None:
            return
        if forgets_first:
            self.zookeeper.delete(MIGRATION)
        self.remove_controller()
        self.zookeeper.delete(MIGRATION)

    # --- the controllers' work

    def work(self, writes: int) -> None:
        """Let the controller go on."""
        if self.controller is not None:
            self._work(self.controller, writes)

    def work_deposed(self, writes: int) -> None:
        """Let deposed controllers go on that do not know it yet."""
        for controller in list(self.deposed):
            self._work(controller, writes)
        self.deposed = [controller for controller in self.deposed if not controller.is_over]

    def _work(self, controller: Controller, writes: int) -> None:
        for _ in range(writes):
            was_removing = controller.removing_replicas
            if not controller.work():
                return
            if controller.is_over and (controller.removing_replicas or was_removing):
                self.processes[controller.broker].poisoned = True

    def close(self, broker: int) -> None:
        """Close a broker that asked for its controlled shutdown, answered or not."""
        if self.processes[broker].leaves:
            self.end_session(broker, closed=True)

    def shut_down(self, broker: int) -> None:
        """Let a broker ask for its controlled shutdown."""
        controller, process = self.controller, self.processes[broker]
        if controller is not None and process.session and not controller.is_over:
            process.leaves = True
            controller.enqueue("ControlledShutdown", lambda: controller.controlled_shutdown(broker))

    def answer_stops(self, broker: int) -> None:
        """Let a broker answer that it deleted the replicas that it was sent StopReplica for."""
        controller = self.controller
        if controller is None or controller.is_over or not self.processes[broker].session:
            return
        tps = sorted(tp for each, tp in controller.stops if each == broker)
        controller.stops -= {(broker, tp) for tp in tps}
        failed = self.processes[broker].failed
        good, bad = [tp for tp in tps if tp not in failed], [tp for tp in tps if tp in failed]
        if good:
            controller.enqueue("StopReplicaResponse", lambda: controller.stopped(broker, good))
        if bad:
            controller.enqueue("StopReplicaResponse", lambda: controller.not_stopped(broker, bad))

    # --- leaders

    @property
    def failed(self) -> set[tuple[TopicPartition, int]]:
        """Return replicas whose log directory failed."""
        return {(tp, broker) for broker, process in self.processes.items() for tp in process.failed}

    def partitions(self) -> list[TopicPartition]:
        """Return partitions with a state in ZooKeeper."""
        found = []
        for path in self.zookeeper.znodes:
            if path.endswith("/state"):
                parts = path.split("/")
                found.append((parts[3], int(parts[5])))
        return sorted(found)

    def replicas_of(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the replicas in the topic's znode."""
        content = self.zookeeper.content(f"{TOPICS}/{tp[0]}") or {}
        return tuple(content.get("partitions", {}).get(str(tp[1]), ()))

    def change_isr(self, tp: TopicPartition, *, without: int | None = None) -> None:
        """Let the leader bring every live replica into the ISR, but for one that lags."""
        state = read_state(self.zookeeper, tp)
        if state is None or state.leader not in self.processes or not self.processes[state.leader].session:
            return
        asked = self.zookeeper.get(f"/admin/delete_topics/{tp[0]}") is not None
        processes = self.processes
        live = [each for each in self.replicas_of(tp) if processes[each].session and tp not in processes[each].failed]
        asked = asked or tp in processes[state.leader].failed
        kept = [broker for broker in state.isr if broker in live]
        isr = tuple(dict.fromkeys(kept + [b for b in live if not self.processes[b].leaves]))
        isr = tuple(broker for broker in isr if broker != without or broker == state.leader)
        if asked or set(isr) == set(state.isr) or state.leader not in isr:
            return
        if self.release >= (2, 7):
            self._ask_for_isr(tp, state, isr)
        else:
            with self.zookeeper.written_by(self.processes[state.leader].session):
                self.zookeeper.set(state_path(tp), state_znode(state._replace(isr=isr)))
            self.processes[state.leader].to_notify.add(tp)

    def _ask_for_isr(self, tp: TopicPartition, state: State, isr: tuple[int, ...]) -> None:
        controller = self.controller
        if controller is not None and not controller.is_over:
            leader, epoch = state.leader, state.epoch
            controller.enqueue("AlterPartition", lambda: controller.alter_partition(leader, tp, isr, epoch))

    def notify(self, broker: int) -> None:
        """Let a leader announce the ISRs that it changed, up to 2.6."""
        process = self.processes[broker]
        if not process.session or not process.to_notify:
            return
        entries = [{"topic": topic, "partition": number} for topic, number in sorted(process.to_notify)]
        process.to_notify = set()
        name = f"/isr_change_notification/isr_change_{self._notifications:010}"
        self._notifications += 1
        with self.zookeeper.written_by(process.session):
            self.zookeeper.create(name, {"version": 1, "partitions": entries})

    # --- the end

    def is_healthy(self) -> bool:
        """Return whether preferred replicas lead, all replicas are in sync, and no request is pending."""
        zookeeper = self.zookeeper
        pending = ("/admin/reassign_partitions", "/admin/preferred_replica_election")
        if any(path in zookeeper.znodes for path in pending) or zookeeper.children("/admin/delete_topics"):
            return False
        controller = self.controller
        if controller is None or not controller.is_idle or controller.is_over or controller.leaving:
            return False
        return all(self._is_well(name) for name in zookeeper.children(TOPICS))

    def _is_well(self, name: str) -> bool:
        content = self.zookeeper.content(f"{TOPICS}/{name}") or {}
        if content.get("adding_replicas") or content.get("removing_replicas"):
            return False
        paths = [f"/config/topics/{name}", *(f"/config/brokers/{each}" for each in ("<default>", *BROKER_IDS))]
        settings = [(self.zookeeper.content(path) or {}).get("config", {}) for path in paths]
        least = max(int(each.get("min.insync.replicas", 1)) for each in settings)
        for number, replicas in content["partitions"].items():
            state = read_state(self.zookeeper, (name, int(number)))
            if state is None or state.leader != replicas[0] or set(state.isr) != set(replicas) or len(replicas) < least:
                return False
        return bool(content["partitions"])

    def settle(self, *, moves_controller: bool) -> None:
        """Let all brokers return, the controller end its work, and leaders bring their replicas in sync."""
        if self.release >= (2, 1):
            self.work_deposed(WORK_LIMIT)
        for controller in self.deposed:
            controller.resign()
        self.deposed = []
        for broker, process in self.processes.items():
            if process.leaves or process.poisoned or process.failed:
                self.end_session(broker)
            self.register(broker)
        if moves_controller:
            self.remove_controller()
            self.work_deposed(WORK_LIMIT)
        before = -1
        while before != self.zookeeper.zxid:
            before = self.zookeeper.zxid
            self._settle_once()

    def _settle_once(self) -> None:
        for broker in BROKER_IDS:
            self.elect(broker)
        self.work(WORK_LIMIT)
        for broker in BROKER_IDS:
            self.answer_stops(broker)
        self.work(WORK_LIMIT)
        for tp in self.partitions():
            self.change_isr(tp)
        for broker in BROKER_IDS:
            self.notify(broker)
        self.work(WORK_LIMIT)
        self.elect_preferred(self.partitions())
        self.work(WORK_LIMIT)

    def elect_preferred(self, tps: Iterable[TopicPartition]) -> None:
        """Let the controller elect preferred replicas, as its own rebalance does."""
        controller = self.controller
        away = [tp for tp in tps if (state := read_state(self.zookeeper, tp)) and state.leader != self._preferred(tp)]
        if controller is not None and not controller.is_over and away:
            controller.enqueue("AutoPreferredReplicaLeaderElection", lambda: controller.elect_preferred_leaders(away))

    def _preferred(self, tp: TopicPartition) -> int:
        return next(iter(self.replicas_of(tp)), -1)
