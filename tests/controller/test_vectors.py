"""The core's choices beside Kafka's own: 20,000 random questions, then the rules that a naive copy gets wrong.

The answers under `vectors/`, and those of the refusals and repeated brokers below, are those of Kafka 3.9.2.
"""

import json
import lzma
from pathlib import Path

import pytest

from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.leadership import Elect
from controller.rules.assignment import ReplicaAssignment
from controller.rules.election import Strategy, recipients
from controller.rules.partitioner import partition_for_key
from controller.rules.placement import NoPlacement, PlacementError, place_replicas

VECTORS = Path(__file__).parent / "vectors"

STRATEGIES = {
    "offline": Strategy.OFFLINE,
    "offline-unclean": Strategy.OFFLINE,
    "reassign": Strategy.REASSIGN,
    "preferred": Strategy.PREFERRED,
    "controlled-shutdown": Strategy.CONTROLLED_SHUTDOWN,
}


def assert_all_equal(name, answer):
    """Compare our answer with Kafka's for each question of a file. `answer` gives (ours, Kafka's)."""
    with lzma.open(VECTORS / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    assert len(questions) == 5_000
    for question in questions:
        ours, kafkas = answer(question)
        assert ours == kafkas, question


def elect(question):
    strategy = STRATEGIES[question["strategy"]]
    assignment = ReplicaAssignment(*(tuple(question[field]) for field in ("replicas", "adding", "removing")))
    candidates = assignment.target if strategy is Strategy.REASSIGN else assignment.replicas
    shutting_down = frozenset(question["shutting_down"])
    online = frozenset(question["registered"]) - frozenset(question["offline_dirs_on"])
    if strategy is not Strategy.CONTROLLED_SHUTDOWN:
        online -= shutting_down
    intent = Elect(
        event=1,
        at_batch=0,
        ordinal=0,
        strategy=strategy,
        candidates=candidates,
        online=tuple(online),
        shutting_down=tuple(shutting_down),
        allow_unclean=question["strategy"] == "offline-unclean",
    )
    before = LeaderAndIsr(question["leader"], question["leader_epoch"], tuple(question["isr"]), controller_epoch=1)
    after = intent.apply(before, 1)
    elected = after and {"leader": after.leader, "leader_epoch": after.leader_epoch, "isr": list(after.isr)}
    told = list(recipients(strategy, candidates, online))
    return (elected, told), (question["elected"], question["recipients"])


def place(question):
    placed = place_replicas(
        {int(broker): rack for broker, rack in question["brokers"].items()},
        question["partitions"],
        question["replication_factor"],
        start_index=question["fixed_start_index"],
        shift=question["fixed_start_index"],
        start_partition_id=question["start_partition_id"],
    )
    return placed, {int(partition): tuple(replicas) for partition, replicas in question["assignment"].items()}


def reassign(question):
    before = ReplicaAssignment(*(tuple(question[field]) for field in ("replicas", "adding", "removing")))
    kafkas = ReplicaAssignment(*(tuple(question["result"][field]) for field in ("replicas", "adding", "removing")))
    return before.reassign_to(question["target"]), kafkas


def hash_key(question):
    return partition_for_key(bytes.fromhex(question["key_hex"]), question["partitions"]), question["partition"]


@pytest.mark.parametrize(
    ("name", "answer"), [("election", elect), ("place", place), ("reassign", reassign), ("murmur", hash_key)]
)
def test_every_answer_is_kafkas_own(name, answer):
    assert_all_equal(name, answer)


# Where new replicas go


def place_from(brokers, partition_count, replication_factor, start, **options):
    return place_replicas(brokers, partition_count, replication_factor, start_index=start, shift=start, **options)


def test_without_racks_the_order_of_the_brokers_is_the_callers():
    assert place_from({1: None, 0: None}, 1, 2, 0) == {0: (1, 0)}
    assert place_from({0: None, 1: None}, 1, 2, 0) == {0: (0, 1)}


def test_a_negative_start_partition_is_the_first_partition():
    assert place_from({0: None, 1: None, 2: None}, 3, 2, 0, start_partition_id=-5) == {0: (0, 1), 1: (1, 2), 2: (2, 0)}


def test_a_start_index_beyond_the_brokers_goes_round():
    assert place_from({0: None, 1: None, 2: None}, 3, 2, 7) == {0: (1, 0), 1: (2, 1), 2: (0, 2)}


def test_a_single_broker_has_every_partition():
    assert place_from({7: "a"}, 2, 1, 0) == place_from({7: None}, 2, 1, 0) == {0: (7,), 1: (7,)}


def test_an_empty_rack_is_a_rack():
    assert place_from({0: "", 1: "a", 2: ""}, 3, 2, 0) == {0: (0, 1), 1: (1, 2), 2: (2, 1)}


def test_racks_are_sorted_as_java_sorts_strings():
    placed = place_from({0: "\ufffd", 1: "\U0001f600", 2: "a"}, 4, 1, 0)
    assert placed == {0: (2,), 1: (1,), 2: (0,), 3: (2,)}


TOO_FEW_BROKERS = "Replication factor: 3 larger than available brokers: 2."
NO_FACTOR = "Replication factor must be larger than 0."
NO_PARTITIONS = "Number of partitions must be larger than 0."
SOME_RACKS = "Not all brokers have rack information for replica rack aware assignment."


@pytest.mark.parametrize(
    ("brokers", "partition_count", "replication_factor", "kind", "message"),
    [
        ({0: None}, 0, 1, NoPlacement.PARTITIONS, NO_PARTITIONS),
        ({0: None}, -1, 0, NoPlacement.PARTITIONS, NO_PARTITIONS),
        ({0: None}, 1, 0, NoPlacement.REPLICATION_FACTOR, NO_FACTOR),
        ({0: None, 1: None}, 1, 3, NoPlacement.REPLICATION_FACTOR, TOO_FEW_BROKERS),
        ({0: "a", 1: None}, 1, 3, NoPlacement.REPLICATION_FACTOR, TOO_FEW_BROKERS),
        ({0: "a", 1: None}, 1, 1, NoPlacement.RACKS, SOME_RACKS),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_order_and_words(
    brokers, partition_count, replication_factor, kind, message
):
    with pytest.raises(PlacementError) as refused:
        place_from(brokers, partition_count, replication_factor, 0)
    assert (refused.value.kind, str(refused.value)) == (kind, message)


# Reassignments


def test_a_cancelled_reassignment_is_one_to_its_origin():
    moving = ReplicaAssignment((5, 6, 1, 2), adding=(5, 6), removing=(1, 2))
    assert moving.reassign_to(moving.origin) == ReplicaAssignment((1, 2))


def test_a_cancelled_reassignment_does_not_bring_the_old_order_back():
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 2))
    assert moving.reassign_to(moving.origin) == ReplicaAssignment((3, 2, 1))


def test_a_broker_that_a_znode_names_twice_is_taken_away_once():
    twice = ReplicaAssignment((1, 1, 1, 2), removing=(1, 1))
    assert twice.target == (1, 2)
    assert twice.reassign_to((4,)) == ReplicaAssignment((4, 1, 2), adding=(4,), removing=(1, 2))
    assert ReplicaAssignment((1, 1, 2), adding=(1,)).origin == (1, 2)
    assert ReplicaAssignment((1, 2)).reassign_to((3, 3, 1)) == ReplicaAssignment((3, 1, 2), (3,), (2,))


# Keys


def test_a_topic_without_partitions_has_none_for_a_key():
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        partition_for_key(b"key", 0)
