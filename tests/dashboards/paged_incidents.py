"""Incidents of clusters with their notifications, one line for firing and resolved together.

The events in ZooKeeper and their times belong here. `live_incidents` carries them to a person, and `test_paging` runs
all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.ids import BrokerId
from controller.model.watch_state import Quarantines
from controller.restore.quarantine import quarantine
from controller.restore.stored_context import new_context
from tests.controller.znode_history import LOG_DIR_EVENT, Topics, ZnodeHistory, broker_znode, controller_znode
from tests.dashboards.live_incidents import LiveCluster

# Broker 3 leads some partitions, follows in others, and has one for itself.
TOPICS: Topics = {
    "t": {0: ([3, 2], 3, 0, [3, 2]), 1: ([2, 3], 2, 0, [2, 3]), 2: ([1, 2], 1, 0, [1, 2]), 3: ([1, 3], 1, 0, [1, 3])},
    "lonely": {0: ([3], 3, 0, [3])},
}

# Brokers 1 and 4, 2 and 5, 3 and 6 are a rack each. Every partition of a topic is within the rack of its name.
BY_RACK: Topics = {
    f"rack{rack}": {0: ([rack, rack + 3], rack, 0, [rack, rack + 3]), 1: ([rack + 3], rack + 3, 0, [rack + 3])}
    for rack in (1, 2, 3)
}

CRASH = ("page PartitionsOffline of broker 3", "look BrokerCrashed of broker 3")
BROKER_2_TOO = tuple(f"{heard}, with broker 2" for heard in CRASH)
OF_BROKER_2 = tuple(heard.replace("broker 3", "broker 2") for heard in CRASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Events of a cluster with these brokers and topics, and their notifications. {} is the cluster's name."""

    happens: Callable[[LiveCluster], None]
    heard: tuple[str, ...]
    topics: Topics
    brokers: tuple[int, ...]
    controller: int


INCIDENTS: dict[str, Incident] = {}


def heard(
    *lines: str, topics: Topics = TOPICS, brokers: Iterable[int] = (1, 2, 3), controller: int = 1
) -> Callable[[Callable[[LiveCluster], None]], Callable[[LiveCluster], None]]:
    """Mark an incident with its notifications."""

    def mark(happens: Callable[[LiveCluster], None]) -> Callable[[LiveCluster], None]:
        INCIDENTS[happens.__name__] = Incident(
            happens=happens, heard=lines, topics=topics, brokers=tuple(brokers), controller=controller
        )
        return happens

    return mark


def dies(*brokers: int) -> Callable[[ZnodeHistory], None]:
    """End the brokers' sessions, and let the controller react."""
    return _of_each(brokers, ZnodeHistory.broker_leaves)


def returns(*brokers: int) -> Callable[[ZnodeHistory], None]:
    """Register the brokers, elect them where only they can lead, and let them catch up."""
    return _of_each(brokers, ZnodeHistory.broker, catch_up)


def _of_each(
    brokers: Iterable[int],
    happens: Callable[[ZnodeHistory, int], object],
    *afterwards: Callable[[ZnodeHistory], object],
) -> Callable[[ZnodeHistory], None]:
    """Make the same happen to each of the brokers, then let the controller react."""

    def change(history: ZnodeHistory) -> None:
        for broker in brokers:
            happens(history, broker)
        for follows in (ZnodeHistory.the_controller_writes_its_due, *afterwards):
            follows(history)

    return change


def catch_up(history: ZnodeHistory) -> None:
    """Let leaders take every live replica into their ISR."""
    for name, topic in list(history.context.topics):
        for number, partition in topic.partitions.items():
            value = partition.zk_state
            live = [at for at in partition.replicas if at in history.context.header.brokers]
            if value is not None and value.leader >= 0 and set(value.isr) != set(live):
                history.state(name, number, value.leader, value.leader_epoch, live)


def shuts_down(broker: int) -> Callable[[ZnodeHistory], None]:
    """Move the broker's leaders away, then end its session. ZooKeeper shows no more of a shutdown."""

    def change(history: ZnodeHistory) -> None:
        for name, topic in list(history.context.topics):
            for number, partition in topic.partitions.items():
                value = partition.zk_state
                if value is None or broker not in value.isr:
                    continue
                left = [at for at in value.isr if at != broker]
                if left:
                    leader = value.leader if value.leader != broker else left[0]
                    history.state(name, number, leader, value.leader_epoch + 1, left)

    return change


def racks(history: ZnodeHistory) -> None:
    """Give each broker a rack in its registration."""
    for broker in range(1, 7):
        history.write(f"/brokers/ids/{broker}", broker_znode(broker) | {"rack": f"eu-{(broker - 1) % 3 + 1}"})


# --- brokers that crash


@heard(*CRASH)
def a_crash(cluster: LiveCluster) -> None:
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.later(90)
    cluster.do(returns(3))
    cluster.later(60)


@heard("page BrokerCrashed of broker 2")
def a_crash_that_takes_nothing_offline(cluster: LiveCluster) -> None:
    cluster.do(dies(2))
    cluster.until_heard("page firing BrokerCrashed of broker 2")
    cluster.do(returns(2))
    cluster.later(60)


@heard(*CRASH)
def a_return_that_the_controller_is_slow_to_act_on(cluster: LiveCluster) -> None:
    """Delay the election for some seconds. The core knows at once that the offline partitions wait only for that."""
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.later(30)
    cluster.do(lambda history: history.broker(3))
    cluster.later(4)
    cluster.do(lambda history: history.the_controller_writes_its_due())
    cluster.do(catch_up)
    cluster.later(60)


@heard(*CRASH, *OF_BROKER_2)
def two_crashes_a_minute_apart(cluster: LiveCluster) -> None:
    """Crash another broker after the first incident has settled. The second crash begins an incident of its own.

    For an Alertmanager at `SPEED` the crashes are a minute apart, in real time twelve seconds.
    """
    cluster.do(dies(3))
    cluster.until_heard("page firing PartitionsOffline of broker 3")
    cluster.pass_real(60)
    cluster.do(dies(2))
    until_all_is_heard(cluster)
    cluster.do(returns(2))
    cluster.do(returns(3))
    cluster.later(60)


@heard(*CRASH, *BROKER_2_TOO)
def two_crashes_within_two_seconds(cluster: LiveCluster) -> None:
    def change(history: ZnodeHistory) -> None:
        history.broker_leaves(3)
        history.now_ms += 1_500
        history.broker_leaves(2)
        history.the_controller_writes_its_due()

    cluster.do(change)
    until_all_is_heard(cluster)
    cluster.do(returns(2))
    cluster.do(returns(3))
    cluster.later(60)


@heard(
    "page PartitionsOffline of broker 3",
    "page PartitionsOffline of broker 3, with broker 6",
    "look BrokerCrashed of broker 3",
    "look BrokerCrashed of broker 3, with broker 6",
    topics=BY_RACK,
    brokers=range(1, 7),
)
def a_rack_is_lost(cluster: LiveCluster) -> None:
    cluster.do(racks)
    cluster.do(dies(3, 6))
    until_all_is_heard(cluster)
    cluster.do(returns(3, 6))
    cluster.later(60)


@heard(
    "page PartitionsOffline of broker 3",
    "page PartitionsOffline of broker 3, with broker 6",
    "look BrokerCrashed of broker 3",
    "look BrokerCrashed of broker 3, with broker 6",
    "page PartitionsOffline of broker 2",
    "page PartitionsOffline of broker 2, with broker 5",
    "look BrokerCrashed of broker 2",
    "look BrokerCrashed of broker 2, with broker 5",
    topics=BY_RACK,
    brokers=range(1, 7),
)
def two_separate_racks_are_lost(cluster: LiveCluster) -> None:
    cluster.do(racks)
    cluster.do(dies(3, 6))
    cluster.do(dies(2, 5))
    until_all_is_heard(cluster)
    cluster.do(returns(3, 6))
    cluster.do(returns(2, 5))
    cluster.later(60)


@heard(
    "page PartitionsOffline of broker 4",
    "page PartitionsOffline of broker 4, with broker 5",
    "page PartitionsOffline of broker 4, with broker 6",
    "look BrokerCrashed of broker 4",
    "look BrokerCrashed of broker 4, with broker 5",
    "look BrokerCrashed of broker 4, with broker 6",
    topics=BY_RACK,
    brokers=range(1, 7),
)
def half_the_cluster_is_lost(cluster: LiveCluster) -> None:
    """Lose three brokers of which no partition lacks two. They name no rack, and leave together."""
    cluster.do(dies(4, 5, 6))
    until_all_is_heard(cluster)
    cluster.do(returns(4, 5, 6))
    cluster.later(60)


@heard(
    "page BrokerCrashed of broker 1",
    "page BrokerCrashed of broker 2",
    "look PartitionsUnderReplicated of broker 2",
    "page PartitionsOffline of broker 3",
    "look BrokerCrashed of broker 3",
    topics={"t": {number: ([1, 2, 3], 1, 0, [1, 2, 3]) for number in range(3)}},
    brokers=(1, 2, 3, 4),
    controller=4,
)
def a_rolling_crash(cluster: LiveCluster) -> None:
    """Crash each broker before the last one has caught up, over ten minutes. Each crash is an incident of its own."""
    cluster.do(dies(1))
    cluster.until_heard("page firing BrokerCrashed of broker 1")
    cluster.later(300)
    cluster.do(dies(2))
    cluster.until_heard("page firing BrokerCrashed of broker 2")
    cluster.do(lambda history: history.broker(1))
    cluster.later(300)
    cluster.until_heard("look firing PartitionsUnderReplicated of broker 2")
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.do(returns(2, 3))
    cluster.later(60)


@heard("page BrokerCrashed of broker 3", "page BrokerFlapping of broker 3", topics={"t": TOPICS["t"]})
def a_broker_keeps_leaving(cluster: LiveCluster) -> None:
    """Let the broker leave three times within seconds. A pager would hear of each as quickly."""

    def leaves_and_returns(history: ZnodeHistory) -> None:
        for _ in range(2):
            dies(3)(history)
            history.now_ms += 2_000
            returns(3)(history)
        dies(3)(history)

    cluster.do(leaves_and_returns)
    until_all_is_heard(cluster)
    cluster.do(returns(3))
    cluster.later(601)


@heard("page LogDirFailed of broker 3")
def a_disk_fails(cluster: LiveCluster) -> None:
    """Fail the disk that has the replica of t-1. After its replacement the replica catches up."""

    def fails(history: ZnodeHistory) -> None:
        history.write(LOG_DIR_EVENT, {"version": 1, "broker": 3, "event": 1})
        history.delete(LOG_DIR_EVENT)
        history.state("t", 1, 2, 1, [2])

    cluster.do(fails)
    cluster.until_heard("page firing LogDirFailed of broker 3")
    cluster.do(catch_up)
    cluster.later(1_801)


# --- work that is planned


@heard("look BrokerShutDown of broker 3", "look PartitionsOffline of broker 3")
def a_planned_restart(cluster: LiveCluster) -> None:
    cluster.do(shuts_down(3))
    cluster.later(2)
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.later(120)
    cluster.do(returns(3))
    cluster.later(400)


@heard(
    *(f"look BrokerShutDown of broker {broker}" for broker in (1, 2, 3)),
    topics={"t": TOPICS["t"]},
    brokers=(1, 2, 3, 4),
    controller=4,
)
def a_rolling_restart(cluster: LiveCluster) -> None:
    for broker in (1, 2, 3):
        cluster.do(shuts_down(broker))
        cluster.later(2)
        cluster.do(dies(broker))
        cluster.until_heard(f"look firing BrokerShutDown of broker {broker}")
        cluster.later(60)
        cluster.do(returns(broker))
        cluster.later(60)


@heard("look BrokerCrashed of broker 3", "look PartitionsOffline of broker 3")
def a_maintenance_window(cluster: LiveCluster) -> None:
    cluster.maintenance = (MaintenanceWindow((BrokerId(3),), cluster.history.now_ms + 3_600_000, "disks"),)
    cluster.later(2)
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.do(returns(3))
    cluster.later(60)


# --- the controller


@heard("page NoController of cluster {}", "look ControllerMoved of cluster {}")
def no_controller_at_all(cluster: LiveCluster) -> None:
    cluster.do(lambda history: history.delete("/controller"))
    cluster.later(12)
    cluster.until_heard("page firing NoController of cluster {}")
    cluster.do(lambda history: history.controller(2, 2))
    cluster.until_heard("page resolved NoController of cluster {}", "look firing ControllerMoved of cluster {}")
    cluster.later(301)


@heard("page BrokerCrashed of broker 1", "look ControllerMoved of cluster {}")
def the_controller_crashes(cluster: LiveCluster) -> None:
    cluster.do(lambda history: history.controller_dies(1))
    cluster.do(lambda history: history.controller(2, 2))
    cluster.do(lambda history: history.the_controller_writes_its_due())
    until_all_is_heard(cluster)
    cluster.do(returns(1))
    cluster.later(301)


@heard()
def the_controller_pauses_for_less_than_its_session(cluster: LiveCluster) -> None:
    """Create partitions late. The delay ends before a warning is due, so no page is sent."""

    def pauses(history: ZnodeHistory) -> None:
        history.topic("new", {0: [1, 2], 1: [2, 3]})
        for _ in range(17):
            history.heartbeat()
        history.the_controller_writes_its_due()

    cluster.do(pauses)
    cluster.later(60)


@heard("page BrokerCrashed of broker 1", "look ControllerMoved of cluster {}")
def the_controller_pauses_for_longer_than_its_session(cluster: LiveCluster) -> None:
    """Delay the controller's due writes, then end its session. Another broker takes over before it returns."""
    cluster.do(lambda history: history.topic("new", {0: [1, 2], 1: [2, 3]}))
    cluster.later(9)
    cluster.do(lambda history: history.controller_dies(1))
    cluster.do(lambda history: history.controller(2, 2))
    cluster.do(lambda history: history.the_controller_writes_its_due())
    until_all_is_heard(cluster)
    cluster.do(returns(1))
    cluster.later(301)


@heard("page GhostController of cluster {}", "look ControllerMoved of cluster {}")
def a_ghost_controller(cluster: LiveCluster) -> None:
    cluster.do(lambda history: history.write("/controller", controller_znode(3)))
    cluster.until_heard("page firing GhostController of cluster {}")
    cluster.do(lambda history: history.delete("/controller"))
    cluster.do(lambda history: history.controller(2, 2))
    until_all_is_heard(cluster)
    cluster.later(301)


# --- partitions and topics


@heard("page PartitionsUnderMinIsr of broker 2")
def too_few_in_sync_without_a_crash(cluster: LiveCluster) -> None:
    """Let broker 2 lag behind while min.insync.replicas asks for both replicas."""

    def lags(history: ZnodeHistory) -> None:
        history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}})
        history.state("t", 2, 1, 0, [1])

    cluster.do(lags)
    cluster.until_heard("page firing PartitionsUnderMinIsr of broker 2")
    cluster.do(catch_up)
    cluster.later(60)


@heard("look DeletionStuck of partitions")
def a_deletion_is_stuck(cluster: LiveCluster) -> None:
    def asked(history: ZnodeHistory) -> None:
        history.delete_topic("lonely")
        history.the_controller_writes_its_due()

    cluster.do(asked)
    cluster.later(301)
    cluster.until_heard("look firing DeletionStuck of partitions")
    cluster.do(lambda history: history.topic_vanishes("lonely", 0))
    cluster.later(5)


@heard("page BrokerCrashed of broker 3", "page UncleanElection of cluster {}")
def an_unclean_election(cluster: LiveCluster) -> None:
    """Let replica 2 of t-0 fall behind, then kill broker 3. A replica that was out of sync may lead."""

    def falls_behind(history: ZnodeHistory) -> None:
        history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
        history.state("t", 0, 3, 0, [3])
        history.delete_topic("lonely")
        history.the_controller_writes_its_due()
        history.topic_vanishes("lonely", 0)

    def leads_again(history: ZnodeHistory) -> None:
        history.elect_preferred(("t", 0))
        history.the_controller_writes_its_due()
        history.delete("/admin/preferred_replica_election")

    cluster.do(falls_behind)
    cluster.do(dies(3))
    until_all_is_heard(cluster)
    cluster.do(returns(3))
    cluster.do(leads_again)
    cluster.later(1_801)


# --- Kontrast itself


@heard("page ReplicaDisconnected of cluster {}")
def the_watcher_loses_its_session(cluster: LiveCluster) -> None:
    cluster.session = "lost"
    cluster.later(12)
    cluster.until_heard("page firing ReplicaDisconnected of cluster {}")
    cluster.session = "connected"
    cluster.later(1)
    cluster.do(reads_all_again)
    cluster.later(5)


@heard("page ClusterQuarantined of cluster {}")
def a_quarantine(cluster: LiveCluster) -> None:
    def given_up(history: ZnodeHistory) -> None:
        outcome = quarantine(
            new_context(cluster.name, chunk_count=8), Quarantines(1), history.records[-1], "record 9 failed"
        )
        history.context = outcome.context
        history.effects += outcome.effects

    def read_again(history: ZnodeHistory) -> None:
        history.generation, history.seq = 2, -1
        reads_all_again(history)

    cluster.do(given_up)
    cluster.until_heard("page firing ClusterQuarantined of cluster {}")
    cluster.do(read_again)
    cluster.later(5)


def reads_all_again(history: ZnodeHistory) -> None:
    """Make a complete read that finds the initial state."""
    history.start(1, 2, 3, topics=TOPICS)


def until_all_is_heard(cluster: LiveCluster) -> None:
    """Wait for the pager, because an alert that ends before its message is due is never sent."""
    cluster.until_heard(*firing(INCIDENTS[cluster.name].heard))


def firing(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines in their firing form."""
    return tuple(line.replace(" ", " firing ", 1) for line in lines)
