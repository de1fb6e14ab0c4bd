"""What a person hears of an incident, from the core to the pager: each cause once, and once that it is over.

Everything on the way is real: the core, `kontrast serve`, Prometheus with the rules, Alertmanager with the shipped
configuration, a webhook. Each incident is a cluster of its own, and all of them happen at the same time, by every way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from controller.contract.znodes import MaintenanceWindow
from controller.derived.stored_context import new_context
from controller.feed.quarantine import quarantine
from controller.model.feed_state import Quarantines
from tests.controller.znode_history import ZnodeHistory
from tests.dashboards.live_incidents import WAYS, LiveCluster, Way, beating

pytestmark = pytest.mark.xdist_group("paging")  # all incidents happen once, for all tests

# Partitions of every cluster: broker 3 leads some, follows in others, and has one for itself.
TOPICS = {
    "t": {0: ([3, 2], 3, 0, [3, 2]), 1: ([2, 3], 2, 0, [2, 3]), 2: ([1, 2], 1, 0, [1, 2]), 3: ([1, 3], 1, 0, [1, 3])},
    "lonely": {0: ([3], 3, 0, [3])},
}


BOTH_CRASHED = (
    "page firing PartitionsOffline of broker 3, brokers 2,3",
    "look firing BrokerCrashed of broker 3, brokers 2,3",
)


def dies(broker: int) -> Callable[[ZnodeHistory], None]:
    """The broker's session ends, and the controller does what it must."""

    def change(history: ZnodeHistory) -> None:
        history.broker_leaves(broker)
        history.the_controller_writes_its_due()

    return change


def returns(broker: int) -> Callable[[ZnodeHistory], None]:
    """The broker registers, is elected where only it can be, and catches up."""

    def change(history: ZnodeHistory) -> None:
        history.broker(broker)
        history.the_controller_writes_its_due()
        for name, topic in list(history.context.topics):
            for number, partition in topic.partitions.items():
                value = partition.zk_state
                live = [at for at in partition.replicas if at in history.context.header.brokers]
                if value is not None and value.leader >= 0 and set(value.isr) != set(live):
                    history.state(name, number, value.leader, value.leader_epoch, live)

    return change


def a_crash(cluster: LiveCluster) -> None:
    cluster.do(dies(3))
    cluster.until_heard("look firing BrokerCrashed of broker 3", "page firing PartitionsOffline of broker 3")
    cluster.later(90)
    cluster.do(returns(3))
    cluster.later(60)


def two_crashes_a_minute_apart(cluster: LiveCluster) -> None:
    cluster.do(dies(3))
    cluster.until_heard("page firing PartitionsOffline of broker 3")
    cluster.pass_real(60)
    cluster.do(dies(2))
    cluster.until_heard(*BOTH_CRASHED)
    cluster.do(returns(2))
    cluster.do(returns(3))
    cluster.later(60)


def a_planned_restart(cluster: LiveCluster) -> None:
    """The controller moves the leaders of broker 3 away before it leaves: ZooKeeper shows no more of a shutdown."""
    cluster.do(lambda history: history.state("t", 0, 2, 1, [2]))
    cluster.do(lambda history: history.state("t", 1, 2, 1, [2]))
    cluster.do(lambda history: history.state("t", 3, 1, 1, [1]))
    cluster.later(2)
    cluster.do(dies(3))
    cluster.until_heard("look firing BrokerShutDown of broker 3")
    cluster.later(120)
    cluster.do(returns(3))
    cluster.later(400)


def a_maintenance_window(cluster: LiveCluster) -> None:
    cluster.maintenance = (MaintenanceWindow((3,), cluster.history.now_ms + 3_600_000, "disks"),)
    cluster.later(2)
    cluster.do(dies(3))
    cluster.until_heard("look firing BrokerCrashed of broker 3", "look firing PartitionsOffline of broker 3")
    cluster.do(returns(3))
    cluster.later(60)


def the_controller_is_gone(cluster: LiveCluster) -> None:
    cluster.do(lambda history: history.delete("/controller"))
    cluster.later(12)
    cluster.until_heard("page firing NoController of cluster {}")
    cluster.do(lambda history: history.controller(2, 2))
    cluster.until_heard("page resolved NoController of cluster {}", "look firing ControllerMoved of cluster {}")
    cluster.later(301)


def the_controller_pauses_for_less_than_its_session(cluster: LiveCluster) -> None:
    cluster.do(lambda history: history.topic("new", {0: [1, 2], 1: [2, 3]}))
    cluster.later(12)
    cluster.until_heard("look firing CreationDue of partitions")
    cluster.do(lambda history: history.the_controller_writes_its_due())
    cluster.later(60)


def the_watcher_loses_its_session(cluster: LiveCluster) -> None:
    cluster.session = "lost"
    cluster.later(12)
    cluster.until_heard("page firing ReplicaDisconnected of cluster {}")
    cluster.session = "connected"
    cluster.later(1)
    cluster.do(reads_all_again)
    cluster.later(5)


def reads_all_again(history: ZnodeHistory) -> None:
    history.start(1, 2, 3, topics=TOPICS)


def a_deletion_is_stuck(cluster: LiveCluster) -> None:
    def asked(history: ZnodeHistory) -> None:
        history.delete_topic("lonely")
        history.the_controller_writes_its_due()

    cluster.do(asked)
    cluster.later(301)
    cluster.until_heard("look firing DeletionStuck of partitions")
    cluster.do(lambda history: history.topic_vanishes("lonely", 0))
    cluster.later(5)


def a_rack_is_lost(cluster: LiveCluster) -> None:
    def change(history: ZnodeHistory) -> None:
        history.broker_leaves(3)
        history.broker_leaves(2)
        history.the_controller_writes_its_due()

    cluster.do(change)
    cluster.until_heard(*BOTH_CRASHED)
    cluster.do(returns(2))
    cluster.do(returns(3))
    cluster.later(60)


def an_unclean_election(cluster: LiveCluster) -> None:
    """Replica 1 of t-3 falls behind, broker 3 dies, and the topic may be led by one that was not in sync."""

    def falls_behind(history: ZnodeHistory) -> None:
        history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
        history.state("t", 0, 3, 0, [3])
        history.delete_topic("lonely")
        history.the_controller_writes_its_due()
        history.topic_vanishes("lonely", 0)

    cluster.do(falls_behind)
    cluster.do(dies(3))
    cluster.until_heard("page firing UncleanElection of cluster {}", "page firing BrokerCrashed of broker 3")
    cluster.do(returns(3))

    def leads_again(history: ZnodeHistory) -> None:
        history.elect_preferred(("t", 0))
        history.the_controller_writes_its_due()
        history.delete("/admin/preferred_replica_election")

    cluster.do(leads_again)
    cluster.later(1_801)


def a_quarantine(cluster: LiveCluster) -> None:
    def given_up(history: ZnodeHistory) -> None:
        outcome = quarantine(new_context(cluster.name, 8), Quarantines(1), history.records[-1], "record 9 failed")
        history.context = outcome.context
        history.effects += outcome.effects

    def read_again(history: ZnodeHistory) -> None:
        history.generation, history.seq = 2, -1
        reads_all_again(history)

    cluster.do(given_up)
    cluster.until_heard("page firing ClusterQuarantined of cluster {}")
    cluster.do(read_again)
    cluster.later(5)


INCIDENTS = {
    f.__name__: f
    for f in (
        a_crash,
        two_crashes_a_minute_apart,
        a_planned_restart,
        a_maintenance_window,
        the_controller_is_gone,
        the_controller_pauses_for_less_than_its_session,
        the_watcher_loses_its_session,
        a_deletion_is_stuck,
        a_rack_is_lost,
        an_unclean_election,
        a_quarantine,
    )
}


# Read as: of incident KEY a person hears this, once that it fires and once that it is over.
_CRASH = ("page PartitionsOffline of broker 3", "look BrokerCrashed of broker 3")
_BOTH_CRASHED = tuple(f"{said}, brokers 2,3" for said in _CRASH)
TOLD = {
    "a_crash": _CRASH,
    "two_crashes_a_minute_apart": (*_CRASH, *_BOTH_CRASHED),
    "a_planned_restart": ("look BrokerShutDown of broker 3", "look PartitionsOffline of broker 3"),
    "a_maintenance_window": ("look BrokerCrashed of broker 3", "look PartitionsOffline of broker 3"),
    "the_controller_is_gone": ("page NoController of cluster {}", "look ControllerMoved of cluster {}"),
    "the_controller_pauses_for_less_than_its_session": ("look CreationDue of partitions",),
    "the_watcher_loses_its_session": ("page ReplicaDisconnected of cluster {}",),
    "a_deletion_is_stuck": ("look DeletionStuck of partitions",),
    "a_rack_is_lost": _BOTH_CRASHED,
    "an_unclean_election": ("page BrokerCrashed of broker 3", "page UncleanElection of cluster {}"),
    "a_quarantine": ("page ClusterQuarantined of cluster {}",),
}


def told(incident: str, cluster: str) -> list[str]:
    """What is heard in all."""
    heard = []
    for each in TOLD[incident]:
        receiver, _, alert = each.format(cluster).partition(" ")
        heard += [f"{receiver} firing {alert}", f"{receiver} resolved {alert}"]
    return sorted(heard)


@pytest.fixture(scope="module")
def ways(tmp_path_factory, start_exporter) -> Iterator[dict[str, Way]]:
    with ExitStack() as running:
        yield {
            name: running.enter_context(Way(name, tmp_path_factory.mktemp(name) / "way", start_exporter))
            for name in WAYS
        }


@pytest.fixture(scope="module")
def clusters(ways) -> dict[str, LiveCluster]:
    """Each incident's cluster, once it has happened and all of it was heard by every way."""
    clusters = {name: LiveCluster(name, list(ways.values())) for name in INCIDENTS}
    for cluster in clusters.values():
        cluster.start(**TOPICS)

    def happens(name: str) -> None:
        INCIDENTS[name](clusters[name])
        clusters[name].until_heard(*told(name, name))

    with beating(list(clusters.values())), ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(happens, clusters))
        # Whatever else there was to hear came before this: Alertmanager was told of it before.
        last = LiveCluster("last", list(ways.values())).start(**TOPICS)
        last.do(dies(3))
        last.until_heard("page firing PartitionsOffline of broker 3")
        last.do(returns(3))
        last.until_heard("page resolved PartitionsOffline of broker 3")
    return clusters


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("incident", INCIDENTS)
def test_each_cause_is_told_once_and_once_that_it_is_over(incident, way, ways, clusters):
    assert sorted(map(str, clusters[incident].heard(ways[way]))) == told(incident, incident)


def test_what_is_told_is_the_same_by_every_way(ways, clusters):
    for cluster in clusters.values():
        direct, *others = (sorted(cluster.heard(way)) for way in ways.values())
        assert others == [direct, direct], cluster.name


def test_restarts_in_the_middle_say_nothing_anew(ways, clusters):
    cluster = LiveCluster("restarted", list(ways.values())).start(**TOPICS)
    with beating([cluster]):
        cluster.do(dies(3))
        cluster.until_heard("look firing BrokerCrashed of broker 3", "page firing PartitionsOffline of broker 3")
        for way in ways.values():
            way.restart_exporter()
        cluster.pass_real(30)
        for way in ways.values():
            way.restart_alertmanager()
        cluster.pass_real(70)  # what stands is told again within half a minute directly, within a whole one by rules
        cluster.do(dies(2))
        cluster.until_heard(*BOTH_CRASHED)
        cluster.do(returns(2))
        cluster.do(returns(3))
        for which in ("", ", brokers 2,3"):
            cluster.until_heard(f"look resolved BrokerCrashed of broker 3{which}")
            cluster.until_heard(f"page resolved PartitionsOffline of broker 3{which}")
    for way in ways.values():
        pages = [str(each) for each in cluster.heard(way) if each.receiver == "page"]
        assert len(pages) == len(set(pages)) == 4, (way.name, pages)


def test_two_crashes_in_real_time_are_each_told_within_half_a_minute(tmp_path, start_exporter):
    with Way("direct", tmp_path / "way", start_exporter, speed=1) as way:
        cluster = LiveCluster("real", [way]).start(**TOPICS)
        with beating([cluster]):
            for broker, which in ((3, ""), (2, ", brokers 2,3")):
                began = time.time()
                cluster.do(dies(broker))
                cluster.until_heard(f"page firing PartitionsOffline of broker 3{which}")
                assert max(way.pager.times("real")) - began < 30
            cluster.do(returns(2))
            cluster.do(returns(3))
            cluster.until_heard("page resolved PartitionsOffline of broker 3, brokers 2,3")
        pages = [str(each) for each in cluster.heard(way) if each.receiver == "page"]
        assert len(pages) == len(set(pages)) == 4, pages
