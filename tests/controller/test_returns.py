"""The order in which absent brokers should return."""

from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from controller.contract.ids import BrokerId
from controller.view.returns import Waiting, is_restored, order_of_return


def waiting(
    brokers: Iterable[int], count: int, *, offline: bool = True, lacking: int = 1, internal: int = 0
) -> Waiting:
    return Waiting(frozenset(map(BrokerId, brokers)), lacking, count, offline, internal)


def order(groups: list[Waiting], away: set[int]) -> list[tuple[int, int]]:
    return [(each.broker, each.partitions) for each in order_of_return(groups, {BrokerId(one) for one in away})]


def test_offline_partitions_weigh_more_than_those_that_refuse_acks_all():
    groups = [waiting({3}, 5), waiting({4}, 10, offline=False)]
    assert order(groups, {3, 4}) == [(3, 5), (4, 10)]


def test_between_equals_refused_writes_decide_and_then_internal_topics():
    assert order([waiting({3}, 5), waiting({4}, 5), waiting({4}, 1, offline=False)], {3, 4}) == [(4, 6), (3, 5)]
    assert order([waiting({3}, 5), waiting({4}, 5, internal=1)], {3, 4}) == [(4, 5), (3, 5)]


def test_a_group_that_another_broker_has_brought_back_counts_no_more():
    groups = [waiting({1, 2}, 4), waiting({1}, 1), waiting({2}, 2), waiting({3}, 3)]
    assert order(groups, {1, 2, 3}) == [(2, 6), (3, 3), (1, 1)]


def test_partitions_that_lack_two_brokers_return_with_the_second():
    assert order([waiting({3, 4}, 6, offline=False, lacking=2)], {3, 4}) == [(3, 0), (4, 6)]


@pytest.mark.parametrize(
    ("lacking", "returned", "restored"),
    [(1, {3}, True), (1, {4}, True), (2, {3}, False), (2, {3, 4}, True), (1, {5}, False), (0, {3, 4}, False)],
)
def test_a_partition_is_restored_once_enough_of_its_brokers_returned(lacking, returned, restored):
    assert is_restored([BrokerId(3), BrokerId(4)], lacking, {BrokerId(one) for one in returned}) is restored


def test_a_broker_whose_return_helps_no_client_is_not_named():
    assert order([waiting({3}, 1), waiting({9}, 7)], {3, 4}) == [(3, 1)]
    assert order([waiting({3, 9}, 1, lacking=2)], {3, 4}) == [(3, 0)]


GROUPS = st.lists(
    st.builds(
        waiting,
        st.sets(st.integers(1, 4), min_size=1),
        st.integers(1, 9),
        offline=st.booleans(),
        lacking=st.integers(1, 2),
    ),
    max_size=5,
)


@given(GROUPS)
def test_the_order_restores_everything_and_depends_on_no_order_of_groups(groups: list[Waiting]):
    found = order(groups, {1, 2, 3, 4})
    restorable = [group for group in groups if group.lacking <= len(group.brokers)]
    assert sum(restored for _, restored in found) == sum(group.partitions for group in restorable)
    assert all(order(list(each), {1, 2, 3, 4}) == found for each in list(permutations(groups))[:6])
