"""Verdict on a restart of a broker now, with each reason against it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from questions.known_brokers import UnknownBrokersError
from questions.picture import Picture, Present
from questions.whatif.may_restart import Obstacle, Restartable, TopicCount, Verdict, restartable
from tests.questions.cluster import brokers, controller, look, settings, state, topic

WELL = {
    **brokers(1, 2, 3),
    **controller(1),
    **topic("orders", [1, 2, 3], [2, 3, 1]),
    **settings("orders", min_insync_replicas="2"),
}


def asked(broker: int, *changes: dict[str, object], **accepted: tuple[object, ...]) -> Restartable:
    znodes = dict(WELL)
    for change in changes:
        znodes |= change
    return restartable(look(znodes), broker, **accepted)


def obstacles(answer: Restartable) -> list[Obstacle]:
    return [reason.obstacle for reason in answer.reasons]


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_healthy_cluster_spares_any_broker(broker):
    answer = asked(broker)
    assert (answer.verdict, answer.reasons, answer.doubts) == (Verdict.YES, (), ())


def test_partitions_without_another_replica_would_go_offline():
    answer = asked(2, topic("single", [2], [3]), topic("alone", [2], [2]))
    assert answer.verdict is Verdict.NO
    (reason,) = answer.reasons
    assert reason.obstacle is Obstacle.OFFLINE
    assert reason.sentence == "3 partitions would be offline until broker 2 is back"
    assert reason.topics == (TopicCount("alone", 2), TopicCount("single", 1))


def test_partitions_at_their_min_isr_would_refuse_acks_all():
    answer = asked(3, topic("pairs", [2, 3]), settings("pairs", min_insync_replicas="2"))
    assert obstacles(answer) == [Obstacle.REFUSES_ACKS_ALL]
    assert answer.reasons[0].topics == (TopicCount("pairs", 1),)


def test_accepted_topics_are_no_reason():
    scratch = topic("scratch-1", [2])
    assert asked(2, scratch).verdict is Verdict.NO
    assert asked(2, scratch, accepted_topics=("scratch-*",)).verdict is Verdict.YES
    assert asked(2, scratch, topic("ledger", [2]), accepted_topics=("scratch-*",)).reasons[0].topics == (
        TopicCount("ledger", 1),
    )


def test_another_broker_that_is_down_is_a_reason():
    answer = asked(2, topic("wide", [1, 2, 3, 4]), state("wide", 0, 1, [1, 2, 3]))
    assert obstacles(answer) == [Obstacle.BROKER_DOWN]
    assert answer.reasons[0].sentence.startswith("broker 4 is down")


def test_brokers_that_nobody_has_are_a_reason_until_they_are_accepted():
    created = {"/brokers/topics/bad": {"version": 1, "partitions": {"0": [8, 9]}}, "/admin/delete_topics/bad": None}
    moved = topic("wide", [1, 2, 7], adding_replicas={"0": [7]}, removing_replicas={}) | state("wide", 0, 1, [1, 2])
    answer = asked(2, created, moved)
    assert set(obstacles(answer)) == {Obstacle.BROKER_UNKNOWN, Obstacle.REASSIGNMENT, Obstacle.DELETION}
    assert answer.reasons[0].sentence.endswith("If it need not come, use --accept-absent 7")
    assert obstacles(asked(2, created, moved, accepted_absent=(7,)))[-1] is Obstacle.DELETION
    assert asked(2, created, moved, accepted_absent=(7, 8, 9)).verdict is Verdict.YES


def test_another_broker_that_catches_up_is_a_reason_and_the_broker_itself_is_none():
    lagging = (topic("wide", [1, 2, 3]), state("wide", 0, 1, [1, 2]))
    answer = asked(2, *lagging)
    assert obstacles(answer) == [Obstacle.CATCHING_UP]
    assert answer.reasons[0].sentence == "1 replica of broker 3 is not in sync yet"
    assert answer.reasons[0].topics == (TopicCount("wide", 1),)
    assert asked(3, *lagging).verdict is Verdict.YES


def test_a_broker_that_is_down_is_not_restarted():
    answer = asked(4, topic("wide", [1, 2, 3, 4]), state("wide", 0, 1, [1, 2, 3]))
    assert obstacles(answer) == [Obstacle.BROKER_DOWN]


def test_a_cluster_without_a_controller_waits():
    znodes = {path: content for path, content in WELL.items() if path != "/controller"}
    assert obstacles(restartable(look(znodes), 2)) == [Obstacle.NO_CONTROLLER]


def test_a_reassignment_and_a_deletion_under_way_are_reasons():
    moving = topic("moving", [1, 2], adding_replicas={"0": [2]}, removing_replicas={"0": []})
    deleted = {**topic("old", [1, 2]), "/admin/delete_topics/old": None}
    assert Obstacle.REASSIGNMENT in obstacles(asked(3, moving, state("moving", 0, 1, [1])))
    ending = asked(3, moving, state("moving", 0, 1, [1, 2]))  # in sync, but its entry still exists
    assert [reason.sentence for reason in ending.reasons] == ["the controller is still reassigning 1 partition"]
    assert Obstacle.DELETION in obstacles(asked(3, deleted))


def test_an_unclean_election_in_the_restart_is_a_reason():
    uncleanly = settings("loose", unclean_leader_election_enable="true")
    answer = asked(2, topic("loose", [2, 3]), state("loose", 0, 2, [2]), uncleanly)
    assert Obstacle.LOSES_RECORDS in obstacles(answer)


def test_an_old_picture_gives_no_answer():
    picture: Picture = look(WELL)
    later = Present(picture.as_of_ms + 3_600_000, 30_000)
    answer = restartable(replace(picture, present=later), 2)
    assert (answer.verdict, answer.reasons) == (Verdict.UNKNOWN, ())
    assert "last known 1 h ago" in answer.doubts[0]


def test_a_broker_that_the_cluster_does_not_have_is_named():
    with pytest.raises(UnknownBrokersError, match=r"no broker 7 in shop, but brokers 1, 2 and 3"):
        asked(7)
