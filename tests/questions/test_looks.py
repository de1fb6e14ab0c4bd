"""One look at ZooKeeper. Its findings count at once, with the age that the znodes prove."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from ingest.complete_read import CompleteRead
from ingest.observed.observations import Value
from questions.check.check import check
from questions.check.state import State, in_counts
from questions.doubts import hidden_by
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Certainty, Explanation
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.picture import Picture, Present
from tests.questions.cluster import MINUTE_MS, broker, brokers, controller, look, settings, state, topic
from tests.rows import Rows

STATE = "/brokers/topics/t/partitions/0/state"
NOBODY_SERVES = ("no server serves", "Start the servers")
WELL = {**brokers(1, 2, 3), **controller(1), **topic("t", [1, 2], [2, 3])}


def alerts(picture: Picture) -> dict[str, int | None]:
    """Return the age of the look's alerts in minutes, None if unknown."""
    return {
        finding.alert: None if finding.since.ms is None else round((picture.as_of_ms - finding.since.ms) / MINUTE_MS)
        for finding in check(picture).findings
    }


def said(explanation: Explanation, about: str) -> list[tuple[str, Certainty]]:
    return [(statement.says, statement.certainty) for statement in explanation.statements if statement.about == about]


def test_a_cluster_that_is_well_has_no_finding():
    health = check(look(WELL))
    assert health.is_well
    assert (health.findings, health.doubts) == ((), ())
    assert (health.counts.brokers, health.counts.topics, health.counts.partitions) == (3, 1, 2)


def test_a_cluster_without_topics_is_not_called_online():
    assert in_counts(check(look({**brokers(1, 2, 3), **controller(1)})).counts) == "The cluster has no topic."


@pytest.mark.parametrize(("serves", "said"), [(True, ("Kontrast has lost ZooKeeper", "")), (False, NOBODY_SERVES)])
def test_a_lost_session_has_its_cause_first(serves, said):
    rows = Rows()
    servers = rows.alert("q", alert="ZooKeeperNoQuorum", cause="no server serves: s", action="Start the servers. Then")
    blind = hidden_by([rows.alert("s", alert="ReplicaDisconnected"), *([] if serves else [servers])])
    assert blind is not None
    assert (blind.reason, blind.step) == said


def test_a_cluster_with_leaderless_partitions_is_not_well_even_without_an_alert():
    found = look({**WELL, **state("t", 0, -1, [9])})
    health = check(msgspec.structs.replace(found, alerts=()))
    assert (health.is_well, health.counts.leaderless) == (False, 1)
    assert health.state.event == "1 partition of t is offline"


def test_a_partition_without_a_leader_is_offline_since_the_controller_wrote_it():
    picture = look({**WELL, **topic("t", [9, 1], [2, 3]), **state("t", 0, -1, [9])}, {STATE: 12 * MINUTE_MS})
    assert alerts(picture)["PartitionsOffline"] == 12
    explanation = explain_partition(picture, TopicPartition("t", 0))
    assert explanation.since is not None
    assert not explanation.since.exact
    assert "stays offline until broker 9 returns" in explanation.headline
    assert said(explanation, "comes back") == [
        ("when broker 9 returns, with every acknowledged record", Certainty.EXPECTED)
    ]


def test_what_a_broker_takes_with_it_has_no_date():
    lost = {**brokers(2, 3), **controller(2), **topic("t", [1, 2], [2, 3])}
    picture = look(lost, {STATE: 1_000 * MINUTE_MS})
    assert alerts(picture) == {"ElectionDue": None, "BrokerAbsent": None}
    explanation = explain_partition(picture, TopicPartition("t", 0))
    assert explanation.since is not None
    assert explanation.since.ms is None
    assert said(explanation, "comes back") == [("as soon as broker 2 is elected", Certainty.EXPECTED)]


def test_no_controller_is_found_at_the_first_look():
    picture = look({**brokers(1, 2, 3), "/controller_epoch": 7, **topic("t", [1, 2])})
    assert alerts(picture) == {"NoController": None}
    assert not explain_controller(picture).is_well


def test_a_replica_that_has_just_left_the_isr_is_given_the_time_it_needs():
    lagging = {**WELL, **state("t", 0, 1, [1])}
    assert alerts(look(lagging, {STATE: 1_000})) == {}
    assert "PartitionsUnderReplicated" in alerts(look(lagging))


def test_the_settings_of_a_topic_are_seen_and_those_of_brokers_files_assumed():
    tp = TopicPartition("t", 0)
    by_default = said(explain_partition(look(WELL), tp), "acks=all")
    assert by_default == [("accepted: 2 in sync, min.insync.replicas needs 1", Certainty.ASSUMED)]
    needy = look({**WELL, **settings("t", min_insync_replicas="2"), **state("t", 0, 1, [1])})
    assert said(explain_partition(needy, tp), "acks=all") == [
        ("rejected: 1 in sync, min.insync.replicas needs 2, and broker 2 must get in sync", Certainty.SEEN)
    ]
    assert explain_topic(needy, "t").headline == "1 of 2 partitions rejects acks=all"


def test_an_unclean_election_names_the_winner_the_loss_and_whether_it_is_allowed():
    offline = {**WELL, **state("t", 0, -1, [9])}
    tp = TopicPartition("t", 0)
    assert said(explain_partition(look(offline), tp), "unclean election") == [
        (
            "would make broker 1 leader and lose the records that only broker 9 had (not allowed, "
            "unclean.leader.election.enable=false)",
            Certainty.ASSUMED,
        )
    ]


@pytest.mark.parametrize(
    ("znodes", "expected"),
    [
        ({STATE: None}, "Do not delete /controller yet: the next controller fails at"),
        ({**topic("t", [8, 9]), STATE: None}, "when broker 8 or 9 registers. Then controller 1 creates it"),
        (
            state("t", 0, -1, [2]),
            "within seconds, if broker 2 has just returned. Otherwise when the next controller elects broker 2",
        ),
        (state("t", 0, 9, [9, 2]), "as soon as broker 2 is elected"),
        (
            {**topic("t", [8, 9, 1]), **state("t", 0, -1, [8, 9])},
            "when broker 8 or 9 returns, with every acknowledged record",
        ),
        (
            state("t", 0, -1, [8, 9]),
            "when the topic's znode assigns broker 8 or 9 again and a controller fails over, with every",
        ),
        (state("t", 0, -1, []), "only by an unclean election, because the ISR is empty"),
    ],
)
def test_each_kind_of_trouble_has_its_own_way_out(znodes, expected):
    found = {path: content for path, content in {**WELL, **znodes}.items() if content is not None}
    explanation = explain_partition(look(found), TopicPartition("t", 0))
    ways = said(explanation, "comes back") or said(explanation, "do")  # a person's step is no prediction
    assert [says.startswith(expected) for says, _ in ways] == [True]
    predicts = bool(said(explanation, "comes back"))
    assert ways[0][1] is (Certainty.EXPECTED if predicts else Certainty.SEEN)


def test_the_next_leader_is_the_first_replica_that_is_live_and_in_sync():
    well = explain_partition(look(WELL), TopicPartition("t", 0))
    assert said(well, "next leader") == [("broker 2, should broker 1 fail", Certainty.EXPECTED)]
    alone = explain_partition(look({**WELL, **state("t", 0, 1, [1])}), TopicPartition("t", 0))
    assert said(alone, "next leader") == [("none. Without broker 1 it goes offline", Certainty.EXPECTED)]


def test_the_last_write_of_each_znode_is_what_is_left_of_the_past():
    explanation = explain_partition(look(WELL, {STATE: 5 * MINUTE_MS}), TopicPartition("t", 0))
    assert [cause.event for cause in explanation.causes][-1] == f"last write of {STATE}"
    assert {cause.certainty for cause in explanation.causes} == {Certainty.SEEN}
    assert len(explanation.causes) == 5  # the topic, its state, two brokers, the controller


def test_a_broker_is_explained_by_what_it_has_and_what_would_go_with_it():
    picture = look({**WELL, **broker(1, "a"), **state("t", 0, 1, [1])})
    explanation = explain_broker(picture, 1)
    assert explanation.is_well
    assert said(explanation, "leads")[0][0] == "1 of 1 partition, preferred leader of 1"
    assert said(explanation, "alone")[0][0].startswith("1 partition is one loss away from being offline")
    assert said(explanation, "controller")[0][0] == "named in /controller, epoch 7"


def test_a_topic_that_is_being_deleted_says_which_brokers_it_waits_for():
    deleting = {**brokers(2, 3), **controller(2), **topic("t", [1, 2]), "/admin/delete_topics/t": {}}
    explanation = explain_topic(look(deleting), "t")
    assert explanation.headline == "being deleted"
    assert said(explanation, "deletion") == [("waits until broker 1 returns", Certainty.EXPECTED)]


def test_a_reassignment_under_way_is_named_with_its_brokers():
    moving = topic("t", [3, 1, 2], adding_replicas={"0": [3]}, removing_replicas={"0": [1]})
    picture = look({**brokers(1, 2, 3), **controller(1), **moving, **state("t", 0, 1, [1, 2])})
    explanation = explain_partition(picture, TopicPartition("t", 0))
    (says, _), *_ = [item for item in said(explanation, "next") if "reassignment" in item[0]]
    assert says == "a reassignment adds broker 3, and removes broker 1 once the added replicas are in sync"
    assert check(picture).counts.reassigning == 1


def test_what_may_not_be_read_or_is_old_is_a_doubt():
    picture = look(WELL)
    old = check(replace(picture, present=Present(picture.as_of_ms + 31_000, 30_000, "kontrast stream")))
    assert (old.is_well, old.state.state) == (False, State.UNKNOWN)
    assert old.doubts == (
        "the state is not known, last known 31 s ago: `kontrast stream` is silent (see `kontrast status`)",
    )
    assert check(replace(picture, present=Present(picture.as_of_ms + 29_000, 30_000))).is_well
    assert check(replace(picture, forbidden=frozenset({"/config"}))).state.state is State.UNKNOWN


def test_in_a_read_the_states_of_a_topic_stand_together_whenever_they_were_written() -> None:
    """Causes come first, in the order of their writes.

    States are stored by topic, because their order has no meaning.
    """
    written = {
        "/brokers/topics/a": 20,
        "/brokers/topics/state": 10,
        "/brokers/ids/1": 30,
        **{f"/brokers/topics/{name}/partitions/{at}/state": 90 - at for at in (0, 1) for name in ("a", "state")},
    }
    values = {path: Value(b"", zxid, zxid, 0, 0) for path, zxid in sorted(written.items())}
    _, *nodes, _ = CompleteRead(values).records("shop")
    states = [f"/brokers/topics/{name}/partitions/{at}/state" for name in ("a", "state") for at in (0, 1)]
    causes = ["/brokers/ids/1", "/brokers/topics/state", "/brokers/topics/a"]
    assert [node.path for node in nodes] == [*causes, *states]
