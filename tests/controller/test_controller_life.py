"""Scenarios of Kafka's ControllerIntegrationTest, as ZooKeeper shows them.

Cases that are no trap of their own belong here. Deletion is in `test_topic_deletion`.
"""

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.records import RecordKind
from controller.restore.stored_context import reconfigured
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, assert_all_as_expected, controller_znode, on, t0

ALL = (1, 2, 3)


# Controllers


def test_the_controller_epoch_outlives_all_brokers():
    history = ZnodeHistory().start(1)
    history.controller_dies(1)
    history.broker(1)
    history.controller(1, 2)
    assert history.gauges().controller_epoch == 2


def test_a_controller_that_moves_leaves_what_it_was_doing_to_the_next():
    history = ZnodeHistory().start(1, 2)
    history.topic("t", {0: [2, 1]})
    assert history.moves(history.delete("/controller"), Status.WITHDRAWN) == []
    effects = history.controller(2, 2)
    assert "t-0 NewPartition -> OnlinePartition" in history.moves(effects, Status.WITHDRAWN)
    assert t0(history) == (2, 0, (2, 1))
    history.state("t", 0, 2, 0, [2, 1])
    assert_all_as_expected(history)


def test_a_controller_that_somebody_deposed_writes_on_until_the_next_one_takes_over():
    history = ZnodeHistory().start(1, 2)
    history.topic("t", {0: [2, 1]})
    history.delete("/controller")
    effects = history.state("t", 0, 2, 0, [2, 1])
    assert "t-0 NewPartition -> OnlinePartition leader=2 epoch=0 isr=[2, 1]" in history.moves(effects, Status.FINAL)
    history.controller(2, 2)
    assert_all_as_expected(history)


def test_a_deposed_controllers_topic_id_shows_that_it_had_begun_to_create_the_topic():
    history = ZnodeHistory().start(1, 2)
    history.topic("t", {0: [2, 1]})  # created by hand, without an id
    history.delete("/controller")
    effects = history.topic("t", {0: [2, 1]}, topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    assert history.moves(effects, Status.FINAL) == [
        "t-0 NonExistentPartition -> NewPartition",
        "t-0@1 NonExistentReplica -> NewReplica",
        "t-0@2 NonExistentReplica -> NewReplica",
    ]
    effects = history.controller(2, 2)
    assert "t-0 NewPartition -> OnlinePartition" in history.moves(effects, Status.WITHDRAWN)
    assert "t-0 NonExistentPartition -> NewPartition" not in history.moves(effects, Status.WITHDRAWN)


def test_a_topic_id_that_a_controller_gives_while_it_takes_over_shows_no_event():
    history = ZnodeHistory().start(1, 2)
    history.delete("/controller")
    history.controller(2, 2)
    history.heartbeat(400)
    history.topic("t", {0: [2, 1]})
    effects = history.topic("t", {0: [2, 1]}, topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    assert history.moves(effects, Status.FINAL) == []


def a_topic_made_while_a_controller_takes_over() -> ZnodeHistory:
    """Register broker 3 during the takeover, then create t-0 on 1 and 2, and t-1 on 3 and 1. Only t-0 is written."""
    history = ZnodeHistory().start(1, 2)
    history.delete("/controller")
    history.controller(2, 2)
    history.heartbeat(200)
    history.broker(3)
    history.topic("t", {0: [1, 2], 1: [3, 1]})
    history.heartbeat(200)
    effects = history.state("t", 0, 1, 0, [1, 2])
    assert history.moves(effects, Status.FINAL) == []  # as it would be written either way
    return history


def test_a_topic_created_without_a_registered_broker_was_read_by_the_takeover():
    history = a_topic_made_while_a_controller_takes_over()
    effects = history.state("t", 1, 1, 0, [1])
    assert [move for move in history.moves(effects, Status.FINAL) if "t-1" in move] == [
        "t-1@1 OnlineReplica -> OnlineReplica",
        "t-1@3 ReplicaDeletionIneligible -> OfflineReplica",
        "t-1 NewPartition -> OnlinePartition leader=1 epoch=0 isr=[1]",
        "t-1@3 OfflineReplica -> OnlineReplica",
    ]
    assert "t-0 NewPartition -> OnlinePartition leader=1 epoch=0 isr=[1, 2]" in history.moves(effects, Status.FINAL)
    assert_all_as_expected(history)


def test_a_topic_created_with_all_registered_brokers_came_after_the_takeover():
    history = a_topic_made_while_a_controller_takes_over()
    effects = history.state("t", 1, 3, 0, [3, 1])
    assert [move for move in history.moves(effects, Status.FINAL) if "t-1" in move] == [
        "t-1 NonExistentPartition -> NewPartition",
        "t-1@1 NonExistentReplica -> NewReplica",
        "t-1@3 NonExistentReplica -> NewReplica",
        "t-1 NewPartition -> OnlinePartition leader=3 epoch=0 isr=[3, 1]",
        "t-1@1 NewReplica -> OnlineReplica",
        "t-1@3 NewReplica -> OnlineReplica",
    ]
    assert_all_as_expected(history)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_live_broker_that_some_new_partitions_are_created_without_is_unexplained(is_read):
    history = ZnodeHistory().start(*ALL, topics={"t": {0: ([1, 3],), 1: ([1, 3],)}} if is_read else {})
    if not is_read:
        history.topic("t", {0: [1, 3], 1: [1, 3]})
    history.state("t", 0, 1, 0, [1, 3])
    history.state("t", 1, 1, 0, [1])
    assert history.gauges().divergences == {"unexpected_isr": 1}


def test_a_deposed_controller_whose_broker_goes_writes_no_more():
    history = ZnodeHistory().start(1, 2)
    history.topic("t", {0: [2, 1]})
    history.delete("/controller")
    effects = history.broker_leaves(1)
    assert "t-0 NewPartition -> OnlinePartition" in history.moves(effects, Status.WITHDRAWN)


def test_without_a_controller_nothing_is_expected_of_anybody():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.delete("/controller")
    history.delete("/controller")  # once more. It is gone already
    history.broker_leaves(2)
    history.broker(4)
    history.topic("new", {0: [3]})
    history.reassign(("t", 0, [3, 1]))
    history.elect_preferred(("t", 0))
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 3, "event": 1})
    assert history.gauges().pending_writes == 0
    assert [row for row in history.effects if isinstance(row, Request)] == []


def test_a_controller_whose_epoch_did_not_grow_never_took_over():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.delete("/controller")
    history.write("/controller", controller_znode(3))
    assert history.transitions(history.broker_leaves(2)) == []


def test_a_term_cut_after_its_controllers_registration_went_poisons_no_process():
    history = ZnodeHistory().start(*ALL, topics={"t": {n: ([3, 2], 3, 0, [3, 2]) for n in range(2)}})
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    history.broker_leaves(1)
    history.delete("/controller")
    history.controller(3, 2)
    assert history.context.header.former.poisoned == {}


def test_a_read_takes_settings_without_their_topic_and_ignores_events_of_the_past():
    history = ZnodeHistory()
    history.snapshot(
        ("/config/topics/later", {"version": 1, "config": {"min.insync.replicas": "2"}}),
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"1"),
        (LOG_DIR_EVENT, {"version": 1, "broker": 1, "event": 1}),
    )
    gauges = history.gauges()
    assert (gauges.topics, gauges.ready) == (0, True)
    assert history.context.header.triggers.log_dir_failures == {}
    history.topic("later", {0: [1]})
    assert history.context.topics.get("later").min_insync_replicas == 2


def test_what_vanishes_during_a_read_is_gone_at_its_end():
    history = ZnodeHistory().start(1, topics=on([1], 1, 0, [1]))
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", controller_znode(1))
    history.write("/controller_epoch", b"1")
    history.topic("t", {0: [1]})
    history.delete("/brokers/topics/t")
    history.send(RecordKind.SNAPSHOT_END)
    assert history.gauges().topics == 0


def test_the_end_of_a_read_that_never_began_is_nothing():
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_END)
    assert history.gauges().ready is False


def test_a_read_that_repeats_what_is_known_changes_no_partition():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    before = history.context.topics.get("t").partitions
    history.generation, history.seq = 2, -1
    history.start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    assert history.context.topics.get("t").partitions == before
    assert_all_as_expected(history)


def test_what_comes_or_vanishes_before_the_first_read_is_nothing():
    history = ZnodeHistory()
    assert history.broker(1) == ()
    assert history.broker_leaves(1) == ()
    assert history.topic_vanishes("t", 0) == ()
    assert (history.context.header.brokers, history.context.header.departures.last) == ({}, {})


def test_the_end_of_what_was_never_there_is_nothing():
    history = ZnodeHistory().start(1, 2)
    assert history.broker_leaves(9) == ()
    assert history.delete("/brokers/topics/nobody") == ()
    assert_all_as_expected(history)


def test_znodes_that_the_controller_does_not_read_change_nothing():
    history = ZnodeHistory().start(1, 2)
    assert history.write("/latest_producer_id_block", {"version": 1, "broker": 1}) == ()
    assert history.refusals() == []


def test_the_cluster_s_id_is_kept_and_an_unreadable_one_is_refused():
    history = ZnodeHistory().start(1, 2)
    assert history.context.header.cluster_id == ""
    assert history.write("/cluster/id", {"version": "1", "id": "x"}) == ()
    assert history.context.header.cluster_id == "x"
    (refused,) = history.write("/cluster/id", {"version": "1", "id": "x" * 101})
    assert refused.path == "/cluster/id"
    assert history.context.header.cluster_id == "x"


def test_a_forwarder_whose_standing_cannot_be_read_is_of_unknown_standing():
    history = ZnodeHistory().start(1, 2)
    assert history.gauges().session == "connected"
    (*_, gauges) = history.send(RecordKind.HEARTBEAT, zxid=history.zxid, data="not json")
    assert (gauges.session, gauges.watch_mode) == ("unknown", "unknown")


def test_a_controller_may_take_over_before_any_broker_is_registered():
    history = ZnodeHistory()
    history.snapshot()
    effects = history.controller(1, 1)
    assert history.transitions(effects) == ["final controller 1 Elected -> Active"]
    assert history.requests(effects) == []


def test_a_controller_that_is_cut_among_elections_is_not_poisoned():
    history = ZnodeHistory().start(*ALL, topics={"t": {n: ([2, 3], 2, 0, [2, 3]) for n in range(2)}})
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    history.delete("/controller")
    history.controller(3, 2)
    history.delete("/controller")
    history.controller(1, 3)
    history.heartbeat()
    assert "ControllerPoisoned/broker 1" not in history.open_alerts()


# Brokers and topics


def test_a_broker_that_registers_as_the_only_one_gets_all_and_no_other_gets_any():
    history = ZnodeHistory().start(controller=1)
    assert history.requests(history.broker(1)) == ["final UpdateMetadata to 1: all partitions"]


def test_where_no_broker_is_left_nothing_is_sent():
    history = ZnodeHistory().start(1, topics=on([1], 1, 0, [1]))
    history.broker_leaves(1)  # someone removed the registration, and the controller goes on
    assert t0(history) == (-1, 1, (1,))
    assert history.requests(history.state("t", 0, -1, 1, [1])) == []
    assert_all_as_expected(history)


@pytest.mark.parametrize(("after_ms", "kind"), [(0, "ControllerFailover"), (30, "TopicChange")])
def test_a_topic_that_comes_with_a_new_controller_is_read_by_it_not_heard_of(after_ms, kind):
    history = ZnodeHistory().start(1, 2)
    history.delete("/controller")
    history.controller(2, 2)
    history.now_ms += after_ms
    effects = history.topic("new", {0: [1, 2], 1: [9]})
    assert {row.cause.partition(":")[0] for row in effects if isinstance(row, Request)} == {kind}
    history.state("new", 0, 1, 0, [1, 2])
    assert_all_as_expected(history)
    assert [history.row("new", number).state for number in (0, 1)] == ["OnlinePartition", "NewPartition"]


def test_partitions_added_while_a_broker_is_away_start_without_it():
    history = ZnodeHistory().start(1, topics=on([1, 9], 1, 0, [1]))
    history.topic("t", {0: [1, 9], 1: [9, 1], 2: [9]})
    assert history.predicted("t", 1) == (1, 0, (1,))
    assert history.predicted("t", 2) is None
    assert history.row("t", 2).state == "NewPartition"


@pytest.mark.parametrize("by", ["start", "znode"])
def test_without_a_controller_the_settings_of_now_say_what_the_next_must_do(by):
    history = ZnodeHistory().start(1, 2, 3, controller=3, topics=on([2, 1], 2, 4, [2]))
    history.controller_dies(3)
    history.broker_leaves(2)
    assert history.row("t", 0).problem == "no_live_in_sync_replica"
    if by == "znode":
        history.write("/config/brokers/<default>", {"version": 1, "config": {"unclean.leader.election.enable": "true"}})
    else:
        history.context = reconfigured(history.context, {"unclean.leader.election.enable": True}, None)
    history.heartbeat()
    assert history.row("t", 0).problem == "election_due"
    assert [type(row) for row in history.heartbeat()] == [GaugesRow], "once is enough"


def test_a_topic_may_forbid_what_the_brokers_allow():
    settings = {"unclean.leader.election.enable": True}
    history = ZnodeHistory(settings=settings).start(1, 2, topics=on([2, 1], 2, 4, [2]))
    history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": "false"}})
    history.broker_leaves(2)
    assert t0(history) == (-1, 5, (2,))


def test_an_unclean_election_that_an_operator_asked_for_is_explained():
    history = ZnodeHistory().start(1, topics=on([9, 1], -1, 4, [9]))
    effects = history.state("t", 0, 1, 5, [1], leader_recovery_state=1)
    assert "final t-0 OfflinePartition -> OnlinePartition leader=1 epoch=5 isr=[1]" in history.transitions(effects)
    assert next(row.cause for row in effects if isinstance(row, Transition)).startswith("ReplicaLeaderElection:")
    assert history.gauges().elections == {"UncleanOfflinePartitionLeaderElection": 1}
    assert_all_as_expected(history)


def test_allowing_unclean_elections_for_all_brokers_elects_at_once():
    history = ZnodeHistory().start(1, topics=on([9, 1], -1, 4, [9]))
    history.write("/config/brokers/<default>", {"config": {"unclean.leader.election.enable": "true", "x": "y"}})
    assert t0(history) == (1, 5, (1,))


def test_the_controllers_own_setting_is_stronger_than_the_default_of_all():
    history = ZnodeHistory().start(1, 2, topics=on([2, 1], 2, 4, [2]))
    history.write("/config/brokers/1", {"config": {"unclean.leader.election.enable": "false"}})
    history.write("/config/brokers/<default>", {"config": {"unclean.leader.election.enable": "true"}})
    history.broker_leaves(2)
    assert t0(history) == (-1, 5, (2,))


def test_deaths_that_are_handled_together_leave_other_partitions_alone():
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3]), 1: ([1], 1, 0, [1])}}
    history = ZnodeHistory().start(*ALL, topics=topics)
    history.broker_leaves(2)
    history.broker_leaves(3)
    assert history.predicted("t", 1) is None
    assert t0(history) == (-1, 2, (3,))


@pytest.mark.parametrize(
    ("leader", "epoch", "isr", "divergences"), [(3, 1, [3], {}), (1, 8, [1], {"different_leader": 1})]
)
def test_a_death_and_a_birth_are_read_apart_unless_a_write_says_otherwise(leader, epoch, isr, divergences):
    history = ZnodeHistory().start(*ALL, topics=on([2, 3, 4], 2, 0, [2, 3]))
    history.broker_leaves(2)
    history.broker(4)
    history.state("t", 0, leader, epoch, isr)
    assert history.row("t", 0).leader == leader
    assert history.gauges().divergences == divergences
    causes = {row.cause for row in history.effects if isinstance(row, Transition)}
    assert not any("registered, broker" in cause for cause in causes)


# Writes of leaders


def test_an_alter_partition_may_land_between_a_death_and_its_writes():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2, 3], 1, 0, [1, 2]))
    history.broker_leaves(2)
    assert t0(history) == (1, 1, (1,))
    history.state("t", 0, 1, 0, [1, 2, 3])
    assert t0(history) == (1, 1, (1, 3))
    history.state("t", 0, 1, 1, [1, 3])
    assert_all_as_expected(history)


def test_a_leader_that_dropped_the_dead_itself_spares_the_controller_the_write():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2], 1, 0, [1, 2]))
    history.broker_leaves(2)
    effects = history.state("t", 0, 1, 0, [1])
    assert "final t-0@2 OnlineReplica -> OfflineReplica" in history.transitions(effects)
    assert_all_as_expected(history)


def left_without_a_candidate() -> tuple[ZnodeHistory, list[str]]:
    """Kill broker 2 so that 3 should lead. Then 2's last write shows that 3 was already out of sync."""
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.broker_leaves(2)
    assert t0(history) == (3, 1, (3,))
    return history, history.transitions(history.state("t", 0, 2, 0, [2]))


def test_an_isr_change_may_leave_an_expected_election_without_a_candidate():
    history, moves = left_without_a_candidate()
    assert any(move.startswith("withdrawn t-0 OfflinePartition -> OnlinePartition") for move in moves)
    row = history.row("t", 0)
    assert (row.state, row.problem) == ("OfflinePartition", "no_live_in_sync_replica")
    assert history.gauges().offline_partitions == 1


def test_the_dead_leader_then_leaves_its_lead_though_it_is_the_last_in_sync():
    history, _ = left_without_a_candidate()
    assert t0(history) == (-1, 1, (2,))
    history.state("t", 0, -1, 1, [2])
    assert_all_as_expected(history)


def test_the_end_of_a_recovery_after_an_unclean_election_is_the_leaders_own_write():
    history = ZnodeHistory().start(1, 9, topics=on([1, 9], 1, 5, [1]))
    history.state("t", 0, 1, 5, [1], leader_recovery_state=1)
    history.state("t", 0, 1, 5, [1])
    gauges = history.gauges()
    assert (gauges.isr_changes, gauges.divergences, gauges.elections) == ({}, {}, {})


def test_a_state_that_vanishes_by_hand_takes_its_due_writes_with_it():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.broker_leaves(3)
    history.delete("/brokers/topics/t/partitions/0/state")
    history.delete("/brokers/topics/t/partitions/0/state")
    assert history.gauges().pending_writes == 0


def test_a_broker_that_dies_before_a_partitions_first_write_may_change_that_write():
    history = ZnodeHistory().start(*ALL)
    history.topic("t", {0: [2, 3]})
    history.broker_leaves(2)
    history.state("t", 0, 1, 7, [1])
    row = history.row("t", 0)
    assert (row.leader, row.leader_epoch, row.predicted_leader) == (1, 7, None)


def overtaken() -> ZnodeHistory:
    """Kill broker 2. The controller writes t-0 and a later event's new-0, but not u-0, which 2 leads too."""
    topics = {"t": {0: ([2, 3], 2, 0, [2, 3])}, "u": {0: ([2, 3], 2, 0, [2, 3])}}
    history = ZnodeHistory().start(*ALL, topics=topics)
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    history.topic("new", {0: [3]})
    history.state("new", 0, 3, 0, [3])
    assert history.predicted("u", 0) == (3, 1, (3,))
    return history


def test_a_topic_that_nobody_creates_while_later_events_write_was_not_taken_up():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.topic("new", {0: [2, 3]})
    history.broker_leaves(3)
    history.state("t", 0, 2, 1, [2])
    effects = history.heartbeat(4_000)
    assert "withdrawn new-0 NewPartition -> OnlinePartition" in "\n".join(history.transitions(effects))
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (0, {"write_never_came": 1})


def test_a_partition_that_is_not_created_with_the_others_of_its_topic_stays_new():
    history = ZnodeHistory().start(*ALL, topics=on([2, 3], 2, 0, [2, 3]))
    history.topic("new", {0: [2], 1: [3]})
    history.state("new", 1, 3, 0, [3])  # 2 had asked to be shut down, without a trace
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    effects = history.heartbeat(4_000)
    assert "new-0 NewPartition -> OnlinePartition" in history.moves(effects, Status.WITHDRAWN)
    assert "new-0@2 NewReplica -> OnlineReplica" in history.moves(effects, Status.FINAL)
    assert history.row("new", 0).state == "NewPartition"
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (0, {"write_never_came": 1})


def test_what_does_not_come_while_records_are_lacking_is_not_given_up():
    history = overtaken()
    history.generation += 1
    history.seq = 5
    assert history.heartbeat(4_000)[-1].divergences == {"records_missing": 1}
    assert history.predicted("u", 0) == (3, 1, (3,))


def test_a_write_that_later_events_overtake_is_waited_for_at_first():
    history = overtaken()
    history.heartbeat(1_000)
    history.state("u", 0, 3, 1, [3])
    assert_all_as_expected(history)


def test_a_topic_removed_by_hand_during_an_event_takes_its_due_writes_with_it():
    topics = {name: {0: ([2, 3], 2, 0, [2, 3])} for name in "tuv"}
    history = ZnodeHistory().start(*ALL, topics=topics)
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    effects = history.delete("/brokers/topics/u")
    assert "withdrawn u-0 OfflinePartition -> OnlinePartition" in "\n".join(history.transitions(effects))
    assert history.predicted("v", 0) == (3, 1, (3,))
    effects = history.state("v", 0, 3, 1, [3])
    assert "final t-0@2 OnlineReplica -> OfflineReplica" in history.transitions(effects)
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (0, {"topic_removed_by_hand": 1})


def test_writes_that_fit_nothing_that_is_due_win_and_what_is_due_goes():
    history = ZnodeHistory().start(*ALL, topics=on([1, 2, 3], 1, 0, [1, 2, 3]))
    history.broker_leaves(2)
    path = "/brokers/topics/t/partitions/0/state"
    history.znodes[path] = (history.znodes[path][0], 5)
    history.state("t", 0, 3, 4, [3])
    gauges = history.gauges()
    assert (gauges.pending_writes, gauges.divergences) == (0, {"different_leader": 1, "missed_changes": 5})


# Gauges


@pytest.mark.parametrize(("release", "under", "at"), [((3, 6), 2, 1), ((3, 7), 1, 2)])
def test_min_isr_is_the_brokers_setting_and_from_3_7_on_capped_by_the_replicas(release, under, at):
    settings = {"min.insync.replicas": 2}
    topics = {"t": {0: ([1, 2], 1, 0, [1]), 1: ([1, 2], 1, 0, [1, 2]), 2: ([1], 1, 0, [1])}}
    gauges = ZnodeHistory(release=release, settings=settings).start(1, 2, topics=topics).gauges()
    assert (gauges.under_min_isr_partitions, gauges.at_min_isr_partitions) == (under, at)


@pytest.mark.parametrize("is_being_deleted", [False, True])
@pytest.mark.parametrize(("when", "read"), [("before", True), ("right after", True), ("later", False)])
def test_partitions_that_are_added_around_a_takeover_are_read_by_it(when, read, is_being_deleted):
    """The controller learns of them only later.

    It creates them then, or takes them back if the topic is being deleted.
    """
    history = ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 3], 1, 0, [1, 3])}})
    if is_being_deleted:
        history.broker_leaves(3)
        history.delete_topic("t")
        history.the_controller_writes_its_due()
    history.delete("/controller")
    seen = len(history.effects)
    grown = {0: [1, 3], 1: [2, 1]}
    if when == "before":
        history.topic("t", grown)
    history.controller(2, 2)
    history.now_ms += 100 if when == "later" else 0
    if when != "before":
        history.topic("t", grown)
    history.the_controller_writes_its_due()
    moves = history.moves(tuple(history.effects[seen:]), Status.FINAL)
    assert ("t-1@2 OnlineReplica -> OnlineReplica" in moves) == read
    assert ("t-1@2 NonExistentReplica -> NewReplica" in moves) == (not read and not is_being_deleted)
    assert history.gauges().divergences == {}
