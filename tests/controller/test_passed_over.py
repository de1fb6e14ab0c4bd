"""Elections that the controller passes over. Their effects are withdrawn, and due until they are written."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import Severity
from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from tests.controller.znode_history import ZnodeHistory

TOPICS = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([3, 4], 3, 0, [3, 4])}}
T0 = TopicPartition("t", 0)


@pytest.fixture
def history() -> ZnodeHistory:
    """Kill broker 2, leader of t-0. The controller has handled later events, and 3 s have passed."""
    history = ZnodeHistory().start(1, 2, 3, 4, topics=TOPICS)
    history.broker_leaves(2)
    assert history.predicted("t", 0) == (3, 1, (3,))
    history.topic("v", {0: [4]})
    history.state("v", 0, 4, 0, [4])
    history.heartbeat(4_000)
    return history


def transitions(history: ZnodeHistory, status: Status) -> list[tuple[str, str]]:
    rows = [row for row in history.effects if isinstance(row, Transition) and row.topic == "t"]
    return [(row.from_state, row.to_state) for row in rows if row.status is status and row.subject == "partition"]


def newest(history: ZnodeHistory) -> PartitionRow:
    return [row for row in history.effects if isinstance(row, PartitionRow) and row.topic == "t"][-1]


def offline_partitions(history: ZnodeHistory) -> int:
    return [row for row in history.effects if isinstance(row, GaugesRow)][-1].offline_partitions


def test_it_is_withdrawn_and_the_partition_stays_offline_and_counted(history):
    elected = ("OfflinePartition", "OnlinePartition")
    assert transitions(history, Status.PROVISIONAL).count(elected) == 1
    assert transitions(history, Status.WITHDRAWN) == [elected]
    assert elected not in transitions(history, Status.FINAL)
    row = newest(history)
    assert (row.state, row.leader, row.problem) == ("OfflinePartition", 2, "election_due")
    assert row.reason is not None
    assert "must elect broker 3. It has passed over this election" in row.reason
    assert offline_partitions(history) == 1


def test_a_person_is_paged_until_the_write_comes_however_late(history):
    history.heartbeat(60_000)
    alert = history.open_alerts()["ControllerOverdue/elections"]
    assert alert.severity is Severity.PAGE
    owes = "controller 1 in epoch 1 passed over an election and made later writes: 1 partition has no leader (t-0)"
    assert (alert.cause, alert.examples) == (owes, ("t-0",))
    assert "ElectionDue/broker 2" not in history.open_alerts()
    since_ms = history.context.header.departures.last[2].time_ms
    assert alert.since_ms == since_ms
    history.state("t", 0, 3, 1, [3])
    assert transitions(history, Status.FINAL)[-1] == ("OfflinePartition", "OnlinePartition")
    history.heartbeat()
    assert "ControllerOverdue/elections" not in history.open_alerts()
    row = newest(history)
    assert (row.state, row.leader, row.problem) == ("OnlinePartition", 3, "under_replicated")
    assert offline_partitions(history) == 0


def test_nobody_owes_it_once_who_was_to_be_elected_is_gone(history):
    history.broker_leaves(3)
    assert newest(history).problem == "no_live_in_sync_replica"


def test_the_next_controller_elects_anew(history):
    history.delete("/controller")
    history.heartbeat(60_000)
    assert "until the next controller (none is active) elects" in history.open_alerts()["ElectionDue/broker 2"].cause
    history.controller(4, 2)
    assert history.predicted("t", 0) == (3, 2, (3,))  # broker 2 leaves the ISR first
    partition = history.context.topics.partition(T0)
    assert partition is not None
    assert partition.owed(2) is None


def test_an_election_of_a_partition_that_is_led_is_only_taken_back():
    """The requested preferred election did not come, and the partition keeps its leader."""
    topics = {"t": {0: ([2, 3], 3, 0, [2, 3])}, "u": {0: ([3, 4], 3, 0, [3, 4])}}
    history = ZnodeHistory().start(1, 2, 3, 4, topics=topics)
    history.elect_preferred(("t", 0))
    history.topic("v", {0: [4]})
    history.state("v", 0, 4, 0, [4])
    history.heartbeat(4_000)
    assert transitions(history, Status.FINAL) == []
    assert (newest(history).state, newest(history).leader, newest(history).problem) == ("OnlinePartition", 3, None)
    partition = history.context.topics.partition(T0)
    assert partition is not None
    assert partition.passed_over is None


def test_a_removal_that_does_not_come_leaves_the_replica_offline_and_in_the_isr():
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([3, 4], 4, 0, [3, 4])}}
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, 4, topics=topics)  # from 2.1 on the controller is poisoned
    history.broker_leaves(3)
    history.topic("v", {0: [4]})
    history.state("v", 0, 4, 0, [4])
    history.heartbeat(4_000)
    moves = [row for row in history.effects if isinstance(row, Transition) and row.subject == "replica"]
    final = {(row.topic, row.to_state) for row in moves if row.status is Status.FINAL and row.broker == 3}
    assert final == {("t", "OfflineReplica"), ("u", "OfflineReplica")}
    assert (newest(history).state, newest(history).isr, newest(history).problem) == ("OnlinePartition", (2, 3), None)
    assert "ControllerDisagrees/write_never_came" in history.open_alerts()


def test_a_storm_of_events_is_given_up_at_a_heartbeat_as_one_event_is():
    history = ZnodeHistory().start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    for number in range(700):  # more than every record judges
        history.topic(f"s{number}", {0: [1, 2]})
    history.state("s699", 0, 1, 0, [1, 2])
    assert len(history.context.header.events) == 699
    history.heartbeat(4_000)
    assert history.context.header.events == {}
    assert "ControllerDisagrees/write_never_came" in history.open_alerts()


def test_no_broker_is_asked_to_follow_a_leader_that_was_not_elected(history):
    rows = [row for row in history.effects if isinstance(row, Request) and row.api == "LeaderAndIsr"]
    expected = {row.effect for row in rows if any(state.topic == "t" for state in row.partition_states)}
    assert {row.status for row in rows if row.effect in expected} == {Status.PROVISIONAL, Status.WITHDRAWN}


def test_a_write_that_nothing_explains_makes_no_partition_of_a_deleted_topic_exist():
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([2, 3], 2, 0, [2, 3])}})
    history.delete_topic("t")
    history.the_controller_writes_its_due()
    history.heartbeat(4_000)
    partition = history.context.topics.partition(T0)
    assert partition is not None
    assert partition.state.word == "NonExistentPartition"
    history.state("t", 0, 9, 7, [9])
    history.heartbeat()
    assert transitions(history, Status.FINAL)[-1] == ("OfflinePartition", "NonExistentPartition")
    assert offline_partitions(history) == 0
