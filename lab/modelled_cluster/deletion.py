"""Topic deletion by the modelled controller."""

from __future__ import annotations

from collections.abc import Iterable

from lab.modelled_cluster.machines import Machines, Replica
from lab.modelled_cluster.memory import Work


class Deletion(Machines):
    """Memory with the deletion of topics."""

    def topic_deletion(self) -> Work:
        """Handle entries in /admin/delete_topics."""
        asked = self.zookeeper.children("/admin/delete_topics")
        for name in [name for name in asked if name not in self.topics or not self.deletes_topics]:
            self.delete(f"/admin/delete_topics/{name}")
            yield
        if not self.deletes_topics:
            return
        self.queued |= {name for name in asked if name in self.topics}
        yield from self.resume_deletions()

    def resume_deletions(self) -> Work:
        """Complete, retry or begin the deletions that can go on."""
        eligible, retried = [], list[Replica]()
        for name in self.in_some_order(self.queued):
            replicas = self._replicas_of(name)
            states = {self.replica_states.get(each, "NonExistent") for each in replicas}
            if states <= {"Successful"}:
                yield from self._complete(name)
                continue
            if "Started" not in states and "Ineligible" in states:
                retried += [each for each in replicas if self.replica_states.get(each) == "Ineligible"]
            if "Started" not in states and name not in self.ineligible:
                eligible.append(name)
        yield from self.take_offline(retried)
        for names in [eligible] if self.is_since(2, 5) else [[name] for name in eligible]:
            yield from self._delete(names)

    def _delete(self, names: list[str]) -> Work:
        if self.is_since(2, 1):
            for name in names:
                if name not in self.started:
                    self._retire(name)
            self.started |= set(names)
        for name in names:
            replicas = self._replicas_of(name)
            dead = [each for each in replicas if not self.has(*each)]
            to_do = [each for each in replicas if each not in dead and self.replica_states.get(each) != "Successful"]
            self.let_replicas_enter(dead, "Ineligible")
            yield from self.take_offline(to_do)
            self.let_replicas_enter(to_do, "Started")
            for tp, broker in to_do:
                if self.replica_states.get((tp, broker)) == "Started":
                    self.stops.add((broker, tp))
                    self.sent_to[broker] = self.live[broker]
            if dead:
                self.ineligible.add(name)

    def _retire(self, name: str) -> None:
        tps = self.partitions_of(name)
        self.enter(tps, "Offline")
        self.enter(tps, "NonExistent")

    def _replicas_of(self, name: str) -> list[Replica]:
        return [(tp, broker) for tp in self.partitions_of(name) for broker in self.assigned[tp].replicas]

    def _complete(self, name: str) -> Work:
        tps = self.partitions_of(name)
        if not self.is_since(2, 1):
            self._retire(name)
        self.let_replicas_enter(self._replicas_of(name), "NonExistent")
        kept = self.zookeeper.children(f"/brokers/topics/{name}/partitions")  # also states of unknown partitions
        for number in dict.fromkeys([*(str(tp[1]) for tp in tps), *kept]):
            if self.delete(f"/brokers/topics/{name}/partitions/{number}/state"):
                yield
        for path in (f"/brokers/topics/{name}", f"/config/topics/{name}", f"/admin/delete_topics/{name}"):
            if self.delete(path):
                yield
        self.forget_topic(name)
        for tp in tps:
            self.partition_states.pop(tp, None)

    def fail_deletion(self, replicas: list[Replica]) -> Work:
        """Note that these replicas cannot be deleted, so that their topics wait."""
        if not replicas:
            return
        self.stops -= {(broker, tp) for tp, broker in replicas}
        self.let_replicas_enter(replicas, "Ineligible")
        self.ineligible |= {tp[0] for tp, _ in replicas} & self.queued
        yield from self.resume_deletions()

    def replicas_deleted(self, replicas: Iterable[Replica]) -> Work:
        """Handle a broker's answer that it deleted these replicas."""
        self.let_replicas_enter([each for each in replicas if each[0][0] in self.queued], "Successful")
        yield from self.resume_deletions()

    def resume_topics(self, names: Iterable[str]) -> Work:
        """Resume deletions of these topics, which had to wait."""
        resumed = set(names) & self.queued
        if resumed:
            self.ineligible -= resumed
            yield from self.resume_deletions()
