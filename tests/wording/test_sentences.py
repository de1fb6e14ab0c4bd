"""Words that rows, pages and commands share."""

import pytest

from wording.sentences import all_of, bracketed, counted, in_brackets, in_order, joined, listed, one_of, verb


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 partitions"), (1, "1 partition"), (2, "2 partitions"), (12_000, "12,000 partitions")]
)
def test_a_count_has_its_noun(count, words):
    assert counted(count, "partition") == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "no partition is"), (1, "the only partition is"), (6, "all 6 partitions are")]
)
def test_a_whole_agrees_with_its_count(count, words):
    assert all_of(count, "partition", "is") == words


@pytest.mark.parametrize(
    ("noun", "words"), [("entry", "2 entries"), ("loss", "2 losses"), ("switch", "2 switches"), ("day", "2 days")]
)
def test_a_noun_has_its_regular_plural(noun, words):
    assert counted(2, noun) == words


@pytest.mark.parametrize(
    ("one", "many"),
    [("is", "are"), ("has gone", "have gone"), ("waits for it", "wait for it"), ("reaches", "reach"), ("tries", "try")],
)
def test_a_verb_agrees_with_the_count(one, many):
    assert (verb(1, one), verb(0, one), verb(2, one)) == (one, many, many)
    assert counted(1, "partition", one) == f"1 partition {one}"


def test_brokers_are_listed_in_a_sentence():
    few = [([], "no broker is"), ([3], "broker 3 is"), ([3, 1], "brokers 1 and 3 are")]
    few += [([3, 1, 2], "brokers 1, 2 and 3 are")]
    many = [(range(10), "brokers 0, 1, 2, 3, 4, 5, 6, 7, 8 and 9 are"), (range(1200), "1,200 brokers (0, 1, 2, …) are")]
    for brokers, words in few + many:
        assert listed(brokers, "is") == words
        assert listed(brokers) == words.rpartition(" ")[0]


def test_brokers_are_a_choice():
    few = [([], "no broker"), ([2], "broker 2"), ([3, 2], "broker 2 or 3"), ([3, 1, 2], "broker 1, 2 or 3")]
    for brokers, words in [*few, (range(300), "one of 300 brokers (0, 1, 2, …)")]:
        assert one_of(brokers) == words


def test_names_are_joined_and_the_rest_is_counted():
    many = ([f"t{each}" for each in range(300)], "t0, t1, t2 and 297 more")
    for names, words in [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), many]:
        assert joined(names) == words


@pytest.mark.parametrize(
    ("examples", "count", "words"),
    [((), 0, ""), ((), 3, ""), (("a-0",), 1, " (a-0)"), (("a-0", "a-1", "a-2"), 300, " (a-0, a-1, …)")],
)
def test_examples_are_two_of_all(examples, count, words):
    assert in_brackets(examples, count) == words


def test_zookeepers_lists_keep_their_order():
    assert (bracketed(()), bracketed((2, 1))) == ("[]", "[2,1]")
    assert (in_order(()), in_order((3, 1, 2))) == ("none", "3, 1 and 2")
