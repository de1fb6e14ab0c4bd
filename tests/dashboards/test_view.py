"""The view keeps the newest row of each subject, however rows arrive."""

from __future__ import annotations

import itertools

from dashboards.kept_rows.view import View


def only_cluster(view: View):
    (cluster,) = view.snapshot()
    return cluster


def test_the_newest_row_of_a_partition_wins_in_every_order_of_arrival(rows):
    states = [rows.offline("orders"), rows.partition("orders"), rows.offline("orders", problem="election_due")]
    for order in itertools.permutations(states):
        view = View()
        for row in order:
            view.apply(row)
        assert [row.problem for row in only_cluster(view).unusable] == ["election_due"]


def test_a_row_that_comes_again_says_nothing_new(rows):
    view = View()
    row = rows.offline("orders")
    assert view.apply(row)
    assert not view.apply(row)


def test_a_newer_generation_wins_over_a_higher_seq(rows):
    view = View()
    view.apply(rows.gauges(generation=2, seq=1, topics=20))
    assert not view.apply(rows.gauges(generation=1, seq=99, topics=10))
    assert only_cluster(view).gauges.topics == 20


def test_the_ordinal_decides_within_one_record(rows):
    view = View()
    view.apply(rows.offline("orders", seq=4, ordinal=2))
    assert not view.apply(rows.partition("orders", seq=4, ordinal=1))
    assert len(only_cluster(view).unusable) == 1


def test_a_partition_that_is_gone_is_removed_and_no_older_row_brings_it_back(rows):
    view = View()
    offline = rows.offline("orders")
    view.apply(offline)
    view.apply(rows.offline("orders", state="NonExistentPartition", removed=True))
    assert only_cluster(view).unusable == ()
    assert not view.apply(offline)
    assert only_cluster(view).unusable == ()
    view.apply(rows.offline("orders"))
    assert len(only_cluster(view).unusable) == 1


def test_a_broker_that_is_forgotten_is_removed_until_it_registers_again(rows):
    view = View()
    left = rows.broker(3, registered=False)
    view.apply(left)
    assert view.apply(rows.broker(3, registered=False, forgotten=True))
    assert only_cluster(view).brokers == ()
    assert not view.apply(left)
    view.apply(rows.broker(3))
    assert [row.broker for row in only_cluster(view).brokers] == [3]


def test_under_replication_alone_leaves_a_partition_usable(rows):
    view = View()
    view.apply(rows.partition("orders", problem="under_replicated"))
    assert only_cluster(view).unusable == ()


def test_unusable_partitions_come_longest_unusable_first(rows):
    view = View()
    view.apply(rows.offline("late", problem_since_ms=3))
    view.apply(rows.offline("early", 1, problem_since_ms=1))
    view.apply(rows.offline("early", 0, problem_since_ms=1))
    names = [(row.topic, row.partition) for row in only_cluster(view).unusable]
    assert names == [("early", 0), ("early", 1), ("late", 0)]


def test_a_resolved_alert_is_no_longer_open(rows):
    view = View()
    view.apply(rows.alert("a"))
    view.apply(rows.alert("b"))
    view.apply(rows.alert("a", state="resolved"))
    assert [alert.id for alert in only_cluster(view).open_alerts] == ["b"]


def test_clusters_do_not_touch_each_other(rows):
    view = View()
    view.apply(rows.offline("orders", cluster="south"))
    view.apply(rows.partition("orders", cluster="north"))
    assert [(cluster.cluster, len(cluster.unusable)) for cluster in view.snapshot()] == [("north", 0), ("south", 1)]


def test_a_snapshot_does_not_change_with_the_view(rows):
    view = View()
    view.apply(rows.offline("orders"))
    before = only_cluster(view)
    view.apply(rows.partition("orders"))
    assert len(before.unusable) == 1
    assert only_cluster(view).unusable == ()


def test_forgetting_an_output_drops_what_came_from_it_and_nothing_else(rows):
    view = View()
    for row in rows.of_everything():
        view.apply(row)
    view.forget("metadata")
    cluster = only_cluster(view)
    assert (cluster.unusable, cluster.brokers, cluster.controller) == ((), (), None)
    assert cluster.gauges is not None
    assert cluster.open_alerts
    view.forget("gauges")
    view.forget("alerts")
    assert (only_cluster(view).gauges, only_cluster(view).open_alerts) == (None, ())


def test_topics_are_known_by_prefix_until_their_last_partition_is_gone(rows):
    view = View()
    for topic in ("b-2", "a", "b-1", "c"):
        view.apply(rows.partition(topic, 1))
    view.apply(rows.partition("a", 0))
    assert list(view.partitions_of("north", "a")) == [0, 1]
    assert view.topic_names("north", "b-", "", 9) == ["b-1", "b-2"]
    assert view.topic_names("north", "", "b-1", 1) == ["b-2"]
    gone = {"state": "NonExistentPartition", "removed": True}
    view.apply(rows.partition("a", 0, **gone))
    assert view.topic_names("north", "", "", 1) == ["a"]
    view.apply(rows.partition("a", 1, **gone))
    assert view.topic_names("north", "", "", 1) == ["b-1"]
    view.forget("metadata", "north")
    assert view.topic_names("north", "", "", 9) == []
    assert view.partitions_of("north", "c") == {}
    assert view.partitions_of("nowhere", "c") == {}


def test_changes_of_an_output_only_grow_and_not_by_a_row_that_is_known(rows):
    view = View()
    row = rows.partition("orders")
    view.apply(row)
    view.apply(row)
    assert (view.changes("north", "metadata"), view.changes("north", "gauges")) == (1, 0)
    view.forget("metadata", "north")
    assert view.changes("north", "metadata", "gauges") == 2
    assert view.changes("nowhere", "metadata") == 0
