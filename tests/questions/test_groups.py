"""Consumer groups that an outage stops, from recorded answers of brokers."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from controller.contract.ids import TopicPartition
from questions.clients.groups import Clients, Effect, Troubled, impact_of, readers_by_topic
from questions.clients.known_groups import Described, Group, KnownGroups, Round, after_round, coordinator_partition
from questions.clients.teams import read_teams
from questions.explain.explanation import Explanation
from questions.explain.subject import explain_group, read_subject
from questions.explain.topic import explain_topic
from questions.picture import Picture
from questions.whatif.may_restart import restartable
from tests.questions.cluster import brokers, controller as controlled_by, look, topic

TEAMS = read_teams({"pay*": {"team": "payments", "contact": "#pay", "rank": 1}})
SIZES = {"__consumer_offsets": 50, "__transaction_state": 50}


def troubled(*offline: str, refusing: tuple[str, ...] = ()) -> Troubled:
    def names(texts: tuple[str, ...]) -> frozenset[tuple[str, int]]:
        return frozenset((text.rpartition("-")[0], int(text.rpartition("-")[2])) for text in texts)

    return Troubled(names(offline), names(refusing), SIZES)


WELL = Troubled(frozenset(), frozenset(), SIZES)


def known(*groups: Group, ids: tuple[str, ...] = ()) -> KnownGroups:
    return KnownGroups(1_000, {group.group: group for group in groups}, dict.fromkeys(ids, 1_000))


def read_ms(**reads: tuple[int, ...]) -> dict[str, dict[int, int]]:
    return {topic: dict.fromkeys(numbers, 1_000) for topic, numbers in reads.items()}


def reading(name: str, **reads: tuple[int, ...]) -> Group:
    return Group(name, "Stable", 1_000, has_members=True, read_ms=read_ms(**reads), subscribes=tuple(reads))


def coordinator(name: str, topic: str = "__consumer_offsets") -> str:
    return str(TopicPartition(topic, coordinator_partition(name, 50)))


@pytest.mark.parametrize(
    ("name", "partition"),
    # Java: Utils.abs("…".hashCode()) % 50. The last hashes to Integer.MIN_VALUE.
    [("", 0), ("a", 47), ("payments", 13), ("grün-😀", 41), ("polygenelubricants", 0)],
)
def test_the_coordinator_is_found_as_kafka_finds_it(name, partition):
    assert coordinator_partition(name, 50) == partition


def test_a_group_stops_for_the_offline_partitions_that_it_reads():
    found = impact_of(
        known(reading("pay-1", t=(0, 1)), Group("alone", "Empty", 1, read_ms=read_ms(t=(2,))), reading("u", v=(0,))),
        troubled("t-1"),
        TEAMS,
    )
    assert [(hit.name, hit.effects, hit.says) for hit in found.groups] == [
        ("pay-1", (Effect.CANNOT_READ,), "cannot read t-1")
    ]
    assert found.sentence == "stops 1 group of team payments (#pay) (pay-1)"


def test_a_subscription_is_to_every_partition_also_to_unassigned_ones():
    left_out = Group("g", "Stable", 1, has_members=True, read_ms=read_ms(t=(0,)), subscribes=("t",))
    assert [hit.says for hit in impact_of(known(left_out), troubled("t-1", "t-0"), TEAMS).groups] == [
        "cannot read t-0 and t-1"
    ]


def test_a_group_whose_coordinator_is_lost_can_neither_join_nor_commit():
    group = reading("other", t=(0,))
    (hit,) = impact_of(known(group), troubled(coordinator("other")), TEAMS).groups
    assert hit.says == "can neither join nor commit"
    (hit,) = impact_of(known(group), troubled("t-0", refusing=(coordinator("other"),)), TEAMS).groups
    assert hit.says == "cannot read t-0, and cannot commit"


def test_a_transactional_id_stops_with_its_coordinator():
    lost = troubled(coordinator("pay-tx", "__transaction_state"))
    found = impact_of(known(ids=("pay-tx", "z")), lost, TEAMS)
    assert [hit.name for hit in found.transactional_ids] == ["pay-tx"]
    assert found.sentence == "stops 1 transactional id of team payments (#pay) (pay-tx)"


def test_a_group_without_members_is_not_hit_unless_its_commits_moved():
    idle, alone = Group("idle", "Empty", 1), Group("alone", "Empty", 1, read_ms=read_ms(t=(0,)))
    found = impact_of(known(idle, alone), troubled("t-0", coordinator("idle")), TEAMS)
    assert [hit.name for hit in found.groups] == ["alone"]


def test_groups_come_by_the_rank_of_their_team_and_unknown_ones_not_at_all():
    hit = troubled("t-0")
    found = impact_of(known(reading("a", t=(0,)), reading("pay", t=(0,)), reading("b", t=(0,))), hit, TEAMS)
    assert found.sentence == "stops 1 group of team payments (#pay) (pay) and 2 groups (a and b)"
    assert found.as_of(61_000) == "as brokers answered 1 min ago"
    assert Clients().hit_by(hit) is None


def test_the_age_of_an_impact_is_that_of_the_oldest_description_in_it():
    old, young = (
        structs.replace(reading("old", t=(0,)), seen_ms=1),
        structs.replace(reading("young", u=(0,)), seen_ms=9),
    )
    every = structs.replace(known(old, young), asked_ms=9)
    assert impact_of(every, troubled("t-0", "u-0"), TEAMS).told_ms == 1
    assert impact_of(every, troubled("u-0"), TEAMS).told_ms == 9
    silent = after_round(every, Round(20, (1, 2)), WELL)
    assert (silent.asked_ms, silent.groups) == (9, every.groups)


def test_readers_of_a_topic_run_and_read_or_subscribe():
    idle = Group("idle", "Empty", 1, committed={"t": {0: 5}})
    waiting = Group("waits", "PreparingRebalance", 1, has_members=True, subscribes=("t",))
    found = readers_by_topic(known(waiting, idle, reading("g", t=(1,), other=(0,))), {"t", "unread"})
    assert found == {"t": ["g", "waits"], "unread": []}


def stable(**assigned: tuple[int, ...]) -> Described:
    return Described("Stable", True, assigned, tuple(assigned))


def asked(at_ms: int, groups: dict[str, Described], **more: object) -> Round:
    return Round(at_ms, (1, 2), {1: list(groups), 2: []}, groups, **more)


def test_a_group_of_a_lost_coordinator_stays_as_it_was_and_a_deleted_one_goes():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,)), "b": stable(t=(1,))}), WELL)
    lost = after_round(before, asked(2, {}), troubled(coordinator("a")))
    assert lost.groups == {"a": before.groups["a"]}
    assert lost.groups["a"].seen_ms == 1


def test_while_a_broker_is_silent_nothing_is_forgotten():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,))}), WELL)
    silent = after_round(before, Round(2, (1, 2), {2: []}), WELL)
    assert silent.groups == before.groups
    assert silent.gaps == ("broker 1 did not answer, so its groups are as they were before",)


def test_transactional_ids_stay_while_a_broker_does_not_list_them():
    told = asked(1, {}, transactional_ids={1: ["tx"], 2: []})
    before = after_round(KnownGroups(), told, WELL)
    loading = asked(2, {}, transactional_ids={2: []})  # broker 1 still reads its partitions of __transaction_state
    assert after_round(before, loading, WELL).transactional_ids == {"tx": 1}
    assert after_round(before, asked(2, {}, transactional_ids={1: [], 2: []}), WELL).transactional_ids == {}


def test_a_rebalancing_group_keeps_its_last_assignment_because_brokers_tell_none():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,))}), WELL)
    after = after_round(before, asked(2, {"a": Described("PreparingRebalance", True)}), WELL)
    assert (after.groups["a"].state, after.groups["a"].reads) == ("PreparingRebalance", {"t": (0,)})


def test_without_members_partitions_are_read_for_a_while_after_a_commit():
    empty, minute_ms = {"a": Described("Empty")}, 60_000
    first = after_round(KnownGroups(), asked(1, empty, committed={"a": {"t": {0: 5, 1: 7}}}), WELL)
    assert not first.groups["a"].is_running
    moved = after_round(first, asked(2, empty, committed={"a": {"t": {0: 6, 1: 7}}}), WELL)
    assert moved.groups["a"].reads == {"t": (0,)}
    later = after_round(moved, asked(minute_ms, empty), WELL)  # this round did not ask for its offsets
    assert later.groups["a"].reads == {"t": (0,)}
    rests = asked(15 * minute_ms, empty, committed={"a": {"t": {0: 6, 1: 7}}})
    assert after_round(later, rests, WELL).groups["a"].is_running
    rests.asked_ms += 3
    assert not after_round(later, rests, WELL).groups["a"].is_running


@pytest.mark.parametrize("stuck", ["t-0", coordinator("a")])
def test_an_outage_that_ends_the_commits_of_a_group_leaves_it_running(stuck):
    empty = {"a": Described("Empty")}
    reads = KnownGroups(1, {"a": Group("a", "Empty", 1, read_ms={"t": {0: 1}}, committed={"t": {0: 6}})})
    found = asked(10**9, empty, committed={"a": {"t": {0: 6}}})
    assert after_round(reads, found, troubled(stuck)).groups["a"].reads == {"t": (0,)}
    assert not after_round(reads, found, WELL).groups["a"].is_running


def test_members_that_end_with_an_outage_leave_the_group_running():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,))}), WELL)
    found = asked(10**9, {"a": Described("Empty")}, committed={"a": {"t": {0: 6}}})
    assert after_round(before, found, troubled("t-0")).groups["a"].reads == {"t": (0,)}


def test_denied_and_untold_facts_are_sentences_that_name_the_operation():
    found = asked(1, {}, denied={"ListGroups": [], "DescribeGroups": ["a", "b", "c"]}, untold=True)
    assert after_round(KnownGroups(), found, WELL).gaps == (
        "the brokers deny ListGroups: allow Kontrast's user the operation Describe on the cluster",
        "the brokers deny DescribeGroups: allow Kontrast's user the operation Describe on 3 groups (a, b, …)",
        "brokers before 3.0 do not list transactional ids",
    )


def outage(*lost: str) -> Picture:
    """Return a cluster whose topics `t` and `__consumer_offsets` lost broker 2."""
    znodes = {
        **brokers(1),
        **controlled_by(1),
        **topic("t", [1], [2]),
        **topic("__consumer_offsets", *([1 + n % 2] for n in range(50))),
    }
    clients = Clients(known(reading("pay-1", t=(0, 1)), *(reading(name, u=(0,)) for name in lost)), TEAMS)
    return structs.replace(look(znodes), clients=clients)


def said(explanation: Explanation) -> list[tuple[str, str]]:
    return [(each.about, re.sub(r"\d+ d.* ago", "AGE ago", each.says)) for each in explanation.statements]


def test_explain_names_the_owner_of_a_topic_and_the_groups_that_cannot_read_it():
    found = said(explain_topic(outage("other"), "t"))
    assert ("read by", "1 group of team payments (#pay) (pay-1), as brokers answered AGE ago") in found
    assert [each for each in found if "cannot read" in each[1]] == [("", "group pay-1 cannot read t-1")]
    assert not [about for about, _ in found if about == "team"]


def test_a_restart_names_whom_it_stops_except_for_accepted_topics():
    znodes = {**brokers(1, 2), **controlled_by(1), **topic("t", [1], [2]), **topic("v", [2])}
    clients = Clients(known(reading("pay-1", t=(0, 1)), reading("other", v=(0,))), TEAMS)
    picture = structs.replace(look(znodes), clients=clients)
    (reason,) = restartable(picture, 2).reasons
    stops = "1 group of team payments (#pay) (pay-1) and 1 group (other)"
    sentence = f"2 partitions would be offline until broker 2 is back. This stops {stops}, as brokers answered AGE ago"
    assert re.sub(r"\d+ d.* ago", "AGE ago", reason.sentence) == sentence
    (reason,) = restartable(picture, 2, accepted_topics=("t",)).reasons
    assert reason.impact is not None
    assert [hit.name for hit in reason.impact.groups] == ["other"]
    (reason,) = restartable(structs.replace(picture, clients=Clients()), 2).reasons
    assert (reason.sentence, reason.impact) == ("2 partitions would be offline until broker 2 is back", None)


def test_explain_shows_the_coordinator_and_the_lost_partitions_of_a_group():
    found = explain_group(outage(), "pay-1")
    assert found is not None
    assert found.headline == "cannot read t-1"
    assert not found.is_well
    assert found.since is not None
    statements = said(found)
    assert ("team", "payments (#pay)") in statements
    assert ("coordinator", f"broker 1, which leads {coordinator('pay-1')}") in statements
    assert ("reads", "2 partitions of t") in statements
    assert statements[-1][1].startswith("t-1: ")


def test_without_answers_only_the_coordinator_of_a_group_is_known():
    unasked = structs.replace(outage(), clients=Clients())
    found = explain_group(unasked, "a")
    assert found is not None
    assert found.headline == "can neither join nor commit"
    assert said(found)[-1][1].startswith("not known. Set groups = true")
    assert explain_group(outage(), "a") is None
    assert read_subject(["group", "pay"]).similar(outage()) == ["pay-1"]
    assert read_subject(["group", "of", "two"]).group == read_subject(["group", "of two"]).group == "of two"
