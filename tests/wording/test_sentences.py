"""Words that rows, pages and commands share."""

import pytest

from wording.sentences import bracketed, counted, either, listed, named


@pytest.mark.parametrize(("count", "words"), [(0, "0 partitions"), (1, "1 partition"), (2, "2 partitions")])
def test_a_count_has_its_noun(count, words):
    assert counted(count, "partition") == words


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        ([], "no broker"),
        ([3], "broker 3"),
        ([3, 1], "brokers 1 and 3"),
        ([3, 1, 2], "brokers 1, 2 and 3"),
        (range(11), "11 brokers (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)"),
    ],
)
def test_brokers_are_listed_in_a_sentence(brokers, words):
    assert listed(brokers) == words


@pytest.mark.parametrize(("brokers", "words"), [([2], "2"), ([3, 2], "2 or 3"), ([3, 1, 2], "1, 2 or 3")])
def test_brokers_are_a_choice(brokers, words):
    assert either(brokers) == words


def test_brokers_are_a_subject_in_order():
    assert (named([3]), named([3, 2])) == ("broker 3", "brokers 2,3")


def test_zookeepers_lists_keep_their_order():
    assert (bracketed(()), bracketed((2, 1))) == ("[]", "[2,1]")
