"""Contexts altered for a question, and a shutdown without a record."""

from controller.contract.effect_rows import Transition
from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.model.tally import GaugeCounts
from controller.restore.altered_context import request_shutdown, with_gauges, with_partitions, without_departures
from tests.controller.znode_history import ZnodeHistory

TOPICS = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}, "other": {0: ([2], 2, 0, [2])}}


def started() -> ZnodeHistory:
    return ZnodeHistory().start(1, 2, topics=TOPICS)


def test_a_part_of_the_partitions_leaves_the_others_and_the_gauges_as_they_are():
    context = started().context
    part = with_partitions(context, {"t": {1: context.topics["t"].partitions[1]}})
    assert {name: set(topic.partitions) for name, topic in part.topics} == {"t": {1}, "other": {0}}
    assert part.header is context.header
    assert set(context.topics["t"].partitions) == {0, 1}


def test_other_gauges_replace_those_of_the_context():
    context = started().context
    before = context.header.tally.gauges.copy()
    assert with_gauges(context, GaugeCounts(partitions=7)).header.tally.gauges == GaugeCounts(partitions=7)
    assert context.header.tally.gauges == before


def test_departures_are_forgotten_of_the_brokers_that_are_named():
    history = started()
    history.broker_leaves(2)
    assert 2 in history.context.header.departures.last
    assert without_departures(history.context, [2]).header.departures.last == {}
    assert without_departures(history.context, [1]).header.departures.last.keys() == {2}


def test_a_requested_shutdown_has_the_elections_that_the_controller_must_write():
    context = started().context
    outcome = request_shutdown(context, 2)
    due = {
        (row.topic, row.partition): row.predicted_leader
        for row in outcome.effects
        if isinstance(row, PartitionRow) and row.predicted_leader is not None
    }
    assert due[("t", 1)] == 1
    assert outcome.context.header.shutdowns.under_way == (2,)
    assert any(isinstance(row, Transition) for row in outcome.effects)
    assert context.header.shutdowns.under_way == ()
    partition = outcome.context.topics.partition(TopicPartition("t", 1))
    assert partition is not None
    assert partition.write_due


def test_a_requested_shutdown_can_do_without_the_rows_of_its_steps():
    outcome = request_shutdown(started().context, 2, shows_steps=False)
    assert not any(isinstance(row, Transition) for row in outcome.effects)
    assert any(isinstance(row, PartitionRow) for row in outcome.effects)
