"""Partition reassignment by the modelled controller, as in 2.4 and later (KIP-455), and as in earlier releases."""

from __future__ import annotations

from collections.abc import Iterable

from lab.modelled_cluster.deletion import Deletion
from lab.modelled_cluster.memory import Assignment, State, TopicPartition, Work, read_state, without

REASSIGN = "/admin/reassign_partitions"
Target = tuple[int, ...]


class Reassignment(Deletion):
    """Memory with the reassignment of partitions."""

    def asked_by_znode(self) -> dict[TopicPartition, Target]:
        """Return targets in /admin/reassign_partitions. The last of several for a partition counts."""
        content = self.zookeeper.content(REASSIGN) or {}
        entries = content.get("partitions", ())
        return {(entry["topic"], entry["partition"]): tuple(entry["replicas"]) for entry in entries}

    def reassign(self, asked: dict[TopicPartition, Target]) -> Work:
        """Handle entries of the znode."""
        dropped = []
        if (1, 1) <= self.release < (2, 4):  # before it begins with one, because it rewrites the znode from memory
            self.reassigning |= {tp: target for tp, target in asked.items() if tp in self.assigned}
        for tp, target in asked.items():
            if tp[0] in self.queued or not self.assigned.get(tp, Assignment(())).replicas:
                dropped.append(tp)
            elif self.is_since(2, 4):
                yield from self.on_reassignment(tp, self.assigned[tp].reassigned_to(target))
            elif self.assigned[tp].replicas == target:
                dropped.append(tp)
            else:
                self.reassigning[tp] = target
                yield from self._move_before_2_4(tp)
        for tp in dropped:
            self.reassigning.pop(tp, None)
        yield from self.remove_entries(dropped)

    def remove_entries(self, tps: Iterable[TopicPartition]) -> Work:
        """Take entries out of the znode, and delete the znode with the last one."""
        asked = self.asked_by_znode()
        gone = {tp for tp in tps if tp in asked}
        if not gone or self.zookeeper.get(REASSIGN) is None:
            return
        left = {tp: target for tp, target in asked.items() if tp not in gone}
        if (1, 1) <= self.release < (2, 4):
            left = {tp: target for tp, target in self.reassigning.items() if tp not in gone}
        if left:
            self.check_fence()
            entries = [{"topic": tp[0], "partition": tp[1], "replicas": list(each)} for tp, each in left.items()]
            with self.zookeeper.written_by(self.session):
                self.zookeeper.set(REASSIGN, {"version": 1, "partitions": entries})
        else:
            self.delete(REASSIGN)
            self.rearm(REASSIGN)
        yield

    def rearm(self, path: str) -> None:
        """Look at the znode again as a separate event. `controller` implements it."""
        raise NotImplementedError

    def is_in_sync(self, tp: TopicPartition, target: Target) -> bool:
        """Return whether the whole target is in the ISR."""
        state = read_state(self.zookeeper, tp)
        return state is not None and set(target) <= set(state.isr)

    def complete_if_in_sync(self, tp: TopicPartition) -> Work:
        """Complete the partition's reassignment if its new replicas are in sync."""
        target = self.reassigning.get(tp)
        if target is None or tp not in self.assigned or not self.is_in_sync(tp, target):
            return
        if self.is_since(2, 4):
            yield from self.on_reassignment(tp, self.assigned[tp])
        else:
            yield from self._move_before_2_4(tp)

    def resume_reassignments(self, brokers: Iterable[int]) -> Work:
        """Resume reassignments to brokers that started."""
        started = set(brokers)
        for tp, target in list(self.reassigning.items()):
            if tp in self.assigned and started.intersection(target):
                if self.is_since(2, 4):
                    yield from self.on_reassignment(tp, self.assigned[tp])
                else:
                    yield from self._move_before_2_4(tp)

    def on_reassignment(self, tp: TopicPartition, assignment: Assignment) -> Work:
        """Begin, resume or complete a reassignment, from 2.4 on."""
        if tp[0] in self.queued:
            self.ineligible.add(tp[0])
        before = self.assigned[tp]
        if before != assignment:
            if not self.write_topic(tp[0], {tp: assignment}):
                return
            yield
            self.assigned[tp] = assignment
            yield from self._stop_removed(tp, without(before.replicas, assignment.replicas))
        self.reassigning[tp] = assignment.target
        moves = bool(assignment.adding or assignment.removing)
        if moves and not self.is_in_sync(tp, assignment.target):
            yield from self.bump(tp)
            self.let_replicas_enter([(tp, broker) for broker in assignment.adding], "New")
            return
        yield from self._complete_reassignment(tp, assignment)

    def _complete_reassignment(self, tp: TopicPartition, assignment: Assignment) -> Work:
        self.bring_replicas_online([(tp, broker) for broker in assignment.adding])
        target = assignment.target
        self.assigned[tp] = Assignment(target)
        yield from self._lead_by_target(tp, target)
        yield from self._stop_removed(tp, assignment.removing)
        if not self.write_topic(tp[0], {tp: Assignment(target)}):
            return
        yield
        self.reassigning.pop(tp, None)
        if self.asked_by_znode().get(tp) == target:
            yield from self.remove_entries([tp])
        yield from self.resume_topics([tp[0]])

    def _lead_by_target(self, tp: TopicPartition, target: Target) -> Work:
        cached = self.cached.get(tp)
        if cached is None:
            return
        if cached.leader in target and self.leader_is_online(tp):
            yield from self.bump(tp)
            return

        def elect(_: TopicPartition, state: State) -> tuple[State, bool] | None:
            elected = self.elect_among(tp, target, state)
            return None if elected is None else (elected, self.is_recovering(tp))

        yield from self.bring_online([tp], elect)

    def _stop_removed(self, tp: TopicPartition, brokers: Iterable[int]) -> Work:
        replicas = [(tp, broker) for broker in brokers]
        yield from self.take_offline(replicas)
        for state in ("Started", "Successful", "NonExistent"):
            self.let_replicas_enter(replicas, state)

    def _move_before_2_4(self, tp: TopicPartition) -> Work:
        target, before = self.reassigning[tp], self.assigned[tp].replicas
        if tp[0] in self.queued:
            self.ineligible.add(tp[0])
        if not self.is_in_sync(tp, target):
            both = tuple(dict.fromkeys(target + before))
            self.assigned[tp] = Assignment(both)
            if not self.write_topic(tp[0], {}):
                return
            yield
            yield from self.bump(tp)
            self.let_replicas_enter([(tp, broker) for broker in without(target, before)], "New")
            return
        self.bring_replicas_online([(tp, broker) for broker in target])
        self.assigned[tp] = Assignment(target)
        yield from self._lead_by_target(tp, target)
        yield from self._stop_removed(tp, without(before, target))
        self.assigned[tp] = Assignment(target)
        if not self.write_topic(tp[0], {}):
            return
        yield
        self.reassigning.pop(tp, None)
        yield from self.remove_entries([tp])
        yield from self.resume_topics([tp[0]])
