"""State machines of the modelled controller, for partitions and replicas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from lab.modelled_cluster.memory import (
    Memory,
    State,
    TopicPartition,
    Work,
    read_state,
    state_path,
    state_znode,
    without,
)

Replica = tuple[TopicPartition, int]
Election = Callable[[TopicPartition, State], "tuple[State, bool] | None"]

PARTITION_PREVIOUS = {
    "New": {"NonExistent"},
    "Online": {"New", "Online", "Offline"},
    "Offline": {"New", "Online", "Offline"},
    "NonExistent": {"Offline"},
}
REPLICA_PREVIOUS = {
    "New": {"NonExistent"},
    "Online": {"New", "Online", "Offline", "Ineligible"},
    "Offline": {"New", "Online", "Offline", "Ineligible"},
    "Started": {"Offline"},
    "Successful": {"Started"},
    "Ineligible": {"Offline", "Started"},
    "NonExistent": {"Successful"},
}


class Machines(Memory):
    """Memory with both state machines. Each method is the work of one of their calls."""

    def enter(self, tps: Iterable[TopicPartition], target: str) -> list[TopicPartition]:
        """Let partitions enter a state that needs no write."""
        entered = [tp for tp in tps if self.partition_states.get(tp, "NonExistent") in PARTITION_PREVIOUS[target]]
        self.partition_states.update(dict.fromkeys(entered, target))
        return entered

    def create(self, tps: Iterable[TopicPartition]) -> Work:
        """Create partitions as New, then as Online with the first live replica as leader."""
        tps = self.enter(tps, "New")
        for tp in tps:
            for broker in self.assigned[tp].replicas:
                self._let_replica_enter((tp, broker), "New")
        yield from self.first_online(tps)
        for tp in tps:
            for broker in self.assigned[tp].replicas:
                self._let_replica_enter((tp, broker), "Online")

    def first_online(self, tps: Iterable[TopicPartition]) -> Work:
        """Write the first states of new partitions."""
        for tp in self.in_some_order(tps):
            live = tuple(broker for broker in self.assigned[tp].replicas if self.has(tp, broker))
            if not live or state_path(tp) in self.zookeeper.znodes:
                continue
            self.check_fence()
            state = State(live[0], 0, live, self.epoch)
            with self.zookeeper.written_by(self.session):
                self.zookeeper.create(state_path(tp), state_znode(state))
            self.cached[tp] = state
            self.partition_states[tp] = "Online"
            yield

    def bring_online(self, tps: Iterable[TopicPartition], election: Election) -> Work:
        """Elect leaders of partitions, those of which no leader was ever elected by their creation."""
        tps = [tp for tp in tps if self.partition_states.get(tp, "NonExistent") in PARTITION_PREVIOUS["Online"]]
        new = [tp for tp in tps if self.partition_states[tp] == "New"]
        yield from self.first_online(new)
        for tp in self.in_some_order([tp for tp in tps if tp not in new]):
            state = self.writable(tp)
            elected = None if state is None else election(tp, state)
            if elected is not None:
                self.write_state(tp, elected[0], recovering=elected[1])
                self.partition_states[tp] = "Online"
                yield

    def trigger_online(self, topic: str | None = None) -> Work:
        """Retry every partition that is New or Offline."""
        waiting = [
            tp
            for tp, state in sorted(self.partition_states.items())
            if state in ("New", "Offline") and tp in self.assigned and tp[0] not in self.queued
        ]
        chosen = [tp for tp in waiting if topic in (None, tp[0])]
        yield from self.bring_online(chosen, lambda tp, state: self.elect_offline(tp, state, unclean=None))

    def bring_replicas_online(self, replicas: Iterable[Replica]) -> None:
        """Let replicas enter OnlineReplica, which needs no write."""
        for replica in replicas:
            self._let_replica_enter(replica, "Online")

    def take_offline(self, replicas: Iterable[Replica]) -> Work:
        """Take replicas offline. Each leaves its partition's ISR."""
        valid = [
            each for each in replicas if self.replica_states.get(each, "NonExistent") in REPLICA_PREVIOUS["Offline"]
        ]
        for broker in self.in_some_order({broker for _, broker in valid}):
            for tp in self.in_some_order([tp for tp, each in valid if each == broker]):
                if tp in self.cached:
                    yield from self._remove_from_isr(tp, broker)
                elif self.is_since(2, 0):
                    self.replica_states[tp, broker] = "Offline"

    def _remove_from_isr(self, tp: TopicPartition, broker: int) -> Work:
        state = read_state(self.zookeeper, tp)
        if state is None or state.controller_epoch > self.epoch:
            if state is None and tp[0] in self.queued:
                self.replica_states[tp, broker] = "Offline"
            return
        if broker in state.isr:
            leader = -1 if state.leader == broker else state.leader
            is_last = len(state.isr) == 1
            keeps = is_last and (self.is_since(1, 1) or not self.allows_unclean(tp[0]))
            isr = state.isr if keeps else without(state.isr, (broker,))
            self.removing_replicas = True
            self.write_state(tp, State(leader, state.epoch + 1, isr, self.epoch), recovering=self.is_recovering(tp))
            self.removing_replicas = False
            self.replica_states[tp, broker] = "Offline"
            yield
        else:
            self.refreshed(tp, state)
            self.replica_states[tp, broker] = "Offline"

    def let_replicas_enter(self, replicas: Iterable[Replica], target: str) -> None:
        """Let replicas enter a state that needs no write."""
        for replica in replicas:
            self._let_replica_enter(replica, target)

    def _let_replica_enter(self, replica: Replica, target: str) -> None:
        before = self.replica_states.get(replica, "NonExistent")
        previous = REPLICA_PREVIOUS[target]
        if target == "Ineligible" and not self.is_since(2, 3):
            previous = {"Started"}
        if before not in previous:
            return
        if target == "NonExistent":
            del self.replica_states[replica]
            tp, broker = replica
            if tp in self.assigned:
                self.assign_without(tp, broker)
        else:
            self.replica_states[replica] = target

    def assign_without(self, tp: TopicPartition, broker: int) -> None:
        """Take a replica that does not exist any more out of the assignment in memory."""
        assignment = self.assigned[tp]
        replicas = without(assignment.replicas, (broker,))
        adding, removing = without(assignment.adding, (broker,)), without(assignment.removing, (broker,))
        self.assigned[tp] = type(assignment)(replicas, adding, removing)

    def bump(self, tp: TopicPartition) -> Work:
        """Write a partition's state with the next leader epoch, and no other change."""
        state = self.writable(tp)
        if state is not None:
            cached = self.cached.get(tp)
            bumped = state._replace(epoch=state.epoch + 1, controller_epoch=self.epoch)
            self.write_state(tp, bumped, recovering=self.is_recovering(tp))
            if cached is not None and not self.is_since(2, 4):
                self.cached[tp] = cached  # KAFKA-9212
            yield

    def lose_replicas(self, replicas: Collection[Replica]) -> Work:
        """Handle replicas on failed brokers or log directories. Elect other leaders, then take the replicas offline."""
        brokers = {broker for _, broker in replicas}
        deleting = [each for each in replicas if each[0][0] in self.queued]
        others = [each for each in replicas if each[0][0] not in self.queued]
        leaderless = [
            tp
            for tp, state in sorted(self.cached.items())
            if tp[0] not in self.queued
            and not self.leader_is_online(tp)
            and (self.is_since(1, 0) or state.leader in brokers)
        ]
        self.enter(leaderless, "Offline")
        yield from self.trigger_online()
        yield from self.take_offline(others)
        yield from self.fail_deletion(deleting)

    def fail_deletion(self, replicas: list[Replica]) -> Work:
        """Note that these replicas cannot be deleted. `deletion` implements it."""
        raise NotImplementedError
