"""Why a preferred replica does not lead and when it will, and whether a broker may go for good."""

from __future__ import annotations

import pytest

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.restore.stored_context import new_context
from questions.explain.broker import explain_broker
from questions.explain.explanation import Certainty, Statement
from questions.explain.partition import explain_partition
from questions.explain.subject import Subject
from questions.gathering import Gathering
from questions.picture import Origin, Picture
from tests.dashboards.page_cases import Story
from tests.questions.cluster import broker, brokers, controller, look, state, topic
from tests.recorded_moment import MOMENT_MS, history

_AFTER_A_RESTART_MS = MOMENT_MS - 75_000  # broker 2 is back and in sync


def preferred(picture: Picture, name: str = "a", number: int = 0) -> Statement | None:
    explained = explain_partition(picture, TopicPartition(name, PartitionId(number)))
    return next((said for said in explained.statements if said.about == "preferred"), None)


def decommission(picture: Picture, number: int) -> list[str]:
    said = explain_broker(picture, BrokerId(number), decommission=True).statements
    begin = next((at for at, each in enumerate(said) if each.about == "decommission"), len(said))
    return [each.says for each in said[begin:]]


def led_by(leader: int, isr: list[int], *, registered: tuple[int, ...] = (1, 2, 3)) -> Picture:
    """Return a look at a partition whose preferred replica is on broker 1."""
    return look({**brokers(*registered), **controller(3), **topic("a", [1, 2]), **state("a", 0, leader, isr)})


def test_the_past_tells_why_another_replica_leads_and_the_settings_when_that_ends(recorded_files):
    records = [each for each in history(recorded_files, "shop").records() if each.observed_ms <= _AFTER_A_RESTART_MS]
    name = TopicPartition("t1", PartitionId(4))
    gathering = Gathering(new_context("shop"), Subject(str(name), partition=name).keeps)
    gathering.take(records)
    said = preferred(gathering.picture(), "t1", 4)
    assert said is not None
    assert said.says == (
        "broker 2 is not the leader, because it was away from 18:43:11Z to 18:43:12Z. Controller 4 moves it back "
        "within 300 s, if more than 10 % of the partitions that prefer broker 2 have another leader"
    )
    assert said.certainty is Certainty.ASSUMED


@pytest.mark.parametrize(
    ("leader", "isr", "registered", "wanted"),
    [
        (1, [1, 2], (1, 2, 3), None),
        (2, [2], (2, 3), "because it is down. It can lead again once broker 1 is back and in sync"),
        (2, [2], (1, 2, 3), "because it is not in sync and has been registered since"),
        (2, [2, 1], (1, 2, 3), "within 300 s, if more than 10 % of the partitions that prefer broker 1 have"),
    ],
)
def test_one_look_tells_when_the_preferred_replica_leads_again(leader, isr, registered, wanted):
    said = preferred(led_by(leader, isr, registered=registered))
    assert said is None if wanted is None else said is not None and wanted in said.says


def test_without_the_automatic_rebalance_nothing_moves_by_itself():
    picture = led_by(2, [2, 1])
    picture.header.configure({"auto.leader.rebalance.enable": False}, None)
    said = preferred(picture)
    assert said is not None
    assert "until a preferred election is asked for, because auto.leader.rebalance.enable is false" in said.says


def test_a_broker_with_replicas_must_be_drained_first():
    said = decommission(led_by(1, [1, 2]), 2)
    assert said[0] == "not yet, because 1 replica must move to other brokers first"
    assert said[1].startswith("kontrast place --from-cluster --drain 2 ")
    assert said[2].startswith("kafka-reassign-partitions.sh ")
    assert "drained.json" in said[2]
    assert said[-1] == "stop broker 2 once it hosts no replica"


@pytest.mark.parametrize(
    ("picture", "number", "wanted"),
    [
        (led_by(1, [1, 2]), 3, "possible, because it hosts no replica. Stop it, and another broker becomes controller"),
        (led_by(2, [1], registered=(2, 3)), 1, "start broker 1 first"),
        (led_by(1, [1, 2], registered=(1, 2)), 2, "only 1 other broker is registered, but a partition has 2 replicas"),
        (look({**brokers(1, 2, 3), **topic("a", [1, 2])}), 2, "first a controller must be active"),
    ],
)
def test_no_command_is_given_whose_precondition_is_not_met(picture, number, wanted):
    said = decommission(picture, number)
    assert any(wanted in each for each in said), said
    assert not any("kafka-reassign" in each for each in said)


def test_a_broker_that_is_gone_is_done():
    picture = look({**broker(1), **broker(2), **controller(1), **topic("a", [1]), **state("a", 0, 1, [1, 5])})
    assert decommission(picture, 5) == ["done: it hosts no replica"]


def test_a_broker_that_is_away_is_drained_only_on_request():
    story = Story("away").begin().crash(1).to_the_present()
    picture = Picture(origin=Origin.HISTORY, context=story.context, as_of_ms=story.now_ms)
    said = explain_broker(picture, BrokerId(1)).statements
    assert said[0] == Statement("next step", "start broker 1 (restart it if it hangs)")
    assert not any("drain" in each.says or each.about == "decommission" for each in said)
    asked = explain_broker(picture, BrokerId(1), decommission=True).statements
    assert asked[0] == said[0]
    assert "decommission" in [each.about for each in asked]
