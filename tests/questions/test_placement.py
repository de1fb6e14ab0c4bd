"""Assignments as Kafka generates them, and the least movement to a goal."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from controller.contract.ids import TopicPartition
from controller.model.context import Context
from questions.whatif.placement import Goal, UnplaceableError, current_assignment, least_movement, placed_by_kafka
from tests.controller.znode_history import ZnodeHistory, broker_znode


def cluster_of(racks: dict[int, str | None], assignment: dict[str, dict[int, list[int]]]) -> Context:
    topics = {
        name: {number: (replicas, replicas[0], 0, replicas) for number, replicas in partitions.items()}
        for name, partitions in assignment.items()
    }
    history = ZnodeHistory().start(*racks, topics=topics)
    for broker, rack in racks.items():
        if rack is not None:
            history.write(f"/brokers/ids/{broker}", {**broker_znode(broker), "rack": rack})
    return history.context


RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def test_a_drained_broker_hosts_nothing_and_nothing_else_moves():
    context = cluster_of(RACKS, {"t": {0: [1, 2], 1: [3, 4], 2: [2, 3]}})
    movement = least_movement(context, (), (), Goal(drain=frozenset({2})))
    assert set(movement.targets) == {TopicPartition("t", 0), TopicPartition("t", 2)}
    assert movement.targets[TopicPartition("t", 0)][0] == 1
    assert movement.replicas_removed == {2: 2}
    assert movement.copies == 2


def test_a_rack_with_two_replicas_gives_one_away():
    context = cluster_of(RACKS, {"t": {0: [1, 2], 1: [1, 3]}})
    movement = least_movement(context, (), (), Goal(rack_aware=True))
    assert movement.targets == {TopicPartition("t", 0): (1, 4)}


def test_a_higher_replication_factor_only_adds():
    context = cluster_of(RACKS, {"t": {0: [1, 3]}})
    movement = least_movement(context, (), (), Goal(rack_aware=True, replication_factor=3))
    (to,) = movement.targets.values()
    assert to[:2] == (1, 3)
    assert len(to) == 3
    assert movement.replicas_removed == {}


@pytest.mark.parametrize(
    ("brokers", "goal", "sentence"),
    [
        ((9,), Goal(rack_aware=True), "broker 9 is not registered"),
        ((1, 2), Goal(replication_factor=3), "t-0 needs 3 replicas, but only 2 brokers"),
        ((), Goal(drain=frozenset({1, 2, 3})), "t-0 needs 2 replicas, but only 1 brokers"),
    ],
)
def test_a_goal_that_cannot_be_met_is_refused(brokers, goal, sentence):
    with pytest.raises(UnplaceableError, match=sentence):
        least_movement(cluster_of(RACKS, {"t": {0: [1, 3]}}), (), brokers, goal)


def test_a_broker_without_a_rack_is_named():
    context = cluster_of({1: "a", 2: None}, {"t": {0: [1]}})
    with pytest.raises(UnplaceableError, match=r"broker 2 has no rack\. Set broker\.rack"):
        least_movement(context, (), (), Goal(rack_aware=True))


def test_an_unknown_topic_is_named():
    with pytest.raises(UnplaceableError, match="there is no topic x"):
        placed_by_kafka(cluster_of(RACKS, {"t": {0: [1]}}), ["x"], [1, 2])


def test_generated_assignments_are_kafkas():
    context = cluster_of(RACKS, {"t": {0: [1, 3], 1: [1, 3], 2: [1, 3]}})
    placed = placed_by_kafka(context, ["t"], [1, 2, 3, 4], start_index=0, shift=0)
    assert list(placed.values()) == [(1, 3), (3, 2), (2, 4)]
    placed = placed_by_kafka(context, ["t"], [1, 2, 3, 4], rack_aware=False, start_index=1, shift=0)
    assert list(placed.values()) == [(2, 3), (3, 4), (4, 1)]


@pytest.mark.parametrize(
    ("release", "brokers", "leaders"),
    [
        ((2, 8), (1001, 2, 1, 1030, 17, 5), [1, 2, 5, 17, 1001, 1030]),
        ((3, 9), (1001, 2, 1, 1030, 17, 5), [1, 17, 2, 5, 1030, 1001]),
        ((3, 9), (17, 5, 2), [17, 2, 5]),  # brokers that get no replica are in the map, too
        ((3, 9), (0x10001, 2, 16), [16, 0x10001, 2]),  # the upper half of an id is folded into the lower one
        ((3, 9), tuple(range(1, 12)) + (17,), [1, 17, *range(2, 12)]),
        ((3, 9), tuple(range(1, 13)) + (17,), [*range(1, 13), 17]),  # the thirteenth doubles the buckets
    ],
)
def test_without_racks_the_brokers_come_in_the_order_of_the_releases_tool(release, brokers, leaders):
    registered = {*brokers, 1, 2, 5, 17}
    topics = {"t": {number: ((1,), 1, 0, (1,)) for number in range(len(brokers))}}
    context = ZnodeHistory(release=release).start(*registered, topics=topics).context
    placed = placed_by_kafka(context, ["t"], brokers)
    assert [replicas[0] for replicas in placed.values()] == leaders


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.permutations(list(RACKS)).flatmap(lambda order: st.integers(1, 4).map(lambda n: order[:n])), min_size=1
    ),
    st.sampled_from([Goal(rack_aware=True), Goal(drain=frozenset({2})), Goal(rack_aware=True, replication_factor=2)]),
)
def test_a_movement_meets_its_goal_and_keeps_what_may_stay(assignments, goal):
    context = cluster_of(RACKS, {"t": dict(enumerate(assignments))})
    try:
        movement = least_movement(context, (), (), goal)
    except UnplaceableError:
        assert goal.drain
        assert max(map(len, assignments)) == len(RACKS)
        return
    before = current_assignment(context)
    for tp, was in before.items():
        to = movement.targets.get(tp, was)
        assert len(set(to)) == len(to) == (goal.replication_factor or len(was))
        assert not goal.drain.intersection(to)
        if goal.rack_aware:
            assert max(Counter(RACKS[broker] for broker in to).values()) <= -(-len(to) // 2)
        elif goal.drain:
            assert len(set(was) - set(to)) == len(goal.drain.intersection(was))
