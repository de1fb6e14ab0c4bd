"""Differences between a broker's view and ZooKeeper's, and their alert's sentence."""

from __future__ import annotations

import pytest

from dashboards.errors import ServeError
from dashboards.probe.broker import Leader, ProbeError, choose_endpoint
from dashboards.probe.comparison import DifferenceKind, PartitionDifference, differences, lasting, may_be_compared
from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
from dashboards.probe.prober import BrokerFindings, open_alert
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from tests.controller.znode_history import ZnodeHistory

LIVE = {1, 2}


def snapshot_of(history: ZnodeHistory) -> ClusterSnapshot:
    """Return the cluster in the rows of its history."""
    memory = Memory()
    for row in history.effects:
        memory.apply(row)
    (found,) = memory.clusters()
    return found


@pytest.fixture
def judge(rows):
    """Return the difference of the one partition t-0."""

    def judge(seen: Leader | None, **row) -> DifferenceKind | None:
        partition = rows.partition("t", **{"leader": 1, "leader_epoch": 5, **row})
        found = differences({("t", 0): partition}, {} if seen is None else {("t", 0): seen}, LIVE)
        return found[("t", 0)].difference if found else None

    return judge


@pytest.mark.parametrize(
    ("seen", "difference"),
    [
        (Leader(1, 5), None),
        (Leader(2, 4), DifferenceKind.STALE),
        (Leader(1, 4), DifferenceKind.STALE),
        (Leader(2, 5), DifferenceKind.STALE),
        (Leader(2, 6), None),  # the broker is ahead of the rows
        (Leader(1, -1), None),  # an old broker without an epoch
        (Leader(2, -1), DifferenceKind.STALE),
        (Leader(-1, 5), DifferenceKind.STALE),  # it does not know the live leader's address
        (None, DifferenceKind.MISSING),
    ],
)
def test_a_view_of_a_partition_is_judged_by_epoch_and_leader(judge, seen, difference):
    assert judge(seen) is difference


def test_a_leader_that_is_not_live_has_no_address(judge):
    assert judge(Leader(-1, 5), leader=3) is None
    assert judge(Leader(-1, 5), leader=-1) is None
    assert judge(Leader(-1, 4), leader=-1) is DifferenceKind.STALE


def test_a_partition_that_brokers_do_not_know_yet_is_not_missing(judge):
    assert judge(None, state="NewPartition") is None
    assert judge(None, leader_epoch=-1) is None


@pytest.mark.parametrize("dead", [(), (3,), (2, 3)])
def test_a_topic_whose_deletion_waits_is_no_stale_view(dead):
    """Brokers hear of a deletion replica by replica, so any view is right: led, without a leader, or unknown."""
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 3], 1, 1, [1, 2, 3])}})
    for broker in dead:
        history.broker_leaves(broker)
    history.delete_topic("t")
    history.restart()
    row = history.row("t", 0)
    assert row.deleting
    for seen in ({}, {("t", 0): Leader(1, 0)}, {("t", 0): Leader(-2, 9)}):
        assert not differences({("t", 0): row}, seen, LIVE)


@pytest.mark.parametrize("written", [{"id": "second"}, b"x", None])
def test_nothing_is_compared_while_the_clusters_id_is_not_the_former(written):
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 1, [1, 2])}})
    history.write("/cluster/id", {"version": "1", "id": "first"})
    assert may_be_compared(snapshot_of(history))
    if written is None:
        history.delete("/cluster/id")
    else:
        history.write("/cluster/id", written if isinstance(written, bytes) else {"version": "1", **written})
    history.heartbeat()
    assert not may_be_compared(snapshot_of(history))


def test_a_partition_without_a_row_is_unexpected():
    found = differences({}, {("gone", 3): Leader(1, 2)}, LIVE)
    assert found == {("gone", 3): PartitionDifference(DifferenceKind.UNEXPECTED, None, Leader(1, 2))}


def test_only_what_is_expected_twice_lasts():
    stale = PartitionDifference(DifferenceKind.STALE, Leader(1, 5), Leader(2, 4))
    still = PartitionDifference(DifferenceKind.STALE, Leader(1, 5), Leader(2, 3))
    moved = PartitionDifference(DifferenceKind.STALE, Leader(2, 6), Leader(2, 4))
    missing = PartitionDifference(DifferenceKind.MISSING, Leader(1, 5), None)
    earlier = {("a", 0): stale, ("b", 0): stale, ("c", 0): stale, ("d", 0): stale}
    later = {("a", 0): still, ("b", 0): moved, ("c", 0): missing, ("e", 0): stale}
    assert lasting(earlier, later) == {("a", 0): still}


def test_the_alert_names_an_example_of_each_difference_with_both_sides(rows):
    found = {
        ("t", 0): PartitionDifference(DifferenceKind.STALE, Leader(1, 5), Leader(2, 4)),
        ("t", 1): PartitionDifference(DifferenceKind.STALE, Leader(-1, 5), Leader(2, 4)),
        ("u", 0): PartitionDifference(DifferenceKind.MISSING, Leader(1, 0), None),
        ("v", 0): PartitionDifference(DifferenceKind.UNEXPECTED, None, Leader(2, 7)),
    }
    findings = BrokerFindings(broker=3, found=found, since_ms=1000, answered_ms=2000)
    alert = open_alert(findings, rows.gauges(zxid=42))
    assert alert.cause == (
        "broker 3 gives clients old metadata of 4 partitions, they may miss leaders: "
        "2 with an older leader (t-0: leader 2 in epoch 4, in ZooKeeper leader 1 in epoch 5); "
        "1 that it does not know (u-0: in ZooKeeper leader 1 in epoch 0); "
        "1 of topics that are gone or being deleted (v-0: leader 2 in epoch 7)"
    )
    assert (alert.id, alert.broker, alert.partitions, alert.since_ms) == ("BrokerViewStale/3", 3, 4, 1000)
    assert alert.examples == ("t-0", "t-1", "u-0", "v-0")
    assert any("zxid 0x2a" in sentence for sentence in alert.evidence)


PLAIN = KafkaLoginConfig()
SECURE = KafkaLoginConfig(kafka_tls=True)


@pytest.mark.parametrize(
    ("endpoints", "login", "chosen"),
    [
        (["PLAINTEXT://k1:9092"], PLAIN, "k1:9092"),
        (["SSL://k1:9093", "PLAINTEXT://k1:9092"], PLAIN, "k1:9092"),
        (["PLAINTEXT://k1:9092", "SSL://k1:9093"], SECURE, "k1:9093"),
        (["CLIENTS://[::1]:9094"], SECURE, "[::1]:9094"),
        (["A://a:1", "b://b:2"], KafkaLoginConfig(kafka_listener="B"), "b:2"),
    ],
)
def test_the_listener_that_speaks_as_we_do_is_asked(endpoints, login, chosen):
    assert str(choose_endpoint(endpoints, login)) == chosen


@pytest.mark.parametrize(
    ("endpoints", "login"),
    [
        ([], PLAIN),
        (["A://a:1", "B://b:2"], PLAIN),
        (["A://a:1"], KafkaLoginConfig(kafka_listener="B")),
        (["no endpoint"], PLAIN),
    ],
)
def test_without_a_fitting_listener_the_setting_is_named(endpoints, login):
    with pytest.raises(ProbeError, match="kafka_listener"):
        choose_endpoint(endpoints, login)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"requests_per_second": -1}, "requests_per_second"),
        ({"kafka_ca_file": "/dev/null"}, "kafka_tls"),
        ({"kafka_key_file": "/dev/null", "kafka_tls": True}, "kafka_certificate_file"),
        ({"kafka_username": "kontrast"}, "needs its password"),
        ({"kafka_password_variable": "HOME"}, "kafka_username"),
        ({"kafka_username": "kontrast", "kafka_password_variable": "NOT_THERE_AT_ALL"}, "NOT_THERE_AT_ALL"),
        ({"kafka_username": "kontrast", "kafka_password_file": "/nowhere"}, "/nowhere"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(settings, said):
    with pytest.raises(ServeError, match=said):
        ProbeConfig(**settings)
