"""Failed log directories of live brokers, as the modelled controller handles them from 1.0 on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lab.modelled_cluster.elections import Elections
from lab.modelled_cluster.memory import TopicPartition, Work


class LogDirs(Elections):
    """Memory with the replicas that brokers cannot read."""

    storage: Callable[[int], set[TopicPartition]]  # the replicas that a broker cannot read

    def enqueue(self, name: str, event: Callable[[], Work]) -> None:
        """Queue an event. `controller` implements it."""
        raise NotImplementedError

    def forget_storage(self, brokers: Iterable[int]) -> None:
        """Forget which replicas these brokers cannot read."""
        self.failed = {each for each in self.failed if each[1] not in brokers}

    def probe(self, brokers: Iterable[int]) -> None:
        """Let brokers answer LeaderAndIsr, because they name replicas that they cannot read."""
        for broker in sorted(brokers):
            if self.storage(broker):
                self.enqueue("LeaderAndIsrResponse", partial(self.storage_failed, broker))

    def storage_failed(self, broker: int) -> Work:
        """Handle a broker's answer to LeaderAndIsr, which names replicas that it cannot read."""
        found = {(tp, broker) for tp in self.storage(broker) if tp in self.assigned and broker in self.live}
        new = sorted(each for each in found - self.failed if each[1] in self.assigned[each[0]].replicas)
        self.failed |= set(new)
        if new:
            yield from self.lose_replicas(new)

    def log_dir_event_notification(self) -> Work:
        """Handle brokers' notifications of failed log directories."""
        parent = "/log_dir_event_notification"
        children = self.zookeeper.children(parent)
        found = [(self.zookeeper.content(f"{parent}/{child}") or {}).get("broker") for child in children]
        brokers = [broker for broker in dict.fromkeys(found) if broker in self.live]
        self.bring_replicas_online(self.replicas_on(brokers))
        for child in children:
            if self.delete(f"{parent}/{child}"):
                yield
        self.probe(brokers)

    def not_stopped(self, broker: int, tps: list[TopicPartition]) -> Work:
        """Handle a broker's answer that it could not delete replicas."""
        yield from self.fail_deletion([(tp, broker) for tp in tps])
