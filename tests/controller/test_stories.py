"""A cluster's life as the replica tells it, with creation, deaths, returns, bounces, deletion and failover."""

import pytest
from msgspec.structs import replace

from controller.contract.effect_rows import RefusedRow, Request, RequestedState, Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.records import RecordKind
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.step import step
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode, state_znode, topic_znode


@pytest.fixture
def history() -> ZnodeHistory:
    """Return three brokers with broker 1 as controller. Topic t has t-0 on 2,3 and t-1 on 3 alone."""
    history = ZnodeHistory()
    history.snapshot(
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"1"),
        *((f"/brokers/ids/{broker}", broker_znode(broker)) for broker in (1, 2, 3)),
        ("/brokers/topics/t", topic_znode({0: [2, 3], 1: [3]})),
        ("/brokers/topics/t/partitions/0/state", state_znode(2, 0, [2, 3])),
        ("/brokers/topics/t/partitions/1/state", state_znode(3, 0, [3])),
    )
    return history


def test_nothing_is_known_before_a_snapshot_is_complete():
    history = ZnodeHistory()
    assert history.gauges().ready is False
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.broker(1)
    assert history.gauges().ready is False
    history.send(RecordKind.SNAPSHOT_END)
    assert history.gauges().ready is True


def test_a_snapshot_publishes_every_partition_and_predicts_nothing(history):
    assert history.row("t", 0).state == "OnlinePartition"
    assert not [row for row in history.effects if isinstance(row, (Transition, Request))]
    gauges = history.gauges()
    assert (gauges.active_brokers, gauges.topics, gauges.partitions) == (3, 1, 2)
    assert gauges.partitions_by_state["OnlinePartition"] == 2


def test_the_requests_of_a_creation_carry_what_was_written(history):
    history.topic("new", {0: [3, 1]})
    effects = history.state("new", 0, 3, 0, [3, 1])
    told = [row for row in effects if isinstance(row, Request)]
    states = [(row.api, row.brokers, *row.partition_states) for row in told]
    written = RequestedState("new", 0, 3, 0, (3, 1), (3, 1), controller_epoch=1, partition_epoch=0)
    new = replace(written, is_new=True)
    assert states == [
        ("LeaderAndIsr", (1,), new),
        ("LeaderAndIsr", (3,), new),
        ("UpdateMetadata", (1, 2, 3), written),
    ]


def test_the_prediction_and_its_confirmation_have_one_key(history):
    history.topic("new", {0: [3, 1]})
    history.state("new", 0, 3, 0, [3, 1])
    moves = [row for row in history.effects if isinstance(row, Transition) and row.to_state == "OnlinePartition"]
    assert [move.status for move in moves] == [Status.PROVISIONAL, Status.FINAL]
    assert moves[0].effect == moves[1].effect


def test_the_election_is_due_until_zookeeper_shows_it(history):
    history.broker_leaves(2)
    due = history.row("t", 0)
    assert (due.problem, due.predicted_leader, due.predicted_leader_epoch, due.predicted_isr) == (
        "election_due",
        3,
        1,
        (3,),
    )
    assert due.reason.endswith("the controller must elect broker 3")
    history.state("t", 0, 3, 1, [3])
    done = history.row("t", 0)
    assert (done.leader, done.problem, done.predicted_leader) == (3, "under_replicated", None)
    assert history.gauges().elections == {"OfflinePartitionLeaderElection": 1}
    assert set(history.alerts()) == {("open", "BrokerCrashed/broker 2")}


def test_a_partition_comes_back_with_its_broker(history):
    history.broker_leaves(3)
    history.state("t", 0, 2, 1, [2])
    history.state("t", 1, -1, 1, [3])
    since_ms = history.row("t", 1).problem_since_ms
    effects = history.broker(3)
    assert "provisional t-1 OfflinePartition -> OnlinePartition leader=3 epoch=2 isr=[3]" in history.transitions(
        effects
    )
    assert history.row("t", 1).problem_since_ms == since_ms
    assert ("resolved", "PartitionsOffline/broker 3") not in history.alerts()
    history.state("t", 1, 3, 2, [3])
    assert history.alerts()[-1] == ("resolved", "PartitionsOffline/broker 3")
    assert history.gauges().offline_partitions == 0


def test_a_change_of_the_isr_keeps_what_is_still_to_be_written(history):
    history.broker_leaves(3)
    history.state("t", 0, 2, 0, [2])  # the leader was faster than the controller
    assert history.gauges().isr_changes == {"shrink": 1}
    assert history.row("t", 0).isr == (2,)


def test_trap_6_removals_are_confirmed_in_any_order(history):
    history.topic("m", {0: [1, 2, 3]})
    history.state("m", 0, 1, 0, [1, 2, 3])
    history.broker_leaves(3)
    history.broker_leaves(2)
    history.state("m", 0, 1, 1, [1, 3])
    assert history.row("m", 0).predicted_isr == (1,)
    history.state("m", 0, 1, 2, [1])
    row = history.row("m", 0)
    assert (row.isr, row.predicted_isr) == ((1,), None)


def test_values_that_were_never_read_are_confirmed_by_the_one_that_was(history):
    history.topic("m", {0: [1, 2, 3]})
    history.state("m", 0, 1, 0, [1, 2, 3])
    history.broker_leaves(3)
    history.broker_leaves(2)
    history.state("m", 0, 1, 2, [1])
    assert history.row("m", 0).predicted_leader is None


def test_a_topic_that_is_being_deleted_raises_no_alarm(history):
    history.broker_leaves(3)
    assert ("open", "PartitionsOffline/broker 3") in history.alerts()
    history.write("/admin/delete_topics/t")
    assert history.alerts()[-1] == ("resolved", "PartitionsOffline/broker 3")


def test_trap_3_a_failover_with_a_dead_leader_expects_two_writes(history):
    history.delete("/controller")
    history.delete("/brokers/ids/1", same_zxid=True)
    history.broker_leaves(2)
    assert history.row("t", 0).reason.endswith("the next controller (none is active) must elect broker 3")
    effects = history.controller(3, 2)
    assert "provisional t-0@2 ReplicaDeletionIneligible -> OfflineReplica" in history.transitions(effects)
    history.state("t", 0, -1, 1, [3], controller_epoch=2)
    history.state("t", 0, 3, 2, [3], controller_epoch=2)
    assert history.row("t", 0).leader == 3
    assert history.gauges().divergences == {}


def test_what_the_lost_controller_had_not_written_is_withdrawn(history):
    history.broker_leaves(2)
    history.delete("/controller")
    effects = history.controller(3, 2)
    assert [move for move in history.transitions(effects) if move.startswith("withdrawn")] == [
        "withdrawn t-0 OfflinePartition -> OnlinePartition",
        "withdrawn t-0@2 OnlineReplica -> OfflineReplica",
    ]
    effects = history.heartbeat(19_000)  # its session lives on, so its process did too, up to its fenced write
    assert "final t-0 OnlinePartition -> OfflinePartition" in history.transitions(effects)


def test_a_cluster_without_controller_is_alerted_after_the_grace(history):
    history.delete("/controller")
    history.heartbeat(5_000)
    assert history.alerts() == []
    history.heartbeat(6_000)
    assert history.alerts() == [("open", "NoController")]
    history.controller(2, 2)
    history.heartbeat()
    assert history.alerts()[-1] == ("resolved", "NoController")


def test_a_znode_that_cannot_be_read_is_refused_and_the_last_good_value_stays(history):
    effects = history.write("/brokers/topics/t/partitions/0/state", b"\xff{not json")
    refused = next(row for row in effects if isinstance(row, RefusedRow))
    assert (refused.path, refused.data_base64) == ("/brokers/topics/t/partitions/0/state", "/3tub3QganNvbg==")
    assert history.row("t", 0).leader == 2
    assert history.gauges().refused == 1


def test_a_hand_edited_assignment_is_ignored_as_the_controller_ignores_it(history):
    history.topic("t", {0: [1, 2, 3], 1: [3]})
    assert history.row("t", 0).replicas == (2, 3)
    assert history.gauges().divergences == {"assignment_edited": 1}


def test_settings_written_before_their_topic_are_known_to_it(history):
    history.write("/config/topics/strict", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.topic("strict", {0: [1, 2]})
    history.state("strict", 0, 1, 0, [1])
    assert history.gauges().under_min_isr_partitions == 1
    history.delete("/config/topics/strict")
    assert history.gauges().under_min_isr_partitions == 0


def test_a_later_snapshot_forgets_what_it_does_not_name_and_keeps_since_when(history):
    history.broker_leaves(3)
    since_ms = history.row("t", 1).problem_since_ms
    history.generation, history.seq = 2, -1
    history.snapshot(
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"1"),
        ("/brokers/ids/1", broker_znode(1)),
        ("/brokers/topics/t", topic_znode({1: [3]})),
        ("/brokers/topics/t/partitions/1/state", state_znode(-1, 1, [3])),
    )
    assert history.row("t", 1).problem_since_ms == since_ms
    assert history.row("t", 0).state == "NonExistentPartition"
    assert sorted(history.brokers()) == [1]


def test_an_older_generation_changes_nothing(history):
    before = history.context
    history.generation, history.seq = 0, 10_000
    assert history.broker_leaves(3) == ()
    assert history.context is before


def test_a_new_generation_that_does_not_begin_with_a_snapshot_is_not_trusted(history):
    history.generation, history.seq = 2, 5
    gauges = history.gauges()
    assert isinstance(gauges, GaugesRow)
    assert gauges.ready is False


def test_redelivery_changes_nothing(history):
    for record in history.records:
        assert step(history.context, record).effects == ()


def test_state_that_is_stored_and_restored_after_each_record_gives_the_same_effects(history):
    history.broker_leaves(3)
    history.broker(3)
    history.state("t", 0, 2, 1, [2, 3])
    history.state("t", 0, 2, 1, [2])  # the leader's own write, which needs no explanation
    stored: dict[int, bytes] = {}
    context = new_context("c", chunk_count=8)
    effects = []
    for record in history.records:
        outcome = step(context, record)
        stored |= changed_chunks(context, outcome.context)
        effects.extend(outcome.effects)
        context = restore_context("c", encode_header(outcome.context), stored.get)
    assert effects == history.effects
