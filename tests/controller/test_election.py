"""The elections, in the cases that a naive replica gets wrong."""

from controller.rules.election import (
    Elected,
    elect_for_controlled_shutdown,
    elect_for_reassignment,
    elect_offline,
    elect_preferred,
)


def test_trap_1_the_leader_is_the_first_live_member_by_assignment_not_by_isr():
    assert elect_offline([3, 1, 2], isr=[2, 1, 3], online={1, 2}, allow_unclean=False) == Elected(1, (2, 1))


def test_trap_1_only_offline_and_controlled_shutdown_elections_shrink_the_isr():
    assert elect_for_reassignment([1, 2], isr=[1, 2, 9], online={1, 2}) == Elected(1, (1, 2, 9))
    assert elect_preferred([1, 2], isr=[2, 1, 9], online={1}) == Elected(1, (2, 1, 9))
    assert elect_for_controlled_shutdown([1, 2, 3], isr=[1, 2, 3], registered={1, 2, 3}, shutting_down={1}) == Elected(
        2, (2, 3)
    )


def test_a_clean_election_without_a_live_member_elects_nobody():
    assert elect_offline([2, 4], isr=[2], online={4}, allow_unclean=False) is None


def test_an_unclean_election_takes_the_first_live_replica_and_says_so():
    assert elect_offline([2, 4], isr=[2], online={4}, allow_unclean=True) == Elected(4, (4,), unclean=True)


def test_an_unclean_election_prefers_a_live_member():
    assert elect_offline([2, 4], isr=[4], online={2, 4}, allow_unclean=True) == Elected(4, (4,))


def test_the_preferred_replica_must_be_live_and_in_sync():
    assert elect_preferred([1, 2], isr=[2], online={1, 2}) is None
    assert elect_preferred([1, 2], isr=[1, 2], online={2}) is None
    assert elect_preferred([], isr=[], online={2}) is None


def test_a_reassignment_without_a_live_member_of_the_target_elects_nobody():
    assert elect_for_reassignment([5], isr=[], online={5}) is None


def test_trap_23_a_controlled_shutdown_drops_every_broker_that_shuts_down():
    elected = elect_for_controlled_shutdown([1, 2, 3], isr=[1, 2, 3], registered={1, 2, 3}, shutting_down={1, 2})
    assert elected == Elected(3, (3,))
    everybody = elect_for_controlled_shutdown([1, 2], isr=[1, 2], registered={1, 2}, shutting_down={1, 2})
    assert everybody is None
