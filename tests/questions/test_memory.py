"""The memory keeps the newest row of each subject, in whichever order rows arrive."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from controller.contract.effect_rows import Transition
from controller.contract.records import LATEST_MS
from questions.memory import Memory
from tests.controller.znode_history import ZnodeHistory, on


def only_cluster(memory: Memory):
    (cluster,) = memory.clusters()
    return cluster


def test_the_newest_row_of_a_partition_wins_in_every_order_of_arrival(rows):
    states = [rows.offline("orders"), rows.partition("orders"), rows.offline("orders", problem="election_due")]
    for order in itertools.permutations(states):
        memory = Memory()
        for row in order:
            memory.apply(row)
        assert [row.problem for row in only_cluster(memory).unusable] == ["election_due"]


def test_a_row_that_comes_again_says_nothing_new(rows):
    memory = Memory()
    row = rows.offline("orders")
    assert memory.apply(row)
    assert not memory.apply(row)


def test_a_newer_generation_wins_over_a_higher_seq(rows):
    memory = Memory()
    memory.apply(rows.gauges(generation=2, seq=1, topics=20))
    assert not memory.apply(rows.gauges(generation=1, seq=99, topics=10))
    assert only_cluster(memory).gauges.topics == 20


def test_the_ordinal_decides_within_one_record(rows):
    memory = Memory()
    memory.apply(rows.offline("orders", seq=4, ordinal=2))
    assert not memory.apply(rows.partition("orders", seq=4, ordinal=1))
    assert len(only_cluster(memory).unusable) == 1


def test_a_partition_that_is_gone_is_removed_and_no_older_row_brings_it_back(rows):
    memory = Memory()
    offline = rows.offline("orders")
    memory.apply(offline)
    memory.apply(rows.offline("orders", state="NonExistentPartition", removed=True))
    assert only_cluster(memory).unusable == ()
    assert not memory.apply(offline)
    assert only_cluster(memory).unusable == ()
    memory.apply(rows.offline("orders"))
    assert len(only_cluster(memory).unusable) == 1


def test_a_broker_that_is_forgotten_is_removed_until_it_registers_again(rows):
    memory = Memory()
    left = rows.broker(3, registered=False)
    memory.apply(left)
    assert memory.apply(rows.broker(3, registered=False, forgotten=True))
    assert only_cluster(memory).brokers == ()
    assert not memory.apply(left)
    memory.apply(rows.broker(3))
    assert [row.broker for row in only_cluster(memory).brokers] == [3]


def test_under_replication_alone_leaves_a_partition_usable(rows):
    memory = Memory()
    memory.apply(rows.partition("orders", problem="under_replicated"))
    assert only_cluster(memory).unusable == ()


def test_unusable_partitions_come_longest_unusable_first(rows):
    memory = Memory()
    memory.apply(rows.offline("late", problem_since_ms=3))
    memory.apply(rows.offline("early", 1, problem_since_ms=1))
    memory.apply(rows.offline("early", 0, problem_since_ms=1))
    names = [(row.topic, row.partition) for row in only_cluster(memory).unusable]
    assert names == [("early", 0), ("early", 1), ("late", 0)]


def test_a_resolved_alert_is_no_longer_open(rows):
    memory = Memory()
    memory.apply(rows.alert("a"))
    memory.apply(rows.alert("b"))
    memory.apply(rows.alert("a", state="resolved"))
    assert [alert.id for alert in only_cluster(memory).open_alerts] == ["b"]


def test_clusters_do_not_touch_each_other(rows):
    memory = Memory()
    memory.apply(rows.offline("orders", cluster="south"))
    memory.apply(rows.partition("orders", cluster="north"))
    assert [(cluster.cluster, len(cluster.unusable)) for cluster in memory.clusters()] == [("north", 0), ("south", 1)]


def test_a_snapshot_does_not_change_with_the_memory(rows):
    memory = Memory()
    memory.apply(rows.offline("orders"))
    before = only_cluster(memory)
    memory.apply(rows.partition("orders"))
    assert len(before.unusable) == 1
    assert only_cluster(memory).unusable == ()


def test_forgetting_an_output_drops_what_came_from_it_and_nothing_else(rows):
    memory = Memory()
    for row in rows.of_everything():
        memory.apply(row)
    memory.forget("metadata")
    cluster = only_cluster(memory)
    assert (cluster.unusable, cluster.brokers, cluster.controller) == ((), (), None)
    assert cluster.gauges is not None
    assert cluster.open_alerts
    memory.forget("gauges")
    memory.forget("alerts")
    assert (only_cluster(memory).gauges, only_cluster(memory).open_alerts) == (None, ())


def test_topics_are_known_by_prefix_until_their_last_partition_is_gone(rows):
    memory = Memory()
    for topic in ("b-2", "a", "b-1", "c"):
        memory.apply(rows.partition(topic, 1))
    memory.apply(rows.partition("a", 0))
    assert list(memory.partitions_of("north", "a")) == [0, 1]
    assert memory.topic_names("north", "b-", "", 9) == ["b-1", "b-2"]
    assert memory.topic_names("north", "", "b-1", 1) == ["b-2"]
    gone = {"state": "NonExistentPartition", "removed": True}
    memory.apply(rows.partition("a", 0, **gone))
    assert memory.topic_names("north", "", "", 1) == ["a"]
    memory.apply(rows.partition("a", 1, **gone))
    assert memory.topic_names("north", "", "", 1) == ["b-1"]
    memory.forget("metadata", "north")
    assert memory.topic_names("north", "", "", 9) == []
    assert memory.partitions_of("north", "c") == {}
    assert memory.partitions_of("nowhere", "c") == {}


def test_changes_of_an_output_only_grow_and_not_by_a_row_that_is_known(rows):
    memory = Memory()
    row = rows.partition("orders")
    memory.apply(row)
    memory.apply(row)
    assert (memory.version("north", "metadata"), memory.version("north", "gauges")) == (1, 0)
    memory.forget("metadata", "north")
    assert memory.version("north", "metadata", "gauges") == 2
    assert memory.version("nowhere", "metadata") == 0


def test_transitions_make_no_cluster_and_are_among_the_changes_of_their_time():
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.broker_leaves(2)
    step = next(row for row in history.effects if isinstance(row, Transition))
    steps = [replace(step, time_ms=time_ms, cluster="north") for time_ms in (1, 2, 3)]
    memory = Memory(past_rows=2)
    for row in (*steps, replace(step, cluster="south")):
        assert not memory.apply(row)
    assert memory.clusters() == ()
    assert memory.changes("north", 0, 9) == steps[1:], "the oldest one had no room"
    assert memory.changes("north", 3, 3) == steps[2:]
    memory.forget("transitions")
    assert memory.changes("south", 0, LATEST_MS) == []
