"""A change that is played with one partition of each kind, equal to the change with every partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings, strategies as st

from controller.contract.ids import TopicPartition
from controller.model.context import FOLLOWING, Context
from controller.step import step
from questions.known_brokers import UnknownBrokersError
from questions.whatif import scenario
from questions.whatif.representatives import Representatives, represent
from questions.whatif.scenario import Scenario, Step, StepKind, play
from tests.conformance.recording import unpack
from tests.controller.znode_history import ZnodeHistory
from tests.questions.test_whatif import cluster_of

BROKERS = (1, 2, 3, 4)
# Few, so that some kinds have several partitions. 9 is absent.
REPLICAS = st.sampled_from([(1, 2, 3), (2, 3, 1), (3, 4), (9, 1), (4,)])
TOPICS, PARTITIONS = 3, 4
LEAST = st.sampled_from("12")
UNCLEAN = st.sampled_from(["true", "false"])
MOMENTS = {"dev39": 150, "hard39": 200, "fuzz28a": 400}


@st.composite
def clusters(draw: st.DrawFn) -> Context:
    """Draw clusters with many similar partitions, some without a leader or out of sync."""
    topics, configs = {}, {}
    for index in range(TOPICS):
        partitions: dict[int, Any] = {}
        for number in range(PARTITIONS):
            replicas = draw(REPLICAS)
            isr = draw(st.sampled_from([replicas, replicas[:1], replicas[-1:]]))
            partitions[number] = (list(replicas), -1 if set(isr) == {9} else min(isr), number, list(isr))
        topics[f"t{index}"] = partitions
        configs[f"t{index}"] = {"min.insync.replicas": draw(LEAST), "unclean.leader.election.enable": draw(UNCLEAN)}
    return cluster_of(topics, *BROKERS, configs=configs)


ANY_BROKERS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=2, unique=True).map(tuple)
PLACES = [TopicPartition(f"t{index}", number) for index in range(TOPICS) for number in range(PARTITIONS)]
STEPS = st.one_of(
    st.builds(Step, st.sampled_from([StepKind.CRASH, StepKind.SHUT_DOWN, StepKind.RESTORE]), ANY_BROKERS, st.just({})),
    st.builds(
        Step, st.just(StepKind.REASSIGN), st.just(()), st.dictionaries(st.sampled_from(PLACES), REPLICAS, min_size=1)
    ),
)


def with_every_partition(context: Context, steps: list[Step]) -> Scenario:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario, "represent", lambda context, _targets, **_: Representatives(context, {}))
        return play(context, steps)


def possible(steps: list[Step]) -> list[Step]:
    """Return the steps without those that lose a broker twice, or restore one that was not lost."""
    lost, found = set[int](), []
    for each in steps:
        if each.change is StepKind.RESTORE:
            if not lost.issuperset(each.brokers):
                continue
            lost -= set(each.brokers)
        elif lost & set(each.brokers):
            continue
        elif each.change is not StepKind.REASSIGN:
            lost |= set(each.brokers)
        found.append(each)
    return found


@settings(deadline=None, max_examples=40)
@given(context=clusters(), steps=st.lists(STEPS, min_size=1, max_size=3).map(possible))
def test_changes_of_brokers_and_assignments_are_as_with_every_partition(context: Context, steps: list[Step]):
    try:
        played = play(context, steps)
    except UnknownBrokersError:  # a step that the cluster makes impossible is refused
        reject()
    assert played == with_every_partition(context, steps)


@pytest.mark.parametrize("name", MOMENTS)
def test_in_the_midst_of_what_a_real_cluster_does_it_is_as_with_every_partition(name: str, tmp_path: Path):
    recording = unpack(name, tmp_path)
    context, tried = ZnodeHistory().context, 0
    for number, record in enumerate(recording.records()):
        context = step(context, record).context
        header = context.header
        if number % MOMENTS[name] or header.phase is not FOLLOWING or not header.brokers:
            continue
        steps = [Step(StepKind.CRASH, (broker,)) for broker in sorted(header.brokers)[:2]]
        steps.append(Step(StepKind.RESTORE, tuple(sorted(header.brokers)[:1])))
        assert play(context, steps) == with_every_partition(context, steps)
        tried += 1
    assert tried > 1


def test_partitions_of_a_kind_are_played_once_and_all_named():
    topics = {name: {number: ([1, 2], 1, number, [1, 2]) for number in range(50)} for name in ("a", "b")}
    context = cluster_of(topics)
    representatives = represent(context, ())
    assert sum(len(topic.partitions) for _, topic in representatives.context.topics) == 1
    played = play(context, [Step(StepKind.CRASH, (1,))]).in_all
    assert {(each.topic, each.partition) for each in played.moved_leaders} == {
        (name, number) for name, topic in topics.items() for number in topic
    }
    assert (played.leaders_before, played.leaders) == ({1: 100}, {2: 100})
