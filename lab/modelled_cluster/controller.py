"""Modelled controller with its failover, its events, and the queue that it works off in its own time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lab.modelled_cluster.log_dirs import LogDirs
from lab.modelled_cluster.machines import Replica
from lab.modelled_cluster.memory import EPOCH, Assignment, MovedError, Release, State, TopicPartition, Work, read_state
from lab.modelled_cluster.reassignment import REASSIGN
from lab.modelled_cluster.zookeeper import Change, ZooKeeper

PREFERRED = "/admin/preferred_replica_election"
BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
Event = Callable[[], Work]


class Controller(LogDirs):
    """One term of a controller."""

    def __init__(self, zookeeper: ZooKeeper, release: Release, broker: int, session: int, salt: int) -> None:
        super().__init__(zookeeper, release, broker, session, salt)
        self.queue: deque[tuple[str, Event]] = deque()
        self.armed: set[str] = set()
        self.doing: Work | None = None
        self.is_over = False
        self.storage = lambda _broker: set()
        self._notifications: dict[str, tuple[str, Event]] = {
            "/admin/delete_topics": ("TopicDeletion", self.topic_deletion),
            "/log_dir_event_notification": ("LogDirEventNotification", self.log_dir_event_notification),
            "/isr_change_notification": ("IsrChangeNotification", self.isr_change_notification),
        }
        self.enqueue("failover", self.failover)

    # --- the queue

    @property
    def is_idle(self) -> bool:
        """Return whether all work is done."""
        return self.is_over or not (self.queue or self.doing)

    def enqueue(self, name: str, event: Event) -> None:
        """Queue an event."""
        self.queue.append((name, event))

    def work(self) -> bool:
        """Go on to the next write, or to the end of an event. Return whether there was work."""
        if self.is_idle:
            return False
        if self.doing is None:
            self.doing = self.queue.popleft()[1]()
        try:
            next(self.doing)
        except StopIteration:
            self.doing = None
        except MovedError:
            self.resign()
        return True

    def resign(self) -> None:
        """End the term. Memory and queue are lost."""
        self.is_over, self.doing = True, None
        self.queue.clear()

    def expire(self) -> None:
        """Lose the session. The current event ends, and the others are dropped."""
        self.queue.clear()
        self.enqueue("Expire", self._give_way)

    def _give_way(self) -> Work:
        content = self.zookeeper.content("/controller") or {}
        znode = self.zookeeper.get("/controller")
        if znode is None or znode.owner != self.session or content.get("brokerid") != self.broker:
            self.resign()
        yield from ()

    # --- watches

    def hear(self, change: Change) -> None:
        """Queue the event that a watch of this znode causes."""
        path, is_there = change.path, change.znode is not None
        parent, _, name = path.rpartition("/")
        if path == "/controller" and change.author != self.session:
            self.enqueue("ControllerChange", self._give_way)
            return
        created = is_there and change.znode is not None and change.znode.version == 0
        if parent == BROKERS:
            self.enqueue("BrokerChange", self.broker_change)
        elif parent == TOPICS:
            self._hear_topic(name, created=created or not is_there)
        elif path in (REASSIGN, PREFERRED):
            self._hear_trigger(path, created=created, is_there=is_there)
        elif is_there and parent in self._notifications:
            self.enqueue(*self._notifications[parent])
        elif path.endswith("/state") and is_there and not self.is_since(2, 7):
            tp = (path.split("/")[3], int(path.split("/")[5]))
            if tp in self.reassigning:
                self.enqueue("PartitionReassignmentIsrChange", lambda: self.complete_if_in_sync(tp))
        elif parent == "/config/topics" and is_there and self.is_since(2, 1):
            self.enqueue("TopicUncleanLeaderElectionEnable", lambda: self._made_unclean(name))

    def _hear_topic(self, name: str, *, created: bool) -> None:
        if created:
            self.enqueue("TopicChange", self.topic_change)
        else:
            self.enqueue("PartitionModifications", lambda: self.partition_modifications(name))

    def _hear_trigger(self, path: str, *, created: bool, is_there: bool) -> None:
        hears = path in self.armed and created if self.is_since(1, 1) else is_there
        self.armed.discard(path)
        if hears:
            self._look_at(path)

    def _look_at(self, path: str) -> None:
        event = self.zk_reassignment if path == REASSIGN else self.zk_preferred_election
        self.enqueue(path, event)

    def rearm(self, path: str) -> None:
        """Look at the znode again as an event of its own, which arms its watch."""
        if self.is_since(1, 1):
            self._look_at(path)

    # --- failover

    def take_epoch(self) -> None:
        """Write the next /controller_epoch."""
        znode = self.zookeeper.get(EPOCH)
        self.epoch = 1 if znode is None else int(znode.data or 0) + 1
        with self.zookeeper.written_by(self.session):
            self.zookeeper.write(EPOCH, str(self.epoch).encode())

    def failover(self) -> Work:
        """Load the context, start the machines, and take up everything that is pending."""
        zookeeper = self.zookeeper
        if not self.is_since(2, 1):
            self.take_epoch()
            yield
        self.armed |= {REASSIGN, PREFERRED}
        if self.is_since(1, 1):
            for parent in ("/log_dir_event_notification", "/isr_change_notification"):
                for child in zookeeper.children(parent):
                    self.delete(f"{parent}/{child}")
                    yield
        self._load()
        deletions = set(zookeeper.children("/admin/delete_topics"))
        self.queued = deletions & self.topics if self.deletes_topics else set()
        dead = {tp[0] for tp, each in self.assigned.items() if any(not self.has(tp, b) for b in each.replicas)}
        self.ineligible = (dead | {tp[0] for tp in self.reassigning}) & self.queued
        offline = self.enter_loaded_states()
        if self.is_since(2, 3):
            yield from self.take_offline(offline)
            self._enter_loaded_partition_states()
        yield from self.trigger_online()
        yield from self._take_up_reassignments()
        for name in sorted(deletions - self.topics if self.deletes_topics else deletions):
            self.delete(f"/admin/delete_topics/{name}")
            yield
        yield from self.resume_deletions()
        yield from self.zk_preferred_election()
        self.probe(self.live)
        self.rebalance_ms = zookeeper.now_ms + 5_000

    def _load(self) -> None:
        zookeeper = self.zookeeper
        self.live = self.registered()
        self.topics = set(zookeeper.children(TOPICS))
        for name in sorted(self.topics):
            self.assigned |= self._read_assignment(name)
        for tp in self.assigned:
            state = read_state(zookeeper, tp)
            if state is not None:
                self.cached[tp] = state
        if self.is_since(2, 4):
            moving = {tp: each for tp, each in self.assigned.items() if each.adding or each.removing}
            self.reassigning = {tp: each.target for tp, each in moving.items()}
        else:
            self.reassigning = self.asked_by_znode()

    def registered(self) -> dict[int, int]:
        """Return registered brokers, with the epochs of their registrations."""
        znodes = self.zookeeper.znodes
        return {int(name): znodes[f"{BROKERS}/{name}"].czxid for name in self.zookeeper.children(BROKERS)}

    def _read_assignment(self, name: str) -> dict[TopicPartition, Assignment]:
        content = self.zookeeper.content(f"{TOPICS}/{name}") or {}
        adding, removing = content.get("adding_replicas", {}), content.get("removing_replicas", {})
        return {
            (name, int(number)): Assignment(
                tuple(replicas), tuple(adding.get(number, ())), tuple(removing.get(number, ()))
            )
            for number, replicas in content.get("partitions", {}).items()
        }

    def enter_loaded_states(self) -> list[Replica]:
        """Let replicas and partitions enter their first states. Return the replicas that are not online."""
        replicas = self.replicas_on({broker for each in self.assigned.values() for broker in each.replicas})
        online = [each for each in replicas if self.online(each[1])]
        offline = [each for each in replicas if not self.online(each[1])]
        self.replica_states |= dict.fromkeys(online, "Online") | dict.fromkeys(offline, "Ineligible")
        self._enter_loaded_partition_states()
        return offline

    def _enter_loaded_partition_states(self) -> None:
        for tp in self.assigned:
            is_led = tp in self.cached and self.leader_is_online(tp)
            self.partition_states[tp] = "New" if tp not in self.cached else "Online" if is_led else "Offline"

    def _take_up_reassignments(self) -> Work:
        asked = self.asked_by_znode()
        if self.is_since(2, 4):
            yield from self.reassign(asked)
            for tp in [tp for tp in self.reassigning if tp not in asked]:
                if tp in self.assigned:
                    yield from self.on_reassignment(tp, self.assigned[tp])
        else:
            yield from self.reassign(dict(self.reassigning))

    # --- events

    def broker_change(self) -> Work:
        """Handle brokers that came and went, by the difference to the known ones."""
        now = self.registered()
        started = sorted(set(now) - set(self.live))
        gone = sorted(set(self.live) - set(now))
        bounced = [broker for broker in sorted(set(now) & set(self.live)) if now[broker] > self.live[broker]]
        if started:
            self.live |= {broker: now[broker] for broker in started}
            yield from self.on_startup(started)
        if bounced and self.is_since(2, 2):
            for broker in bounced:
                del self.live[broker]
            yield from self.on_failure(bounced)
            self.live |= {broker: now[broker] for broker in bounced}
            yield from self.on_startup(bounced)
        if gone:
            for broker in gone:
                del self.live[broker]
            yield from self.on_failure(gone)

    def on_startup(self, brokers: list[int]) -> Work:
        """Bring the replicas of brokers online that started, and retry everything that waited for them."""
        self.forget_storage(brokers)
        replicas = self.replicas_on(brokers)
        self.bring_replicas_online(replicas)
        yield from self.trigger_online()
        yield from self.resume_reassignments(brokers)
        yield from self.resume_topics(sorted({tp[0] for tp, _ in replicas}))
        self.probe(brokers)

    def on_failure(self, brokers: list[int]) -> Work:
        """Handle brokers that are gone."""
        self.leaving -= set(brokers)
        self.stops = {each for each in self.stops if each[0] not in brokers}
        self.forget_storage(brokers)
        yield from self.lose_replicas(self.replicas_on(brokers))

    def topic_change(self) -> Work:
        """Handle topics that came and went."""
        now = set(self.zookeeper.children(TOPICS))
        for name in sorted(self.topics - now):
            self.forget_topic(name)
        new = sorted(now - self.topics)
        self.topics = now
        found: dict[TopicPartition, Assignment] = {}
        for name in new:
            found |= self._read_assignment(name)
        self.assigned |= found
        yield from self.create(found)

    def partition_modifications(self, name: str) -> Work:
        """Handle partitions that were added to a topic."""
        if name not in self.topics:
            return
        read = self._read_assignment(name)
        added = {tp: each for tp, each in read.items() if tp not in self.assigned}
        if not added:
            return
        if name in self.queued:
            if self.is_since(2, 0):
                self.write_topic(name, {})
                yield
            return
        self.assigned |= added
        yield from self.create(added)

    def zk_reassignment(self) -> Work:
        """Handle /admin/reassign_partitions."""
        self.armed.add(REASSIGN)
        asked = self.asked_by_znode()
        if not self.is_since(2, 4):
            asked = {tp: target for tp, target in asked.items() if tp not in self.reassigning}
        yield from self.reassign(asked)

    def api_reassignment(self, tp: TopicPartition, target: tuple[int, ...] | None) -> Work:
        """Handle AlterPartitionReassignments of one partition. None cancels."""
        if tp not in self.assigned or tp[0] in self.queued:
            return
        if target is None and tp not in self.reassigning:
            return
        yield from self.remove_entries([tp])
        assignment = self.assigned[tp]
        yield from self.on_reassignment(tp, assignment.reassigned_to(assignment.origin if target is None else target))

    def zk_preferred_election(self) -> Work:
        """Handle /admin/preferred_replica_election."""
        self.armed.add(PREFERRED)
        if self.zookeeper.get(PREFERRED) is None:
            return
        content = self.zookeeper.content(PREFERRED) or {}
        tps = [(entry["topic"], entry["partition"]) for entry in content.get("partitions", ())]
        yield from self.elect_preferred_leaders(tps)
        self.delete(PREFERRED)
        self.rearm(PREFERRED)
        yield

    def controlled_shutdown(self, broker: int) -> Work:
        """Move leaders away from a broker, and take its replicas out of ISRs."""
        if broker not in self.live:
            return
        self.leaving.add(broker)
        theirs = [
            tp
            for tp, each in sorted(self.assigned.items())
            if broker in each.replicas
            and len(each.replicas) > 1
            and tp in self.cached
            and (tp[0] not in self.queued or not self.is_since(2, 2))
        ]
        led = [tp for tp in theirs if self.cached[tp].leader == broker]

        def elect(tp: TopicPartition, state: State) -> tuple[State, bool] | None:
            elected = self.elect_away_from_leaving(tp, state)
            return None if elected is None else (elected, self.is_recovering(tp))

        yield from self.bring_online(led, elect)
        yield from self.take_offline([(tp, broker) for tp in theirs if tp not in led])

    def isr_change_notification(self) -> Work:
        """Read the states that leaders wrote."""
        children = self.zookeeper.children("/isr_change_notification")
        tps: list[TopicPartition] = []
        for child in children:
            content = self.zookeeper.content(f"/isr_change_notification/{child}") or {}
            tps += [(entry["topic"], entry["partition"]) for entry in content.get("partitions", ())]
        for tp in tps:
            state = read_state(self.zookeeper, tp)
            if state is not None and tp in self.assigned:
                self.cached[tp] = state
        if self.is_since(2, 8):
            for tp in tps:
                yield from self.complete_if_in_sync(tp)
        for child in children:
            self.delete(f"/isr_change_notification/{child}")
            yield

    def alter_partition(self, leader: int, tp: TopicPartition, isr: tuple[int, ...], leader_epoch: int) -> Work:
        """Handle AlterPartition, with which a leader changes its ISR from 2.7 on."""
        cached = self.cached.get(tp)
        state = read_state(self.zookeeper, tp)
        if cached is None or state is None or state.leader != leader or cached.epoch != leader_epoch:
            return
        if state.isr == isr or state.epoch != leader_epoch or leader not in self.live or tp not in self.assigned:
            return
        if self.is_since(3, 3) and not all(self.online(broker) for broker in isr):
            return
        self.write_state(tp, State(leader, leader_epoch, isr, self.epoch))
        yield
        yield from self.complete_if_in_sync(tp)

    def stopped(self, broker: int, tps: list[TopicPartition]) -> Work:
        """Handle a broker's answer to StopReplica."""
        replicas: list[Replica] = [(tp, broker) for tp in tps]
        yield from self.replicas_deleted(replicas)

    def _made_unclean(self, name: str) -> Work:
        if self.topic_setting(name, "unclean.leader.election.enable") == "true":
            yield from self.trigger_online(name)
