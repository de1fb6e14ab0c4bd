"""The elections, in the cases that a naive replica gets wrong."""

from controller.rules.election import (
    Elected,
    elect_for_reassignment,
    elect_offline,
    elect_preferred,
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
