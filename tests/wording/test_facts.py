"""The facts about partitions and lost brokers."""

import pytest

from wording.facts import Fact, Left, down, event_since, keep_up, replicas_in_words, with_keep_up, without_zxid


@pytest.mark.parametrize(
    ("fact", "one", "many"),
    [
        (Fact.OFFLINE, "1 partition is offline", "2 partitions are offline"),
        (Fact.WITHOUT_LEADER, "1 partition has no leader", "2 partitions have no leader"),
        (Fact.REJECTS_ACKS_ALL, "1 partition rejects acks=all", "2 partitions reject acks=all"),
        (
            Fact.ONE_LOSS_FROM_REJECTING,
            "1 partition is one loss away from rejecting acks=all",
            "2 partitions are one loss away from rejecting acks=all",
        ),
        (Fact.UNDER_REPLICATED, "1 partition is under-replicated", "2 partitions are under-replicated"),
    ],
)
def test_a_fact_agrees_with_its_count(fact, one, many):
    assert (fact.of(1), fact.of(2)) == (one, many)
    assert fact.of(0).startswith("0 partitions ")


def test_a_fact_can_follow_would_or_stand_beside_its_noun():
    assert f"it would {Fact.REJECTS_ACKS_ALL.infinitive}" == "it would reject acks=all"
    assert Fact.OFFLINE.counted(2) == "2 partitions offline"


def test_a_lost_broker_has_one_wording():
    assert down((3,)) == "broker 3 is down"
    assert down((5, 3)) == "brokers 3 and 5 are down"
    assert event_since(down((3,)), "for 17 min") == "broker 3 has been down for 17 min"
    assert event_since(down((9, 1)), "for 17 min") == "brokers 1 and 9 have been down for 17 min"
    assert event_since("broker 3 crashed", "for 17 min") == "broker 3 crashed, for 17 min"
    assert Left.SHUT_DOWN.value == "shut down cleanly"


def test_brokers_that_must_stay_up_have_a_reason():
    assert keep_up((1,), 1) == "Keep broker 1 up. It has the only in-sync replica of 1 partition"
    assert keep_up((1, 2), 3) == "Keep brokers 1 and 2 up. They have the only in-sync replica of 3 partitions"


def test_a_cause_has_that_sentence_once_for_every_face():
    for brokers, count in (((1,), 1), ((1, 2), 3), (tuple(range(20)), 1_234)):
        sentence = keep_up(brokers, count)
        cause = "broker 5 crashed at zxid 0x1e5: 2 partitions offline"
        assert with_keep_up(f"{cause}. {sentence}. More", "Keep broker 9 up") == f"{cause}. Keep broker 9 up. More"
        assert with_keep_up(f"{cause}. {sentence}", "") == cause
    assert with_keep_up("broker 5 crashed", "Keep broker 9 up") == "broker 5 crashed"


def test_replicas_are_told_by_their_numbers_and_a_headline_has_no_zxid():
    assert replicas_in_words((3, 2), (1, 2, 3)) == "in sync: 2 and 3, out of sync: 1"
    assert replicas_in_words((1,), (1,)) == "in sync: 1"
    assert replicas_in_words((3, 1)) == "in sync: 1 and 3"
    assert replicas_in_words((), (2,)) == "in sync: none, out of sync: 2"
    assert without_zxid("broker 1 crashed at zxid 0x340, and broker 2 left") == "broker 1 crashed, and broker 2 left"
