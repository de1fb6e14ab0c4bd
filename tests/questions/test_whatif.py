"""Brokers that are lost, shut down and restored in a cluster that is only imagined, and reassignments in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from controller.contract.ids import TopicPartition
from controller.model.context import Context
from questions.whatif.consequences import consequences, is_offline
from questions.whatif.hypothetical_cluster import HypotheticalCluster, NoControllerError
from questions.whatif.rolling import rank_losses, rolling_order
from questions.whatif.scenario import Step, StepKind, Taken, check_reassignment, play
from tests.controller.znode_history import ZnodeHistory

THREE = {"a": {0: ([1, 2, 3], 1, 4, [1, 2, 3]), 1: ([2, 3, 1], 2, 4, [2, 3, 1])}}


def cluster_of(
    topics: dict[str, Any],
    *brokers: int,
    configs: dict[str, dict[str, str]] | None = None,
    release: tuple[int, int] | None = None,
) -> Context:
    history = ZnodeHistory(release=release).start(*(brokers or (1, 2, 3)), topics=topics)
    for name, config in (configs or {}).items():
        history.write(f"/config/topics/{name}", {"version": 1, "config": config})
    return history.context


def state(cluster: HypotheticalCluster, topic: str, partition: int) -> tuple[int, tuple[int, ...]]:
    found = cluster.context.topics.partition(TopicPartition(topic, partition))
    assert found is not None
    assert found.zk_state is not None
    return found.zk_state.leader, found.zk_state.isr


def test_the_controller_s_own_broker_is_replaced_and_its_partitions_are_led():
    cluster = HypotheticalCluster(cluster_of(THREE))
    cluster.lose((1,))
    assert cluster.context.header.controller == 2
    assert state(cluster, "a", 0) == (2, (2, 3))


def test_all_brokers_lost_leave_nobody():
    context = cluster_of(THREE)
    cluster = HypotheticalCluster(context)
    cluster.lose((1, 2, 3))
    after = consequences(context, cluster.context, cluster.touched)
    assert (after.controller, after.offline, after.brokers) == (-1, 2, ())


def test_a_partition_without_another_replica_is_offline_until_its_broker_returns():
    context = cluster_of({"single": {0: ([2], 2, 0, [2])}})
    cluster = HypotheticalCluster(context)
    cluster.lose((2,))
    after = consequences(context, cluster.context, cluster.touched)
    assert [(each.topic, each.leader) for each in after.newly_offline] == [("single", -1)]
    assert "until broker 2 returns" in (after.newly_offline[0].reason or "")
    without = cluster.context
    cluster.restore((2,))
    assert state(cluster, "single", 0) == (2, (2,))
    assert consequences(context, cluster.context, cluster.touched).changes == ()
    back = consequences(without, cluster.context, cluster.touched)
    assert [each.topic for each in back.newly_online] == ["single"]
    assert (back.leaders_before, back.leaders) == ({}, {2: 1})


def test_an_unclean_election_is_named():
    unclean = {"u": {"unclean.leader.election.enable": "true"}}
    context = cluster_of({"u": {0: ([1, 2], 1, 3, [1])}}, configs=unclean)
    cluster = HypotheticalCluster(context)
    cluster.lose((1,))
    after = consequences(context, cluster.context, cluster.touched)
    assert [(each.leader, each.isr) for each in after.unclean] == [(2, (2,))]
    assert after.newly_offline == ()


def test_fewer_in_sync_replicas_than_acks_all_needs_are_named():
    context = cluster_of(THREE, configs={"a": {"min.insync.replicas": "3"}})
    cluster = HypotheticalCluster(context)
    cluster.lose((3,))
    after = consequences(context, cluster.context, cluster.touched)
    assert len(after.newly_unwritable) == 2
    assert after.newly_offline == ()
    assert after.moved_leaders == ()


def test_a_controlled_shutdown_moves_leaders_before_the_session_ends():
    cluster = HypotheticalCluster(cluster_of(THREE))
    cluster.shut_down(2)
    assert 2 not in cluster.brokers
    assert state(cluster, "a", 1) == (3, (3, 1))


def test_a_restored_broker_is_in_sync_again_and_does_not_lead():
    cluster = HypotheticalCluster(cluster_of(THREE))
    cluster.lose((2,))
    cluster.restore((2,))
    assert state(cluster, "a", 1) == (3, (3, 1, 2))


def test_a_reassignment_is_played_to_its_end():
    cluster = HypotheticalCluster(cluster_of(THREE, 1, 2, 3, 4))
    cluster.reassign({TopicPartition("a", 0): (4, 2)})
    partition = cluster.context.topics.partition(TopicPartition("a", 0))
    assert partition is not None
    assert not partition.reassigning
    assert (partition.replicas, state(cluster, "a", 0)) == ((4, 2), (2, (2, 4))) or state(cluster, "a", 0)[0] == 4


def test_a_reassignment_to_an_absent_broker_waits():
    cluster = HypotheticalCluster(cluster_of(THREE))
    cluster.reassign({TopicPartition("a", 0): (9, 2)})
    partition = cluster.context.topics.partition(TopicPartition("a", 0))
    assert partition is not None
    assert partition.adding == (9,)


def test_a_cluster_that_kraft_leads_is_refused():
    led = ZnodeHistory(release=(3, 9)).start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}}).migrates()
    with pytest.raises(NoControllerError, match="KRaft leads"):
        HypotheticalCluster(led.context)


MANY = {
    "led": {number: ([1, 2, 3], 1 + number % 3, 4, [1, 2, 3]) for number in range(7)},
    "lags": {number: ([2, 3, 1], 2, 4, [2]) for number in range(3)},
    "offline": {0: ([9, 8], -1, 4, [9])},
    "strict": {number: ([1, 2, 3], 1, 4, [1, 2, 3]) for number in range(3)},
}
STRICT = {"strict": {"min.insync.replicas": "3"}}
REGISTERED: list[tuple[int, ...]] = [(4, 2), (2, 3, 4), (3,), (3, 2, 1), (4, 5, 6)]
TARGETS: list[tuple[int, ...]] = [*REGISTERED, (1, 2, 9)]


def assigned(targets: list[tuple[int, ...]]) -> st.SearchStrategy[dict[TopicPartition, tuple[int, ...]]]:
    """Draw new replicas of some partitions."""
    partitions = [TopicPartition(name, number) for name, topic in MANY.items() for number in topic]
    return st.dictionaries(st.sampled_from(partitions), st.sampled_from(targets), min_size=1)


def many() -> Context:
    """Return a cluster of a release in which min.insync.replicas may be above the replication factor."""
    return cluster_of(MANY, 1, 2, 3, 4, 5, 6, configs=STRICT, release=(3, 5))


@settings(deadline=None, max_examples=25)
@given(targets=assigned(TARGETS))
def test_a_reassignment_in_parts_ends_as_one(targets: dict[TopicPartition, tuple[int, ...]]):
    ends = []
    for at_once in (1, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("questions.whatif.hypothetical_cluster._REASSIGNED_AT_ONCE", at_once)
            context = many()
            cluster = HypotheticalCluster(context)
            cluster.reassign(targets)
            ends.append(consequences(context, cluster.context, sorted(cluster.touched)))
    assert ends[0] == ends[1]


@settings(deadline=None, max_examples=25)
@given(targets=assigned(REGISTERED))
def test_a_reassignment_checked_by_kinds_is_as_played_with_every_partition(
    targets: dict[TopicPartition, tuple[int, ...]],
):
    context = many()
    scenario = play(context, [Step(StepKind.REASSIGN, targets=targets)])
    taken = check_reassignment(context, targets)
    after = scenario.in_all
    assert (taken.offline, taken.unwritable) == (len(after.newly_offline), len(after.newly_unwritable))
    assert taken.is_harmless == scenario.is_harmless


def test_a_reassignment_is_checked_with_one_partition_of_each_kind(monkeypatch: pytest.MonkeyPatch):
    context, played = many(), []
    monkeypatch.setattr(
        "questions.whatif.scenario.play", lambda context, steps: played.extend(steps[0].targets) or play(context, steps)
    )
    strict = {TopicPartition("strict", number): (1, to) for number, to in enumerate((4, 5, 2))}
    assert check_reassignment(context, strict) == Taken(offline=0, unwritable=3, is_harmless=False)
    assert len(played) == 2  # to a replica that it has, and to one that it has not


def test_a_cluster_that_was_not_read_is_refused():
    with pytest.raises(NoControllerError, match="has not read the cluster"):
        HypotheticalCluster(ZnodeHistory().context)


def test_the_worst_loss_comes_first_and_names_topics():
    context = cluster_of({**THREE, "single": {0: ([3], 3, 0, [3])}})
    worst = rank_losses(context)[0]
    assert (worst.lost, worst.offline, worst.topics) == ("broker 3", 1, ("single",))
    assert not worst.is_harmless


def test_brokers_that_share_no_tight_partition_are_restarted_together():
    topics = {"a": {0: ([1, 2, 3], 1, 0, [1, 2, 3]), 1: ([4, 5, 6], 4, 0, [4, 5, 6])}}
    context = cluster_of(topics, 1, 2, 3, 4, 5, 6, configs={"a": {"min.insync.replicas": "2"}})
    order = rolling_order(context)
    assert order.batches == ((2, 4), (3, 5), (6,), (1,))
    assert order.obstacles == ()


def test_topics_that_allow_no_restart_are_named_with_the_reason():
    topics = {"single": {0: ([1], 1, 0, [1])}, "tight": {0: ([1, 2], 1, 0, [1, 2])}, **THREE}
    context = cluster_of(topics, configs={"tight": {"min.insync.replicas": "2"}})
    obstacles = {each.topics: (each.reason, each.consequence) for each in rolling_order(context).obstacles}
    assert obstacles == {
        ("single",): ("replication factor 1", "they are offline"),
        ("tight",): ("replication factor 2 is not above min.insync.replicas 2", "they reject acks=all"),
    }


BROKERS = (1, 2, 3, 4)


@st.composite
def clusters(draw: st.DrawFn) -> Context:
    topics, configs = {}, {}
    for index in range(draw(st.integers(1, 4))):
        partitions = {}
        for number in range(draw(st.integers(1, 3))):
            replicas = draw(st.permutations(BROKERS))[: draw(st.integers(1, 4))]
            isr = draw(st.permutations(replicas))[: draw(st.integers(1, len(replicas)))]
            partitions[number] = (replicas, isr[0], 3, isr)
        least, unclean = draw(st.sampled_from("123")), draw(st.sampled_from(["true", "false"]))
        topics[f"t{index}"] = partitions
        configs[f"t{index}"] = {"min.insync.replicas": least, "unclean.leader.election.enable": unclean}
    return cluster_of(topics, *BROKERS, configs=configs)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_the_ranking_counts_what_the_replica_predicts(context):
    for loss in rank_losses(context):
        cluster = HypotheticalCluster(context)
        cluster.lose(loss.brokers)
        after = consequences(context, cluster.context, cluster.touched)
        assert loss.offline == len(after.newly_offline)
        assert loss.unwritable == len(after.newly_unwritable)
        assert loss.unclean == len(after.unclean)
        assert loss.leaders_moved == len(after.moved_leaders)
        assert loss.most_leaders == max(after.leaders.values(), default=0)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_no_batch_of_the_rolling_order_takes_what_could_be_spared(context):
    order = rolling_order(context)
    assert sorted(broker for batch in order.batches for broker in batch) == list(BROKERS)
    hopeless = {topic for each in order.obstacles for topic in each.topics}
    for batch in order.batches:
        cluster = HypotheticalCluster(context)
        cluster.lose(batch)
        after = consequences(context, cluster.context, cluster.touched)
        hit = {each.topic for each in (*after.newly_unwritable, *after.newly_offline)}
        assert hit <= hopeless
        assert not any(is_offline(each.problem) for each in after.changes if each.topic not in hopeless)
