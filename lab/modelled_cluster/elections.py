"""Elections that operators and the controller's own rebalance ask for."""

from __future__ import annotations

from lab.modelled_cluster.memory import State, TopicPartition, Work
from lab.modelled_cluster.reassignment import Reassignment


class Elections(Reassignment):
    """Memory with the elections of preferred replicas and of replicas that are not in sync."""

    rebalance_ms = 0  # when the next rebalance is due, 0 before the failover has ended

    def elect_preferred_leaders(self, tps: list[TopicPartition]) -> Work:
        """Elect preferred replicas."""
        rewrites = (1, 1) <= self.release < (2, 2)
        chosen = [
            tp
            for tp in dict.fromkeys(tps)
            if tp in self.cached
            and tp in self.assigned
            and tp[0] not in self.queued
            and (rewrites or self.cached[tp].leader != self.assigned[tp].replicas[0])
        ]

        def elect(tp: TopicPartition, state: State) -> tuple[State, bool] | None:
            elected = self.elect_preferred(tp, state)
            return None if elected is None else (elected, self.is_recovering(tp))

        yield from self.bring_online(chosen, elect)

    def elect_unclean(self, tp: TopicPartition) -> Work:
        """Handle ElectLeaders with UNCLEAN, from 2.4 on."""
        if tp in self.cached and tp in self.assigned and tp[0] not in self.queued and not self.leader_is_online(tp):
            yield from self.bring_online([tp], lambda each, state: self.elect_offline(each, state, unclean=True))

    def rebalance(self) -> Work:
        """Elect preferred replicas where more than a tenth of a broker's partitions is led by others."""
        self.rebalance_ms = self.zookeeper.now_ms + 300_000
        by_preferred: dict[int, list[TopicPartition]] = {}
        for tp, assignment in self.assigned.items():
            if tp[0] not in self.queued:
                by_preferred.setdefault(assignment.replicas[0], []).append(tp)
        if self.reassigning and not self.is_since(3, 4):
            return
        for broker in self.in_some_order(by_preferred):
            tps = by_preferred[broker]
            led_by_others = [tp for tp in tps if tp in self.cached and self.cached[tp].leader != broker]
            if broker in self.live and len(led_by_others) * 10 > len(tps):
                yield from self.elect_preferred_leaders(led_by_others)
