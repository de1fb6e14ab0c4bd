"""Departures that the controller never read, and superfluous writes. Both are withdrawn or given up in time.

The histories are those to which the modelled cluster's failures shrank.
"""

from __future__ import annotations

import pytest

from controller.contract.effect_rows import Request, Status, Transition
from tests.controller.znode_history import (
    ZnodeHistory,
    assert_each_effect_ends_once,
    broker_znode,
    controller_znode,
    on,
    state_znode,
    topic_znode,
)


def provisional(history: ZnodeHistory) -> set[str]:
    """Return the expected effects that have not ended."""
    rows = [row for row in history.effects if isinstance(row, (Transition, Request))]
    ended = {row.effect for row in rows if row.status is not Status.PROVISIONAL}
    return {row.effect for row in rows} - ended


def at_rest(history: ZnodeHistory) -> ZnodeHistory:
    """Let two minutes pass."""
    for _ in range(12):
        history.heartbeat(10_000)
    return history


def the_controller_reads_a_notification(history: ZnodeHistory) -> None:
    path = "/isr_change_notification/isr_change_0000000001"
    history.write(path, {"version": 1, "partitions": []})
    history.delete(path)


def assert_nothing_is_expected(history: ZnodeHistory) -> None:
    assert provisional(history) == set()
    assert history.gauges().pending_writes == 0
    assert not [key for key in history.open_alerts() if key.startswith(("ControllerOverdue", "Partitions", "Election"))]
    assert_each_effect_ends_once(history)


@pytest.mark.parametrize("release", [(0, 10), (1, 1), (2, 1)])
def test_up_to_2_1_a_bounce_that_the_controller_did_not_read_costs_no_write(release):
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=on([2], 2, 0, [2]))
    history.broker_leaves(2)
    history.broker(2)
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("t", 0).state == "OnlinePartition"


def test_brokers_that_left_together_and_are_back_were_never_missed():
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([3], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=topics)
    for change in (history.broker_leaves, history.broker):
        for broker in (3, 2):
            change(broker)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_broker_that_left_with_one_that_is_back_left_for_itself():
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([3, 1], 3, 0, [3, 1])}}
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, topics=topics)
    history.broker_leaves(3)
    history.broker_leaves(2)
    history.broker(2)
    history.heartbeat(10_000)
    assert (history.predicted("t", 0), history.predicted("t", 1)) == (None, (1, 1, (1,)))
    history.the_controller_writes_its_due()
    at_rest(history)
    assert provisional(history) == set()
    assert set(history.open_alerts()) == {"BrokerCrashed/broker 3"}


def test_a_broker_whose_return_was_handled_does_not_leave_again():
    topics = {"t": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2]), 2: ([3], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, topics=topics)
    history.broker_leaves(3)
    history.broker_leaves(2)
    history.elect_preferred(("t", 0), ("t", 1))
    history.broker(2)
    history.broker(3)
    history.state("t", 1, 2, 1, [2])  # the preferred election's, and as well the return's
    history.state("t", 0, 1, 1, [1])
    history.delete("/admin/preferred_replica_election")
    at_rest(history)
    assert_nothing_is_expected(history)


def test_of_a_departure_that_has_begun_only_a_part_is_taken_back():
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([3, 1], 3, 0, [3, 1]), 2: ([1, 2], 1, 0, [1, 2])}}
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, topics=topics)
    history.broker_leaves(3)
    history.broker_leaves(2)
    history.broker(2)
    history.state("t", 1, 1, 1, [1])
    at_rest(history)
    assert provisional(history) == set()
    assert [history.row("t", number).state for number in topics["t"]] == ["OnlinePartition"] * 3
    assert_each_effect_ends_once(history)


def test_from_2_2_on_two_quick_bounces_may_cost_what_one_costs():
    history = ZnodeHistory(release=(3, 1)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    for _ in range(2):
        history.broker_leaves(3)
        history.broker(3)
    history.state("t", 0, -1, 1, [3])
    history.state("t", 0, 3, 2, [3])
    at_rest(history)
    assert_nothing_is_expected(history)


def test_from_2_2_on_a_bounce_stays_expected_until_the_controller_acts():
    history = ZnodeHistory(release=(3, 1)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    history.broker_leaves(3)
    history.broker(3)
    at_rest(history)
    assert history.gauges().pending_writes == 2
    assert "ControllerOverdue" in history.open_alerts()


@pytest.mark.parametrize("release", [(2, 1), (2, 2), (2, 8), (3, 9)])
def test_a_broker_that_registers_while_the_new_controller_loads_was_there(release):
    topics = {"t": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=release).start(1, 2, 3, topics=topics)
    history.controller_dies(1)
    history.controller(2, 2)
    history.broker(1)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_partition_without_a_leader_keeps_its_election():
    topics = {"t": {0: ([1], -1, 1, [1]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(2, 8)).start(2, 3, controller=3, topics=topics)
    history.controller_dies(3)
    history.controller(2, 2)
    history.broker(1)
    at_rest(history)
    assert history.predicted("t", 0) is not None


def test_a_load_that_wrote_other_states_may_have_found_the_broker():
    topics = {"t": {0: ([1], 1, 0, [1]), 1: ([2],)}}
    history = ZnodeHistory(release=(3, 4)).start(1, 2, 3, topics=topics)
    history.controller_dies(1)
    history.controller(2, 2)
    history.broker(1)
    history.state("t", 1, 2, 0, [2])
    at_rest(history)
    assert_nothing_is_expected(history)


def test_an_election_in_vain_is_given_up_once_its_request_is_gone():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2])}}
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=topics)  # taken for a release that rewrites them
    history.elect_preferred(("t", 0))
    the_controller_reads_a_notification(history)
    at_rest(history)
    assert history.gauges().pending_writes == 1, "the request is still there"
    history.delete("/admin/preferred_replica_election")
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_needless_write_is_kept_while_its_partition_wants_one():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([3, 1], 3, 0, [3, 1])}}
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=topics)
    history.broker_leaves(3)
    history.elect_preferred(("t", 0))
    history.delete("/admin/preferred_replica_election")
    at_rest(history)
    assert history.predicted("t", 1) == (1, 1, (1,))


def test_a_creation_is_never_needless():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3)
    history.topic("t", {0: [1, 2]})
    the_controller_reads_a_notification(history)
    at_rest(history)
    assert history.predicted("t", 0) == (1, 0, (1, 2))


def test_a_needless_reassignment_is_given_up_with_its_assignment():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.reassign(("t", 0, [1, 2]))
    the_controller_reads_a_notification(history)
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.context.topics["t"].partitions[0].pending_assignments == ()


def test_a_partition_that_left_the_znode_before_it_was_created_is_forgotten():
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("t", {0: [1, 2], 1: [2, 3]})
    history.topic("t", {0: [1, 2]})  # the controller rewrote it from memory, in a reassignment
    at_rest(history)
    assert_nothing_is_expected(history)
    assert sum(history.gauges().partitions_by_state.values()) == 1


def test_without_a_controller_too_a_partition_that_left_the_znode_is_forgotten():
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.delete("/controller")
    history.topic("t", {0: [1, 2], 1: [2, 3]})
    history.topic("t", {0: [1, 2]})
    assert sum(history.gauges().partitions_by_state.values()) == 1


def test_a_new_partition_is_forgotten_when_its_topic_is_rewritten_without_it():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([4],)}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=topics)
    assert history.row("t", 1).state == "NewPartition"
    history.topic("t", {0: [1, 2]})
    at_rest(history)
    assert_nothing_is_expected(history)
    assert sum(history.gauges().partitions_by_state.values()) == 1


def test_a_person_who_takes_a_new_partition_out_changes_no_memory():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([4],)}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=topics)
    history.write("/brokers/topics/t", topic_znode({0: [1, 2]}), author=0x999, cxid=1)
    assert history.row("t", 1).state == "NewPartition"


def test_a_partition_that_the_controller_has_begun_to_create_stays():
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("t", {0: [1, 2], 1: [2, 3], 2: [3, 1]})
    history.write("/brokers/topics/t/partitions/1/state", state_znode(2, 0, [2, 3]))
    history.topic("t", {0: [1, 2], 1: [2, 3]})
    assert sum(history.gauges().partitions_by_state.values()) == 3


def test_a_partition_that_only_a_later_event_could_create_is_forgotten_too():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2])}, "u": {0: ([3], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=topics)
    history.broker_leaves(3)
    history.topic("t", {0: [1, 2], 1: [3]})
    history.broker(3)
    for leader_epoch, leader in enumerate((-1, 3), 1):  # the controller handles the broker first
        history.write("/brokers/topics/u/partitions/0/state", state_znode(leader, leader_epoch, [3]))
    history.topic("t", {0: [1, 2]})
    at_rest(history)
    assert_nothing_is_expected(history)
    assert "CreationDue" not in {key.split("/")[0] for key in history.open_alerts()}
    assert sum(history.gauges().partitions_by_state.values()) == 2


def test_a_controller_that_does_not_know_the_topic_yet_drops_its_deletion():
    history = ZnodeHistory(release=(3, 4)).start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("new", {0: [1, 2]})
    history.write("/admin/delete_topics/new", None)
    history.delete("/admin/delete_topics/new")
    history.write("/brokers/topics/new/partitions/0/state", state_znode(1, 0, [1, 2]))
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("new", 0).state == "OnlinePartition"
    assert not history.context.topics["new"].queued_for_deletion


def test_a_person_who_removes_the_entry_of_a_new_topic_stops_no_deletion():
    history = ZnodeHistory(release=(3, 4)).start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.topic("new", {0: [1, 2]})
    history.write("/admin/delete_topics/new", None)
    history.delete("/admin/delete_topics/new", author=0x999, cxid=1)
    assert history.context.topics["new"].queued_for_deletion


def test_a_slow_controller_may_have_loaded_the_broker():
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, topics={"t": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2])}})
    history.controller_dies(1)
    history.controller(2, 2)
    history.heartbeat(1_000)
    history.broker(1)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_controller_that_hung_in_its_load_may_have_loaded_the_broker():
    topics = {"t": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(2, 5)).start(1, 2, 3, topics=topics)
    history.delete("/controller")
    history.controller(2, 2)
    history.broker_leaves(1)
    history.heartbeat(4_000)
    history.broker(1)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_controller_that_hung_in_its_load_may_have_loaded_the_bounced_broker():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([2], 2, 0, [2]))
    history.delete("/controller")
    history.controller(1, 2)
    history.heartbeat(1_000)
    history.broker_bounces(2)
    assert provisional(history) != set()
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_partition_whose_election_was_needless_waits_for_no_other_one():
    topics = {"t": {0: ([1], 1, 0, [1])}, "u": {0: ([1], 1, 0, [1]), 1: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(2, 4)).start(1, 2, 3, topics=topics)
    history.controller_dies(1)
    history.controller(3, 2)
    history.broker(1)
    history.broker(4)
    history.delete_topic("u")
    for number, broker in ((0, 1), (1, 2)):
        history.write(f"/brokers/topics/u/partitions/{number}/state", state_znode(-1, 1, [broker], 2))
    history.heartbeat(70_000)
    history.broker_leaves(4)
    history.broker(4)
    at_rest(history)
    assert history.row("t", 0).state == "OnlinePartition"
    assert history.predicted("t", 0) is None


def test_a_bounce_stays_expected_of_a_controller_that_worked_before():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([2], 2, 0, [2]))
    history.broker_bounces(2)
    at_rest(history)
    assert "ControllerOverdue" in history.open_alerts()


def test_the_topics_znode_shows_a_reassignment_that_was_taken_for_another_event():
    history = ZnodeHistory(release=(0, 10)).start(1, 2, 4, topics=on([2], 2, 0, [2]))
    history.broker_leaves(2)
    history.reassign(("t", 0, [4]))
    history.broker(2)
    history.topic("t", {0: [4, 2]})
    for leader, leader_epoch, isr in ((2, 1, [2]), (2, 1, [2, 4]), (4, 2, [2, 4]), (4, 3, [4])):
        history.state("t", 0, leader, leader_epoch, isr)
    history.topic("t", {0: [4]})
    history.delete("/admin/reassign_partitions")
    at_rest(history)
    assert history.row("t", 0).replicas == (4,)
    assert "AssignmentEdited" not in history.open_alerts()


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_complete_read_finds_a_reassignment_that_can_complete(has_moved):
    adding = topic_znode({0: [3, 1]}, adding_replicas={"0": [3]}, removing_replicas={"0": [1]})
    history = ZnodeHistory(release=(3, 1))
    writes = {"/controller": controller_znode(2), "/controller_epoch": 1}
    writes |= {f"/brokers/ids/{broker}": broker_znode(broker) for broker in (1, 2, 3)}
    writes |= {"/brokers/topics/t": adding}
    leader, leader_epoch = (3, 2) if has_moved else (1, 1)
    writes |= {"/brokers/topics/t/partitions/0/state": state_znode(leader, leader_epoch, [1, 3])}
    history.snapshot(*writes.items())
    if not has_moved:
        history.state("t", 0, 3, 2, [1, 3])
    history.state("t", 0, 3, 3, [3])
    history.write("/brokers/topics/t", topic_znode({0: [3]}))
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("t", 0).replicas == (3,)


def test_a_reassignment_can_be_cancelled_when_its_replicas_are_in_sync():
    history = ZnodeHistory(release=(2, 6)).start(1, 2, topics=on([1], 1, 0, [1]))
    history.write("/brokers/topics/t", topic_znode({0: [1, 2]}, adding_replicas={"0": [2]}))
    history.state("t", 0, 1, 1, [1])
    history.state("t", 0, 1, 1, [1, 2])
    history.topic("u", {0: [1]})
    history.write("/brokers/topics/t", topic_znode({0: [1]}))
    for leader_epoch in (2, 3):
        history.state("t", 0, 1, leader_epoch, [1])
    history.state("u", 0, 1, 0, [1])
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("t", 0).replicas == (1,)
    assert "AssignmentEdited" not in history.open_alerts()


def test_of_two_bounces_that_were_not_read_the_later_is_taken_back_first():
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    for _ in range(2):
        history.broker_leaves(3)
        history.broker(3)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_complete_read_in_a_failover_poisons_no_controller():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, topics=on([3], 3, 0, [3]))
    history.broker_leaves(3)
    history.delete("/controller")
    history.controller(2, 2)
    assert history.predicted("t", 0) == (-1, 1, (3,)), "its failover takes a replica out of an ISR"
    history.generation, history.seq = 2, -1
    history.start(1, 2, controller=2, epoch=2, topics=on([3], 3, 0, [3]))
    history.heartbeat()
    assert not history.context.header.is_poisoned
    assert not [key for key in history.open_alerts() if key.startswith("ControllerPoisoned")]


def test_a_broker_that_a_read_missed_and_that_leads_again_needs_no_election():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics=on([3], 3, 0, [3]))
    history.broker(3)
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_controller_with_another_write_due_may_still_come_to_a_registration():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, topics=on([3], 3, 0, [3]))
    history.topic("u", {0: [1]})
    history.broker(3)
    at_rest(history)
    assert history.gauges().pending_writes == 2


def test_a_shutdown_attempt_that_no_write_follows_was_not_made():
    topics = {"t": {0: ([1, 2], 1, 0, [1]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 1, 2, 1, [2])  # only the shutdown of broker 1, which cannot give up t-0, explains it
    assert history.context.header.shutdowns.under_way == (1,)
    history.state("t", 0, 1, 0, [1, 2])
    history.state("t", 1, 2, 1, [2, 1])
    history.heartbeat(6_000)
    assert history.gauges().pending_writes == 2, "it asks again"
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.context.header.shutdowns.under_way == ()


def test_a_broker_that_stays_in_its_isrs_did_not_shut_down():
    topics = {"t": {0: ([1, 2], 1, 0, [1, 2]), 1: ([2, 1], 2, 0, [2, 1])}}
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, controller=3, topics=topics)
    history.state("t", 0, 2, 1, [2])
    assert history.context.header.shutdowns.under_way == (1,)
    assert history.predicted("t", 1) == (2, 1, (2,))
    the_controller_reads_a_notification(history)
    at_rest(history)
    assert provisional(history) == set()
    assert history.context.header.shutdowns.under_way == ()


def reassigned_by_znode(read: dict[str, object], isr: list[int], replicas: list[int]) -> ZnodeHistory:
    """Return a complete read of 2.0 with t-0 on its way to [3], with this assignment and ISR."""
    entry = {"topic": "t", "partition": 0, "replicas": [3]}
    history = ZnodeHistory(release=(2, 0))
    writes = {"/controller": controller_znode(1), "/controller_epoch": 1}
    writes |= {"/admin/reassign_partitions": {"version": 1, "partitions": [entry]}}
    writes |= {f"/brokers/ids/{broker}": broker_znode(broker) for broker in (1, 2, 3)}
    writes |= {"/brokers/topics/t": {"version": 1, "partitions": {"0": replicas}}}
    writes |= {"/brokers/topics/t/partitions/0/state": state_znode(2, 1, isr)} | read
    history.snapshot(*writes.items())
    return history


def completes(history: ZnodeHistory) -> None:
    history.state("t", 0, 3, history.context.topics["t"].partitions[0].zk_state.leader_epoch + 1, [2, 3])
    history.state("t", 0, 3, history.context.topics["t"].partitions[0].zk_state.leader_epoch + 1, [3])
    history.topic("t", {0: [3]})
    history.delete("/admin/reassign_partitions")
    at_rest(history)
    assert_nothing_is_expected(history)
    assert "AssignmentEdited" not in history.open_alerts()
    assert history.row("t", 0).replicas == (3,)


def test_up_to_2_3_a_read_finds_a_reassignment_that_waits_for_its_replicas():
    history = reassigned_by_znode({}, [2], [3, 2])
    assert history.predicted("t", 0) is None
    assert history.row("t", 0).removing_replicas == (2,)
    history.state("t", 0, 2, 1, [2, 3])
    assert history.predicted("t", 0) == (3, 3, (3,))
    completes(history)


def test_up_to_2_3_a_complete_read_finds_a_reassignment_that_can_complete():
    history = reassigned_by_znode({}, [2, 3], [3, 2])
    assert history.predicted("t", 0) == (3, 3, (3,))
    completes(history)


def test_up_to_2_3_a_complete_read_finds_a_reassignment_that_has_not_begun():
    history = reassigned_by_znode({}, [2], [2])
    history.topic("t", {0: [3, 2]})
    history.state("t", 0, 2, 2, [2])
    history.state("t", 0, 2, 2, [2, 3])
    completes(history)


def test_a_complete_read_leaves_out_reassignments_that_the_controller_drops():
    done = reassigned_by_znode({}, [3], [3])
    assert done.predicted("t", 0) is None
    queued = reassigned_by_znode({"/admin/delete_topics/t": None}, [2], [3, 2])
    assert queued.row("t", 0).removing_replicas == ()
    of_another = {"version": 1, "partitions": [{"topic": "u", "partition": 0, "replicas": [3]}]}
    unknown = reassigned_by_znode({"/admin/reassign_partitions": of_another}, [2], [2])
    assert unknown.predicted("t", 0) is None
    nobody = reassigned_by_znode({"/controller": None}, [2], [3, 2])
    assert nobody.row("t", 0).removing_replicas == ()


def test_a_doubt_about_a_new_topics_broker_ends_with_the_due_writes():
    history = ZnodeHistory(release=(2, 7)).start(1, 2, 3, topics=on([1], 1, 0, [1]))
    history.controller_dies(1)
    history.controller(2, 2)
    history.state("t", 0, -1, 1, [1])
    history.broker(4)
    history.topic("new", {0: [4], 1: [1]})
    history.heartbeat(4_000)
    history.broker(1)
    history.state("t", 0, 1, 2, [1])  # the controller handles the broker before the topic
    history.state("new", 0, 4, 0, [4])
    history.state("new", 1, 1, 0, [1])
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("new", 0).state == "OnlinePartition"


def test_a_broker_that_the_load_misses_is_sent_no_end_of_a_reassignment():
    topics = {"t": {0: ([2, 3, 4], 2, 0, [2, 3])}, "u": {0: ([3, 4], 3, 0, [3])}}
    history = ZnodeHistory(release=(2, 1)).start(1, 2, 3, 4, topics=topics)
    history.reassign(("t", 0, [2]))
    history.delete("/controller")
    history.controller(2, 2)
    history.broker_leaves(4)
    history.state("t", 0, 2, 1, [2, 3])
    history.state("t", 0, 2, 2, [2])
    history.topic("t", {0: [2]})
    history.delete("/admin/reassign_partitions")
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("t", 0).replicas == (2,)


def test_the_topics_znode_shows_the_end_of_a_reassignment_read_with_it():
    history = ZnodeHistory(release=(2, 7))
    writes = {"/controller": controller_znode(1), "/controller_epoch": 1}
    writes |= {f"/brokers/ids/{broker}": broker_znode(broker) for broker in (1, 2)}
    writes |= {"/brokers/topics/t": topic_znode({0: [1, 2]}, adding_replicas={"0": [2]})}
    writes |= {"/brokers/topics/t/partitions/0/state": state_znode(1, 2, [1, 2])}
    history.snapshot(*writes.items())
    assert history.predicted("t", 0) == (1, 3, (1, 2)), "it may come, or was there"
    history.topic("t", {0: [1, 2]})
    at_rest(history)
    assert_nothing_is_expected(history)


def test_a_topic_that_is_first_read_in_a_reassignment_was_created_before():
    history = ZnodeHistory(release=(3, 1)).start(1, 3, topics=on([1], 1, 0, [1]))
    moves = topic_znode({0: [3, 4, 1]}, adding_replicas={"0": [3]}, removing_replicas={"0": [1]})
    history.write("/brokers/topics/new", moves)
    assert history.predicted("new", 0) == (1, 1, (1,))
    history.state("new", 0, 1, 1, [1])
    history.state("new", 0, 1, 1, [1, 3])
    history.broker(4)
    history.state("new", 0, 1, 1, [1, 3, 4])
    history.state("new", 0, 3, 2, [1, 3, 4])
    history.state("new", 0, 3, 3, [3, 4])
    history.topic("new", {0: [3, 4]})
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("new", 0).replicas == (3, 4)


def test_a_reassignment_by_znode_that_the_api_replaced_does_not_go_on():
    topics = {"t": {0: ([3], 3, 0, [3]), 1: ([1], 1, 0, [1])}}
    history = ZnodeHistory(release=(2, 8)).start(1, 3, topics=topics)
    history.reassign(("t", 0, [2]), ("t", 1, [2]))
    history.reassign(("t", 1, [2]))  # the API asks for the replicas that t-0 has
    history.state("t", 0, 3, 1, [3])
    history.topic("t", {0: [3], 1: [1]})
    history.write(
        "/brokers/topics/t", topic_znode({0: [3], 1: [2, 1]}, adding_replicas={"1": [2]}, removing_replicas={"1": [1]})
    )
    history.state("t", 1, 1, 1, [1])
    history.delete("/admin/reassign_partitions")
    history.broker(2)
    history.state("t", 1, 1, 2, [1])
    at_rest(history)
    assert_nothing_is_expected(history)
    assert (history.row("t", 0).replicas, history.row("t", 1).replicas) == ((3,), (2, 1))


def test_a_request_that_the_controller_drops_from_its_znode_begins_no_reassignment():
    history = ZnodeHistory(release=(1, 1)).start(1, 2, topics=on([1], 1, 0, [1]))
    history.reassign(("t", 0, [2]))
    history.delete("/admin/reassign_partitions")  # it ends another one, and knows only that
    at_rest(history)
    assert_nothing_is_expected(history)
    assert (history.row("t", 0).replicas, history.row("t", 0).adding_replicas) == ((1,), ())


def test_a_controller_that_seemed_to_load_a_topic_may_not_know_it_yet():
    history = ZnodeHistory(release=(1, 0)).start(1, 2, topics=on([1], 1, 0, [1]))
    history.delete("/controller")
    history.controller(2, 2)
    history.topic("new", {0: [2]})
    history.delete_topic("new")
    history.delete("/admin/delete_topics/new")
    history.state("new", 0, 2, 0, [2])
    at_rest(history)
    assert_nothing_is_expected(history)
    assert not history.context.topics["new"].queued_for_deletion


def test_a_write_is_one_of_the_controller_whose_epoch_it_has():
    history = ZnodeHistory(release=(2, 0)).start(1, 2, 3, topics=on([2], 2, 0, [2]))
    history.broker_leaves(2)
    history.broker(2)
    history.broker_leaves(2)
    history.delete("/controller")
    history.controller(3, 2)
    history.state("t", 0, -1, 1, [2], 1)  # the deposed controller, which reads of one departure only
    history.broker(2)
    history.state("t", 0, 2, 2, [2], 2)
    at_rest(history)
    assert_nothing_is_expected(history)
    assert history.row("t", 0).state == "OnlinePartition"


def test_a_broker_that_left_again_was_not_read_together_with_a_departure():
    topics = {"t": {0: ([3], 3, 0, [3])}, "u": {0: ([2], 2, 0, [2])}}
    history = ZnodeHistory(release=(2, 5)).start(1, 2, 3, topics=topics)
    history.broker_leaves(2)
    history.topic("u", {0: [2], 1: [4]})
    history.broker_leaves(3)
    history.broker(2)
    history.broker(4)
    moves = topic_znode({0: [4, 3, 2]}, adding_replicas={"0": [4, 2]})
    history.write("/brokers/topics/t", moves)
    history.broker_leaves(2)
    history.state("t", 0, 3, 1, [3])
    history.state("t", 0, 3, 2, [3])
    assert history.row("t", 0).leader_epoch == 2


# Pages that the modelled cluster refuted


def test_nobody_is_late_without_a_controller():
    history = ZnodeHistory(release=(2, 8)).start(1, 2, 3, controller=1, topics={"a": {0: ([2], 2, 0, [2])}})
    history.topic("b", {0: [2]})
    history.delete("/controller")
    history.heartbeat(70_000)
    assert "NoController" in history.open_alerts()
    assert "ControllerOverdue" not in history.open_alerts()


@pytest.mark.parametrize("answers", [True, False])
def test_a_broker_that_does_not_answer_stop_replica_is_not_the_controllers_delay(answers):
    history = ZnodeHistory(release=(3, 1)).start(1, 2, 3, controller=1, topics={"a": {0: ([2], 2, 0, [2])}})
    history.delete_topic("a")
    history.state("a", 0, -1, 1, [2])
    if answers:
        history.topic_vanishes("a", 0)
    for _ in range(6):
        history.heartbeat(60_000)
    assert not [key for key in history.open_alerts() if key.startswith("ControllerOverdue")]
    assert ("DeletionStuck/partitions" in history.open_alerts()) is not answers


@pytest.mark.parametrize("is_back", [True, False])
def test_a_departure_that_the_controller_may_have_missed_poisons_no_process(is_back):
    history = ZnodeHistory(release=(2, 4)).start(1, 2, 3, controller=1, topics={"a": {0: ([3, 2], 3, 0, [3, 2])}})
    history.broker_leaves(2)
    if is_back:
        history.broker(2)
    history.delete("/controller")
    history.controller(1, 2)
    history.heartbeat(1_000)
    assert ("ControllerPoisoned/broker 1" in history.open_alerts()) is not is_back


@pytest.mark.parametrize("release", [(0, 11), (1, 1), (2, 0), (2, 1)])
@pytest.mark.parametrize("beat_ms", [1_000, 60_000])
def test_a_bounce_that_was_not_read_costs_no_write_though_another_broker_registers(release, beat_ms):
    history = ZnodeHistory(release=release).start(1, 2, 3, 4, controller=3, topics=on([4, 1], 4, 0, [4, 1]))
    history.broker_leaves(4)
    history.broker(4)
    history.heartbeat(3_000)
    history.broker(9)
    for _ in range(180_000 // beat_ms):
        history.heartbeat(beat_ms)
    assert_nothing_is_expected(history)


def test_an_election_that_is_given_up_takes_no_led_partition_offline():
    """Broker 2 registers twice and broker 4 once before the controller reads /brokers/ids, and handles both at once."""
    topics = {"t": {0: ([2], 2, 0, [2]), 1: ([2, 1, 4], 2, 0, [2, 1, 4]), 2: ([4, 1], 4, 0, [4, 1])}}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, 4, controller=3, topics=topics)
    for broker in (2, 2, 4):
        history.broker_bounces(broker)
    history.state("t", 1, 1, 1, [1])
    history.state("t", 2, 1, 1, [1])
    history.state("t", 0, -1, 1, [2])
    history.state("t", 0, 2, 2, [2])
    at_rest(history)
    assert history.row("t", 0).state == "OnlinePartition"
    assert history.gauges().offline_partitions == 0
    final = [row for row in history.effects if isinstance(row, Transition) and row.status is Status.FINAL]
    moves = [row.to_state for row in final if (row.subject, row.topic, row.partition) == ("partition", "t", 0)]
    assert moves[-1:] == ["OnlinePartition"]
    assert_each_effect_ends_once(history)
