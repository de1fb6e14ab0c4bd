"""Consumer groups that an outage stops, from recorded answers of brokers."""

from __future__ import annotations

import pytest

from controller.contract.ids import TopicPartition
from questions.groups import Clients, Effect, Troubled, impact_of, readers_of
from questions.known_groups import Described, Group, KnownGroups, Round, after_round, coordinator_partition
from questions.teams import read_teams

TEAMS = read_teams({"pay*": {"team": "payments", "contact": "#pay", "rank": 1}})
SIZES = {"__consumer_offsets": 50, "__transaction_state": 50}


def troubled(*offline: str, refusing: tuple[str, ...] = ()) -> Troubled:
    def names(texts: tuple[str, ...]) -> frozenset[tuple[str, int]]:
        return frozenset((text.rpartition("-")[0], int(text.rpartition("-")[2])) for text in texts)

    return Troubled(names(offline), names(refusing), SIZES)


def known(*groups: Group, ids: tuple[str, ...] = ()) -> KnownGroups:
    return KnownGroups(1_000, {group.group: group for group in groups}, dict.fromkeys(ids, 1_000))


def reading(name: str, **reads: tuple[int, ...]) -> Group:
    return Group(name, "Stable", 1_000, has_members=True, reads=reads, subscribes=tuple(reads))


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
        known(reading("pay-1", t=(0, 1)), reading("other", t=(2,)), reading("u", v=(0,))), troubled("t-1"), TEAMS
    )
    assert [(hit.name, hit.effects, hit.says) for hit in found.groups] == [
        ("pay-1", (Effect.CANNOT_READ,), "cannot read t-1")
    ]
    assert found.sentence == "stops 1 group of team payments (#pay) (pay-1)"


def test_a_subscription_is_to_every_partition_also_to_those_that_no_member_is_assigned():
    left_out = Group("g", "Stable", 1, has_members=True, reads={"t": (0,)}, subscribes=("t",))
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
    idle, alone = Group("idle", "Empty", 1), Group("alone", "Empty", 1, reads={"t": (0,)})
    found = impact_of(known(idle, alone), troubled("t-0", coordinator("idle")), TEAMS)
    assert [hit.name for hit in found.groups] == ["alone"]


def test_groups_come_by_the_rank_of_their_team_and_nothing_is_said_without_knowledge():
    hit = troubled("t-0")
    found = impact_of(known(reading("a", t=(0,)), reading("pay", t=(0,)), reading("b", t=(0,))), hit, TEAMS)
    assert found.sentence == "stops 1 group of team payments (#pay) (pay) and 2 groups (a and b)"
    assert found.as_of(61_000) == "as brokers answered 1 min ago"
    assert Clients().hit_by(hit) is None


def test_readers_of_a_topic_run_and_read_or_subscribe():
    idle = Group("idle", "Empty", 1, committed={"t": {0: 5}})
    waiting = Group("waits", "PreparingRebalance", 1, has_members=True, subscribes=("t",))
    assert [group.group for group in readers_of(known(idle, waiting, reading("g", t=(1,))), "t")] == ["g", "waits"]


def stable(**assigned: tuple[int, ...]) -> Described:
    return Described("Stable", True, assigned, tuple(assigned))


def asked(at_ms: int, groups: dict[str, Described], **more: object) -> Round:
    return Round(at_ms, (1, 2), {1: list(groups), 2: []}, groups, **more)


def test_a_group_of_a_lost_coordinator_stays_as_it_was_and_a_deleted_one_goes():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,)), "b": stable(t=(1,))}), lambda *_: True)
    lost = after_round(before, asked(2, {}), lambda _, name: name != "a")
    assert lost.groups == {"a": before.groups["a"]}
    assert lost.groups["a"].seen_ms == 1


def test_while_a_broker_is_silent_nothing_is_forgotten():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,))}), lambda *_: True)
    silent = after_round(before, Round(2, (1, 2), {2: []}), lambda *_: True)
    assert silent.groups == before.groups
    assert silent.gaps == ("broker 1 did not answer, so its groups are as they were before",)


def test_a_rebalancing_group_keeps_its_last_assignment_because_brokers_tell_none():
    before = after_round(KnownGroups(), asked(1, {"a": stable(t=(0,))}), lambda *_: True)
    after = after_round(before, asked(2, {"a": Described("PreparingRebalance", True)}), lambda *_: True)
    assert (after.groups["a"].state, after.groups["a"].reads) == ("PreparingRebalance", {"t": (0,)})


def test_without_members_the_partitions_whose_commits_move_are_read():
    empty = {"a": Described("Empty")}
    first = after_round(KnownGroups(), asked(1, empty, committed={"a": {"t": {0: 5, 1: 7}}}), lambda *_: True)
    assert not first.groups["a"].is_running
    moved = after_round(first, asked(2, empty, committed={"a": {"t": {0: 6, 1: 7}}}), lambda *_: True)
    assert moved.groups["a"].reads == {"t": (0,)}
    later = after_round(moved, asked(3, empty), lambda *_: True)  # its turn did not come
    assert later.groups["a"].reads == {"t": (0,)}
    rests = after_round(later, asked(4, empty, committed={"a": {"t": {0: 6, 1: 7}}}), lambda *_: True)
    assert not rests.groups["a"].is_running


def test_denied_and_untold_facts_are_sentences_that_name_the_operation():
    found = asked(1, {}, denied={"ListGroups": [], "DescribeGroups": ["a", "b", "c"]}, untold=True)
    assert after_round(KnownGroups(), found, lambda *_: True).gaps == (
        "the brokers deny ListGroups: allow Kontrast's user the operation Describe on the cluster",
        "the brokers deny DescribeGroups: allow Kontrast's user the operation Describe on 3 groups (a, b, …)",
        "brokers before 3.0 do not list transactional ids",
    )
