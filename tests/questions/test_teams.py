"""The table `[topics]`: teams and ranks of names by patterns, and the order of topics in sentences."""

from __future__ import annotations

import pytest

from controller.contract.ids import INTERNAL_TOPICS, BrokerId
from controller.restore.stored_context import new_context, reconfigured
from controller.rules.topic_ranks import place_in_sentence
from questions.clients.teams import Team, named, read_teams
from questions.picture import Picture
from questions.whatif.may_restart import restartable
from questions.whatif.question import play_losses
from questions.whatif.rolling import rank_losses, rolling_order
from questions.whatif.scenario import StepKind
from tests.controller.znode_history import ZnodeHistory
from tests.questions.cluster import brokers, controller, look, topic

TABLE = {
    "payments.*": {"team": "payments", "contact": "#pay", "rank": 1},
    "audit*": {"team": "security", "rank": 2},
    "*": {"rank": 150},
}


def test_the_first_pattern_that_matches_decides():
    teams = read_teams(TABLE)
    assert teams.team_of("payments.orders") == Team("payments", "#pay")
    assert teams.team_of("payments-orders") is None  # a dot in a pattern is a dot
    assert read_teams({"au*": {"team": "all"}, **TABLE}).team_of("audit") == Team("all")


def test_teams_come_by_rank_and_names_of_no_team_last():
    teams = read_teams({"b*": {"team": "low", "rank": 9}, "a*": {"team": "high", "rank": 1}})
    found = teams.teams_of(["x", "b1", "a1", "b2"])
    assert list(found.items()) == [(Team("high"), ["a1"]), (Team("low"), ["b1", "b2"]), (None, ["x"])]


def test_the_words_of_teams_name_their_contacts():
    assert named([Team("payments", "#pay"), Team("audit"), None]) == "teams payments (#pay) and audit"
    assert named([Team("audit")]) == "team audit"
    assert named([None]) == ""


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"a": {"rank": -1}}, '"a": Expected `int` >= 0'),
        ({"a": {"rank": 1001}}, '"a": Expected `int` <= 1000'),
        ({"a": {"ranks": 1}}, "unknown field `ranks`"),
        ({"a": "payments"}, "Expected `object`"),
        ({"a": {"contact": "#pay"}}, "contact needs team"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_pattern(table, reason):
    with pytest.raises(ValueError, match=reason):
        read_teams(table)


def test_a_rank_precedes_the_settings_and_internal_topics_lead_within_a_rank():
    ranks = read_teams(TABLE).ranks
    internal = min(INTERNAL_TOPICS)
    names = ["tmp", internal, "audit", "payments.a"]
    assert sorted(names, key=lambda name: place_in_sentence(name, 1, 3, ranks)) == [
        "payments.a",
        "audit",
        internal,
        "tmp",
    ]
    assert place_in_sentence("a", 2, 3, ()) < place_in_sentence("b", 1, 3, ()) < place_in_sentence("c", 1, 1, ())


def test_imagined_losses_name_the_topics_by_their_rank():
    names = ("alpha", "beta", "gamma")
    picture = look({**brokers(1, 2), **controller(1), **{k: v for name in names for k, v in topic(name, [2]).items()}})
    assert order_in_questions(picture) == [list(names)] * 4
    picture.header.topic_ranks = read_teams({"gamma": {"rank": 1}, "alpha": {"rank": 200}}).ranks
    assert order_in_questions(picture) == [["gamma", "beta", "alpha"]] * 4


def test_imagined_losses_count_each_topic_whole_before_and_after():
    picture = look({**brokers(1, 2), **controller(1), **topic("ledger", [3], [2], [1]), **topic("whole", [1, 2])})
    found = play_losses(picture, [BrokerId(2)], StepKind.CRASH, ())
    assert found.scenario is not None
    after = found.scenario.in_all
    (ledger,) = (each for each in found.topics if each.topic == "ledger")
    assert (ledger.offline_before, ledger.offline) == (1, 2) == (after.offline_before, after.offline)


def order_in_questions(picture: Picture) -> list[list[str]]:
    """Return the topics in the order of each question about a loss."""
    found = play_losses(picture, [BrokerId(2)], StepKind.CRASH, ())
    assert found.scenario is not None
    (reason,) = restartable(picture, BrokerId(2)).reasons
    return [
        [change.topic for change in found.scenario.in_all.changes],
        [each.topic for each in reason.topics],
        [topic for loss in rank_losses(picture.context) for topic in loss.topics],
        [topic for obstacle in rolling_order(picture.context).obstacles for topic in obstacle.topics],
    ]


def test_an_alert_names_the_topic_of_the_best_rank_first_also_after_a_change():
    topics = {name: {0: ([1], 1, 0, [1])} for name in ("alpha", "beta", "gamma")}
    history = ZnodeHistory().start(1, 2, topics=topics)
    history.broker_leaves(1)
    (examples,) = {group.examples for group in history.context.header.tally.issues.values()}
    assert examples[0] == "alpha-0"
    ranks = read_teams({"gamma": {"rank": 1}, "alpha": {"rank": 200}}).ranks
    changed = reconfigured(history.context, {}, None, (), ranks)
    assert {group.examples for group in changed.header.tally.issues.values()} == {("gamma-0", "beta-0", "alpha-0")}
    assert reconfigured(changed, {}, None, (), ranks) is changed
    assert new_context("c", topic_ranks=ranks).header.counting_rules.topic_ranks == ranks
