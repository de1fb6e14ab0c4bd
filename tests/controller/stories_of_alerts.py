"""Stories of all kinds of alerts, with one partition, topic or broker and with three.

A story yields its history while the alert is open, and goes on until the alert has ended. `test_sentences` runs the
stories.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from controller.contract.forwarder_status import LeftSession
from controller.contract.ids import BrokerId, Zxid
from controller.contract.records import Record, RecordKind
from controller.model.watch_state import Quarantines
from controller.restore.quarantine import quarantine, quarantines_with
from controller.restore.stored_context import new_context
from controller.step import steps
from tests.controller.ensembles import described, ensemble, large, lost, one_lost
from tests.controller.znode_history import LOG_DIR_EVENT, ZnodeHistory, broker_znode, controller_znode

Telling = Iterator[ZnodeHistory]

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class Story(NamedTuple):
    """Beginning and end of an alert of one kind. `counts` marks alerts whose sentence counts things."""

    kind: str
    counts: bool
    tell: Callable[..., Telling]

    @property
    def title(self) -> str:
        """Return the story's name in words."""
        return self.tell.__name__.replace("_", " ")


STORIES: list[Story] = []


def of(kind: str, *, counts: bool = False) -> Callable[[Callable[..., Telling]], Callable[..., Telling]]:
    """Register a story of an alert. A story that counts gets the count as its argument."""

    def mark(tell: Callable[..., Telling]) -> Callable[..., Telling]:
        STORIES.append(Story(kind, counts, tell))
        return tell

    return mark


def a_cluster(
    replicas: list[int], isr: list[int], count: int = 1, *, brokers: Iterable[int] = (1, 2, 3, 4), **more: Any
) -> ZnodeHistory:
    """Return topic t with `count` partitions, led by the first broker of the ISR. Broker 4 is controller."""
    made = {key: more.pop(key) for key in ("release", "settings", "preferred_controllers") if key in more}
    topics = {"t": {number: (replicas, isr[0], 4, isr) for number in range(count)}}
    return ZnodeHistory(**made).start(*brokers, controller=more.pop("controller", 4), topics=topics, **more)


def over(history: ZnodeHistory) -> ZnodeHistory:
    """Let time pass until the alert has resolved."""
    history.heartbeat(31 * MINUTE_MS)
    return history


def read_again(history: ZnodeHistory) -> None:
    history.generation, history.seq = history.generation + 1, -1
    history.start(1, 2, 3, 4, controller=4, topics={"t": {0: ([1, 2], 1, 4, [1, 2])}})
    history.heartbeat()


# --- partitions


def broker_3_dies_and_returns(history: ZnodeHistory) -> Telling:
    history.broker_leaves(3)
    history.heartbeat(6_000)
    yield history
    history.broker(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)


@of("PartitionsOffline", counts=True)
def the_only_replicas_in_sync_die(count: int) -> Telling:
    history = a_cluster([3, 1, 2], [3], count)
    yield from broker_3_dies_and_returns(history)


@of("PartitionsOffline", counts=True)
def the_only_replicas_die(count: int) -> Telling:
    history = a_cluster([3], [3], count)
    yield from broker_3_dies_and_returns(history)


@of("PartitionsOffline")
def one_partition_has_another_live_replica_and_one_has_none() -> Telling:
    history = a_cluster([3], [3])
    history.topic("u", {0: [3, 1]})
    history.state("u", 0, 3, 0, [3])
    yield from broker_3_dies_and_returns(history)


@of("PartitionsOffline", counts=True)
def a_topic_is_created_on_a_dead_broker(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], brokers=(1, 2, 4))
    history.topic("new", {number: [3] for number in range(count)})
    history.heartbeat(6_000)
    yield history
    history.broker(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)


@of("PartitionsOffline", counts=True)
def a_replica_in_sync_is_back_and_not_elected(count: int) -> Telling:
    history = a_cluster([3], [3], count)
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.broker(3)
    history.heartbeat(6_000)
    yield history
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("PartitionsLeaderless", counts=True)
def a_state_without_a_leader_that_nobody_corrects(count: int) -> Telling:
    history = a_cluster([2, 3], [2, 3], count, release=(1, 1))
    for number in range(count):
        history.state("t", number, -1, 5, [2, 3])
    history.heartbeat(11_000)
    yield history
    for number in range(count):
        history.state("t", number, 2, 6, [2, 3])
    history.heartbeat()


@of("ElectionDue", counts=True)
def a_leader_dies_and_the_controller_takes_its_time(count: int) -> Telling:
    history = a_cluster([3, 1], [3, 1], count)
    history.broker_leaves(3)
    history.heartbeat(6_000)
    yield history
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("ElectionDue", counts=True)
def a_leader_dies_while_there_is_no_controller(count: int) -> Telling:
    history = a_cluster([3, 1], [3, 1], count)
    history.delete("/controller")
    history.broker_leaves(3)
    history.heartbeat(6_000)
    yield history
    history.controller(4, 2)
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("CreationDue", counts=True)
def a_topic_is_not_created(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.topic("new", {number: [1, 2] for number in range(count)})
    history.heartbeat(11_000)
    yield history
    history.the_controller_writes_its_due()


@of("PartitionsUnderMinIsr", counts=True)
def brokers_that_acks_all_needs_crash(count: int) -> Telling:
    history = a_cluster([1, 2, 3], [1, 2, 3], count, settings={"min.insync.replicas": 2})
    for broker in (2, 3):
        history.broker_leaves(broker)
        history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    yield history
    for number in range(count):
        history.state("t", number, 1, 6, [1, 2, 3])
    history.heartbeat()


@of("PartitionsUnderMinIsr", counts=True)
def topics_ask_for_more_replicas_than_they_have(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], count, release=(2, 8))
    history.write("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "3"}})
    history.heartbeat()
    yield history
    history.write("/config/topics/t", {"version": 1, "config": {}})


@of("PartitionsUnderReplicated", counts=True)
def replicas_on_a_live_broker_fall_behind(count: int) -> Telling:
    history = a_cluster([1, 2, 3], [1, 2, 3], count, settings={"min.insync.replicas": 2})
    for number in range(count):
        history.state("t", number, 1, 4, [1, 2])
    history.heartbeat(MINUTE_MS)
    yield history
    for number in range(count):
        history.state("t", number, 1, 4, [1, 2, 3])
    history.heartbeat()


@of("UncleanElection", counts=True)
def a_replica_that_lags_is_elected(count: int) -> Telling:
    history = a_cluster([3, 2], [3], count, settings={"unclean.leader.election.enable": True})
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    yield history
    over(history)


# --- brokers


@of("BrokerCrashed", counts=True)
def brokers_crash(count: int) -> Telling:
    history = a_cluster([1, 2, 3], [1, 2, 3], 7, brokers=(1, 2, 3, 4, 5, 6))
    history.topic("u", {number: [broker, 5, 6] for number, broker in enumerate((1, 2, 3))})
    history.the_controller_writes_its_due()
    for broker in (3, 5, 6)[:count]:
        history.broker_leaves(broker)
        history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    yield history
    for broker in (3, 5, 6)[:count]:
        history.broker(broker)
    history.heartbeat()


@of("BrokerCrashed", counts=True)
def brokers_that_host_nothing_go(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], brokers=(1, 2, 3, 4, 5, 6))
    for broker in (3, 5, 6)[:count]:
        history.broker_leaves(broker)
    history.heartbeat()
    yield history
    for broker in (3, 5, 6)[:count]:
        history.broker(broker)
    history.heartbeat()


@of("BrokerShutDown")
def a_broker_shuts_down_in_order() -> Telling:
    history = a_cluster([1, 3], [1, 3])
    history.state("t", 0, 1, 5, [1])
    history.broker_closes(3)
    history.heartbeat()
    yield history
    history.broker(3)
    history.heartbeat()


@of("BrokerAbsent", counts=True)
def replicas_are_assigned_to_brokers_that_were_never_seen(count: int) -> Telling:
    history = a_cluster([1, *(7, 8, 9)[:count]], [1])
    history.heartbeat(11_000)
    yield history
    for broker in (7, 8, 9)[:count]:
        history.broker(broker)
    history.heartbeat()


@of("BrokerUnknown", counts=True)
def a_reassignment_adds_brokers_that_nobody_has(count: int) -> Telling:
    ids = list((7, 8, 9)[:count])
    history = a_cluster([1, 2], [1, 2])
    history.reassign(("t", 0, [1, *ids]))
    history.topic("t", {0: [1, *ids, 2]}, adding_replicas={"0": ids}, removing_replicas={"0": [2]})
    history.the_controller_writes_its_due()
    history.heartbeat()
    history.heartbeat(11_000)
    yield history
    for broker in ids:
        history.broker(broker)
    history.heartbeat()


@of("BrokerUnknown", counts=True)
def a_topic_is_created_on_brokers_that_nobody_has(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.topic("new", {0: list((7, 8, 9)[:count])})
    history.heartbeat(11_000)
    yield history
    history.broker(7)
    history.broker(8)
    history.broker(9)
    history.heartbeat()


@of("BrokerWithoutSession", counts=True)
def a_registration_is_written_by_hand(count: int) -> Telling:
    history = a_cluster([3, 1], [3, 1], count)
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    history.write("/brokers/ids/3", broker_znode(3), owner=0)
    for number in range(count):
        history.state("t", number, 3, 6, [3])
    history.heartbeat()
    yield history
    history.broker_leaves(3)
    history.heartbeat()


@of("BrokerWithoutSession")
def a_broker_that_hosts_nothing_is_written_by_hand() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.write("/brokers/ids/7", broker_znode(7), owner=0)
    history.heartbeat()
    yield history
    history.broker_leaves(7)
    history.heartbeat()


@of("StartWillFail", counts=True)
def brokers_cannot_parse_settings(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    settings = {"cleanup.policy": "compacted", "min.insync.replicas": "two", "segment.ms": "-1"}
    bad = dict(list(settings.items())[:count])
    history.write("/config/topics/t", {"version": 1, "config": bad})
    history.heartbeat()
    yield history
    history.write("/config/topics/t", {"version": 1, "config": {}})
    history.heartbeat()


@of("BrokerBounced", counts=True)
def a_broker_registers_again_at_once(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for _ in range(count):
        history.broker_bounces(2)
    history.heartbeat(6_000)
    yield history
    over(history)


@of("BrokerFlapping")
def a_broker_keeps_leaving() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for _ in range(3):
        history.broker_leaves(2)
        history.broker(2)
        history.heartbeat(20_000)
    yield history
    over(history)


@of("LogDirFailed")
def a_disk_fails() -> Telling:
    history = a_cluster([3], [3])
    history.write(LOG_DIR_EVENT, {"version": 1, "broker": 3, "event": 1})
    history.state("t", 0, -1, 5, [3])
    history.heartbeat()
    yield history
    over(history)


# --- the controller


@of("NoController")
def the_controller_znode_goes_and_none_comes() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.delete("/controller")
    history.heartbeat(11_000)
    yield history
    history.controller(1, 2)
    history.heartbeat()


@of("ControllerMoved")
def another_broker_takes_over() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.delete("/controller")
    history.controller(2, 2)
    history.heartbeat()
    yield history
    over(history)


@of("ControllerFlapping")
def the_controller_is_deleted_four_times() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for epoch in range(2, 6):
        history.delete("/controller")
        history.controller(1 + epoch % 2, epoch)
        history.heartbeat(5_000)
    yield history
    history.heartbeat(2 * MINUTE_MS)


@of("ControllerFlapping")
def a_partition_without_a_state_ends_each_term() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.elect_preferred(("t", 7))
    for epoch in range(2, 7):
        history.delete("/controller")
        history.controller(1 + epoch % 2, epoch)
        history.heartbeat(80)
    yield history
    history.heartbeat(2 * MINUTE_MS)


@of("GhostController")
def the_controller_znode_is_edited() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.write("/controller", controller_znode(3))
    history.heartbeat()
    yield history
    history.delete("/controller")
    history.heartbeat()


@of("GhostController")
def the_controller_znode_is_of_another_session() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.delete("/controller")
    history.write("/controller", controller_znode(2), owner=12345)
    history.heartbeat()
    yield history
    history.delete("/controller")
    history.heartbeat()


@of("GhostController")
def the_controllers_broker_is_not_registered() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.broker_leaves(4)
    history.heartbeat()
    history.heartbeat(11_000)
    yield history
    history.delete("/controller")
    history.heartbeat()


@of("ControllerOverdue", counts=True)
def the_controller_writes_nothing(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.topic("new", {number: [1, 2] for number in range(count)})
    history.heartbeat(21_000)
    yield history
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("ControllerOverdue", counts=True)
def the_controller_passes_elections_over(count: int) -> Telling:
    history = a_cluster([3, 2], [3, 2], count)
    history.broker_leaves(3)
    history.topic("new", {0: [4]})
    history.state("new", 0, 4, 0, [4])
    history.heartbeat(4_000)
    history.heartbeat(11_000)
    yield history
    for number in range(count):
        history.state("t", number, 2, 5, [2])
    history.heartbeat()


@of("ControllerPoisoned")
def a_term_ends_among_removals_and_the_same_process_is_controller_again() -> Telling:
    history = a_cluster([1, 2], [1, 2], 2, controller=1)
    history.broker_leaves(2)
    history.state("t", 0, 1, 5, [1])
    history.delete("/controller")
    history.controller(1, 2)
    history.heartbeat()
    yield history
    history.delete("/controller")
    history.controller(3, 3)
    history.heartbeat()


@of("ControllerPoisoned")
def a_controller_writes_on_and_leaves_a_dead_replica_in_an_isr() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.broker_leaves(2)
    history.topic("new", {0: [4]})
    history.state("new", 0, 4, 0, [4])
    history.heartbeat(4_000)
    yield history
    history.delete("/controller")
    history.controller(3, 2)
    history.heartbeat()


@of("BrokerPoisoned", counts=True)
def terms_are_cut_before_their_controllers_have_removed_a_dead_replica(count: int) -> Telling:
    history = a_cluster([1, 9], [1, 9], brokers=(1, 2, 3, 4, 5))
    for broker in (1, 2, 3, 5)[: count + 1]:
        history.delete("/controller")
        history.controller(broker, history.context.header.controller_epoch + 1)
    history.heartbeat()
    history.heartbeat(MINUTE_MS)
    yield history
    for broker in (1, 2, 3, 4)[:count]:
        history.broker_leaves(broker)
        history.broker(broker)
    over(history)


@of("ControllerNotPreferred", counts=True)
def a_broker_that_was_not_chosen_is_controller(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], preferred_controllers=(1, 2, 3)[:count])
    history.heartbeat()
    history.heartbeat(MINUTE_MS)
    yield history
    history.delete("/controller")
    history.controller(1, 2)
    history.heartbeat()


@of("StaleController", counts=True)
def a_deposed_controller_writes_on(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], count, release=(1, 1))
    history.delete("/controller")
    history.controller(2, 2)
    for number in range(count):
        history.state("t", number, 2, 5, [1, 2], controller_epoch=1)
    history.heartbeat()
    yield history
    over(history)


@of("ControllerEpochWentBack")
def the_epoch_is_edited() -> Telling:
    history = a_cluster([1, 2], [1, 2], epoch=5)
    history.write("/controller_epoch", b"3")
    history.heartbeat()
    yield history
    over(history)


@of("DuplicateTopicId", counts=True)
def topics_are_copied_with_their_ids(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], topic_id="_EOu-aHUSKuKzvTtnqs9Zw")
    for number in range(count):
        history.topic(f"copy{number}", {0: [1, 2]}, topic_id="_EOu-aHUSKuKzvTtnqs9Zw")
    history.delete("/controller")
    history.controller(1, 2)
    history.heartbeat(60_000)
    yield history
    for number in range(count):
        history.topic(f"copy{number}", {0: [1, 2]}, topic_id=f"{f'id-{number}':A<22}")
    history.delete("/controller")
    history.controller(2, 3)
    history.heartbeat()


@of("ElectionStorm", counts=True)
def leaders_are_elected_over_and_over(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], count)
    history.heartbeat()
    for epoch in range(5, 5 + 300):
        history.state("t", 0, 1 + epoch % 2, epoch, [1, 2])
    history.heartbeat()
    yield history
    history.heartbeat(MINUTE_MS)
    history.heartbeat(MINUTE_MS)


@of("NotificationBacklog", counts=True)
def notifications_wait(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], release=(2, 6))
    entries = {"version": 1, "partitions": [{"topic": "t", "partition": 0}]}
    for number in range(count):
        history.write(f"/isr_change_notification/isr_change_{number}", entries)
    history.heartbeat(31_000)
    yield history
    for number in range(count):
        history.delete(f"/isr_change_notification/isr_change_{number}")
    history.heartbeat()


# --- the way to KRaft


def on_the_way(count: int = 1) -> ZnodeHistory:
    """Return a cluster in migration. KRaft controller 3001 leads topic t, brokers 1 to 4 are in ZooKeeper mode."""
    return a_cluster([1, 2], [1, 2], count).migrates().pulses(1)


def back(history: ZnodeHistory) -> None:
    """Make broker 4 controller again, with an epoch above all states, and remove `/migration`."""
    history.delete("/controller")
    history.write("/controller_epoch", b"30")
    history.controller(4, 31)
    history.delete("/migration")
    over(history)


@of("MigrationUnderWay")
def a_quorum_waits_for_a_broker() -> Telling:
    history = a_cluster([1, 9], [1])
    history.migration()
    history.heartbeat()
    yield history
    history.delete("/migration")
    history.heartbeat()


@of("MigrationUnderWay")
def kraft_leads_and_a_broker_is_controller_again() -> Telling:
    history = on_the_way()
    yield history
    back(history)


@of("MigrationCopyFails")
def the_copy_ends_one_controller_after_the_other() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.migration()
    history.kraft_claims(3001, 3, 2)
    history.heartbeat(3_000)
    history.kraft_claims(3000, 5, 3)
    history.heartbeat(3_000)
    yield history
    history.migration(300, 3000, 5)
    history.heartbeat()


@of("MigrationSyncStuck")
def a_sync_does_not_end() -> Telling:
    history = on_the_way()
    history.kraft_claims(3000, 5, 3)
    history.migration(400, 3000, 5)
    history.heartbeat(11_000)
    yield history
    history.migration(401, 3000, 5)
    history.heartbeat()


@of("DualWriteStalled")
def the_pulse_ends() -> Telling:
    history = on_the_way()
    history.heartbeat(10_000)
    yield history
    history.migration(402, 3001, 3)
    history.heartbeat()


@of("DualWriteStalled")
def all_brokers_live_in_kraft_mode_and_the_pulse_ends() -> Telling:
    history = on_the_way()
    for broker in (4, 3, 2):
        history.broker_leaves(broker)
    history.state("t", 0, 1, 6, [1], controller_epoch=3)
    history.state("t", 0, 1, 6, [1, 2], controller_epoch=3)
    history.broker_leaves(1)
    history.migration(401, 3001, 3)
    history.heartbeat(10_000)
    yield history
    history.migration(402, 3001, 3)
    history.heartbeat()


@of("DualWriteStalled")
def the_epoch_is_written_by_hand_while_kraft_leads() -> Telling:
    history = on_the_way()
    history.write("/controller_epoch", b"1")
    history.heartbeat()
    yield history
    history.kraft_claims(3000, 5, 3)
    history.heartbeat()


@of("DualWriteStalled")
def the_migration_is_written_by_hand_while_kraft_leads() -> Telling:
    history = on_the_way()
    history.migration(300, 3001, 3)
    history.heartbeat()
    yield history
    history.kraft_claims(3000, 5, 3)
    history.heartbeat()


@of("DualWriteStalled")
def the_migration_is_deleted_while_kraft_leads() -> Telling:
    history = on_the_way()
    history.delete("/migration")
    history.heartbeat()
    yield history
    back(history)


@of("KRaftLeaderFlapping")
def the_quorum_elects_again_and_again() -> Telling:
    history = on_the_way()
    for leader in range(6):
        history.kraft_claims(3000 + leader % 2, 5 + leader, 3 + leader)
        history.migration(402 + leader, 3000 + leader % 2, 5 + leader)
        history.heartbeat(10_000)
    yield history
    for _ in range(60):
        history.heartbeat(10_000)


@of("SecondController")
def the_kraft_leaders_controller_znode_is_deleted() -> Telling:
    history = on_the_way()
    history.delete("/controller")
    history.migration(402, 3001, 3)
    history.heartbeat()
    yield history
    over(history)


@of("OldMigration")
def a_migration_with_an_offset_stays_after_a_rollback() -> Telling:
    history = on_the_way()
    history.delete("/controller")
    history.controller(4, 4)
    history.heartbeat()
    yield history
    history.delete("/migration")
    history.heartbeat()


@of("OldMigration")
def a_topic_is_made_over_a_migration_that_stayed() -> Telling:
    history = on_the_way()
    history.delete("/controller")
    history.controller(4, 4)
    history.topic("made", {0: [1, 2]})
    history.the_controller_writes_its_due()
    history.heartbeat()
    yield history
    history.delete("/migration")
    history.heartbeat()


@of("OldMigrationClaimed")
def a_quorum_claims_over_an_earlier_attempt_and_deletes() -> Telling:
    history = on_the_way()
    history.delete("/controller")
    history.controller(4, 4)
    history.topic("made", {0: [1, 2]})
    history.kraft_claims(3000, 9, 5)
    history.delete("/brokers/topics/made")
    history.heartbeat()
    yield history
    back(history)


@of("DeletedBySync", counts=True)
def a_sync_deletes_what_kraft_lacks(count: int) -> Telling:
    history = on_the_way()
    for number in range(count):
        history.topic(f"made{number}", {0: [1, 2]}, topic_id=f"{f'id{number}':A<22}")
    history.kraft_claims(3000, 5, 3)
    for number in range(count):
        history.delete(f"/brokers/topics/made{number}")
    history.heartbeat()
    yield history
    over(history)


@of("WrittenPastKRaft", counts=True)
def topics_are_made_by_an_old_tool_while_kraft_leads(count: int) -> Telling:
    history = on_the_way()
    for number in range(count):
        history.topic(f"made{number}", {0: [1, 2]})
    history.heartbeat(6_000)
    yield history
    over(history)


@of("WrittenPastKRaft")
def a_deletion_is_asked_for_in_zookeeper_while_kraft_leads() -> Telling:
    history = on_the_way()
    history.delete_topic("t")
    history.heartbeat()
    yield history
    history.delete("/controller")
    history.controller(4, 4)
    history.heartbeat()


@of("LeadersNeverElected", counts=True)
def a_rollback_leaves_epochs_above_the_controllers(count: int) -> Telling:
    history = on_the_way(count)
    for number in range(count):
        history.state("t", number, 2, 6, [1, 2], controller_epoch=9)
    history.delete("/controller")
    history.controller(4, 4)
    history.heartbeat()
    yield history
    history.write("/controller_epoch", b"9")
    history.delete("/controller")
    history.controller(4, 10)
    history.heartbeat()


# --- topics


@of("DeletionIgnored")
def a_deletion_of_no_topic_stays() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.write("/admin/delete_topics/nothing")
    history.heartbeat(61_000)
    yield history
    history.delete("/admin/delete_topics/nothing")
    history.heartbeat()


@of("DeletionStuck", counts=True)
def topics_are_deleted_while_a_broker_is_away(count: int) -> Telling:
    history = ZnodeHistory().start(1, 2, 3, topics={f"shop.{n}": {0: ([3], 3, 0, [3])} for n in range(count)})
    history.broker_leaves(3)
    history.the_controller_writes_its_due()
    for number in range(count):
        history.delete_topic(f"shop.{number}")
    history.heartbeat(61_000)
    yield history
    for number in range(count):
        history.topic_vanishes(f"shop.{number}", 0)
    history.heartbeat()


@of("ReassignmentStuck", counts=True)
def replicas_are_moved_to_a_broker_that_is_away(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], count)
    moved = {str(number): [9] for number in range(count)}
    dropped = {str(number): [2] for number in range(count)}
    history.reassign(*(("t", number, [1, 9]) for number in range(count)))
    history.topic("t", {n: [1, 9, 2] for n in range(count)}, adding_replicas=moved, removing_replicas=dropped)
    history.the_controller_writes_its_due()
    history.heartbeat(61_000)
    yield history
    history.topic("t", {number: [1, 2] for number in range(count)})
    history.delete("/admin/reassign_partitions")
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("ReassignmentStuck")
def a_replica_is_moved_to_a_live_broker_and_one_that_is_away() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.topic("t", {0: [1, 3, 9, 2]}, adding_replicas={"0": [3, 9]}, removing_replicas={"0": [2]})
    history.the_controller_writes_its_due()
    history.heartbeat(61_000)
    yield history
    history.topic("t", {0: [1, 2]})
    history.the_controller_writes_its_due()
    history.heartbeat()


@of("InvalidReassignment", counts=True)
def a_reassignment_names_partitions_that_do_not_exist(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.reassign(*(("nothing", number, [1]) for number in range(count)))
    history.heartbeat()
    history.heartbeat(MINUTE_MS)
    yield history
    history.delete("/admin/reassign_partitions")
    history.heartbeat()


@of("PreferredImbalance", counts=True)
def leaders_are_not_brought_back(count: int) -> Telling:
    history = a_cluster([1, 2], [2, 1], count, settings={"auto.leader.rebalance.enable": False})
    history.heartbeat()
    history.heartbeat(10 * MINUTE_MS)
    yield history
    for number in range(count):
        history.state("t", number, 1, 5, [1, 2])
    history.heartbeat()


@of("TopicWithOneReplica", counts=True)
def topics_are_created_with_one_replica(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for number in range(count):
        history.topic(f"alone{number}", {0: [1]})
    history.heartbeat(6_000)
    yield history
    over(history)


@of("TopicWithDeadReplica", counts=True)
def topics_are_created_with_replicas_on_dead_brokers(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for number in range(count):
        history.topic(f"dead{number}", {0: [1, *(7, 8, 9)[:count]]})
    history.heartbeat(6_000)
    yield history
    over(history)


@of("TopicRemovedByHand", counts=True)
def topics_znodes_are_removed(count: int) -> Telling:
    history = ZnodeHistory().start(1, 2, topics={f"shop.{n}": {0: ([1], 1, 0, [1])} for n in range(count)})
    for number in range(count):
        history.delete(f"/brokers/topics/shop.{number}")
    history.heartbeat()
    yield history
    over(history)


@of("AssignmentEdited", counts=True)
def a_topics_znode_is_edited(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2], count)
    history.topic("t", {number: [1, 9] for number in range(count)})
    history.heartbeat()
    yield history
    over(history)


@of("DeletionGivenUp", counts=True)
def deletions_are_taken_back(count: int) -> Telling:
    history = ZnodeHistory().start(1, 2, topics={f"shop.{n}": {0: ([1], 1, 0, [1])} for n in range(count)})
    for number in range(count):
        history.delete_topic(f"shop.{number}")
        history.delete(f"/admin/delete_topics/shop.{number}")
    history.heartbeat()
    yield history
    over(history)


@of("MissingTopicId", counts=True)
def topics_are_made_by_hand_and_get_no_id(count: int) -> Telling:
    history = a_cluster([1], [1], release=(3, 9), topic_id="an-idAAAAAAAAAAAAAAAAA")
    for number in range(count):
        history.topic(f"bare{number}", {0: [1]})
    history.the_controller_writes_its_due()
    history.heartbeat()
    history.heartbeat(6 * MINUTE_MS)
    yield history
    for number in range(count):
        history.topic(f"bare{number}", {0: [1]}, topic_id=f"{f'id-{number}':A<22}")
    history.heartbeat()


@of("TopicIdChanged", counts=True)
def a_failover_gives_a_topic_without_an_id_another(count: int) -> Telling:
    history = a_cluster([1], [1], release=(3, 9), topic_id="an-idAAAAAAAAAAAAAAAAA")
    for number in range(count):
        history.topic(f"moved{number}", {0: [1]}, topic_id=f"{f'id-{number}':A<22}")
    history.the_controller_writes_its_due()
    for number in range(count):
        history.topic(f"moved{number}", {0: [1]})
    history.heartbeat()
    for number in range(count):
        history.topic(f"moved{number}", {0: [1]}, topic_id=f"{f'new-{number}':A<22}")
    history.heartbeat()
    yield history
    for number in range(count):
        history.topic(f"moved{number}", {0: [1]}, topic_id=f"{f'id-{number}':A<22}")
    history.heartbeat()


@of("TopicUnloadable", counts=True)
def topics_lose_their_content(count: int) -> Telling:
    history = a_cluster([1], [1], release=(3, 9))
    for number in range(count):
        history.topic(f"lost{number}", {0: [1]})
    history.the_controller_writes_its_due()
    for number in range(count):
        history.write(f"/brokers/topics/lost{number}", b"")
    history.heartbeat()
    yield history
    for number in range(count):
        history.topic(f"lost{number}", {0: [1]})
    history.heartbeat()


# --- writes that differ


@of("DifferentLeader", counts=True)
def another_leader_is_elected(count: int) -> Telling:
    history = a_cluster([3, 2, 1], [3, 2, 1], count)
    history.broker_leaves(3)
    for number in range(count):
        history.state("t", number, 1, 7, [1])
    history.heartbeat()
    yield history
    over(history)


@of("UnexpectedIsr", counts=True)
def another_isr_is_written(count: int) -> Telling:
    history = a_cluster([3, 2, 1], [3, 2, 1], count)
    history.broker_leaves(3)
    for number in range(count):
        history.state("t", number, 2, 9, [2])
    history.heartbeat()
    yield history
    over(history)


@of("UnexplainedWrite", counts=True)
def a_state_is_written_for_no_reason(count: int) -> Telling:
    history = a_cluster([3, 2, 1], [3, 2, 1], count)
    for number in range(count):
        history.state("t", number, 1, 9, [1])
    history.heartbeat()
    yield history
    over(history)


@of("IllegalState", counts=True)
def a_leader_is_not_in_its_isr(count: int) -> Telling:
    history = a_cluster([3, 2, 1], [3, 2, 1], count)
    for number in range(count):
        history.state("t", number, 1, 5, [2, 3])
    history.heartbeat()
    yield history
    over(history)


@of("OrphanState", counts=True)
def states_are_written_for_partitions_that_no_topic_names(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for number in range(count):
        history.state("u", number, 1, 0, [1])
    history.heartbeat()
    yield history
    over(history)


@of("WriteNeverCame", counts=True)
def the_controller_leaves_writes_out(count: int) -> Telling:
    history = a_cluster([3, 2], [3, 2], count)
    history.broker_leaves(3)
    history.topic("new", {0: [4]})
    history.state("new", 0, 4, 0, [4])
    history.heartbeat(4_000)
    yield history
    over(history)


# --- Kontrast itself


@of("ReplicaDisconnected")
def zookeeper_is_lost() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.send(RecordKind.SESSION, zxid=history.zxid, data=json.dumps({"session": "lost"}))
    history.heartbeat(11_000, session="lost")
    yield history
    history.heartbeat()


@of("ReplicaLacksRecords")
def records_are_lost() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.seq += 1
    history.heartbeat()
    yield history
    read_again(history)


@of("ClusterQuarantined", counts=True)
def records_cannot_be_applied(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    place, last = "OverflowError in turn.py, conclude", history.records[-1]
    quarantines = Quarantines()
    for _ in range(count):
        quarantines = quarantines_with(quarantines, 7, last, place)
    why = "records up to number 9 of generation 1 could not be applied (OverflowError: too large)"
    outcome = quarantine(new_context("c", chunk_count=8), quarantines, last, why)
    history.context = outcome.context
    history.effects.extend(outcome.effects)
    yield history
    read_again(history)


@of("OlderGeneration")
def two_watchers_run() -> Telling:
    history = ZnodeHistory()
    history.generation = 7
    history.start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    for second in range(70):
        record = Record(
            cluster="c", generation=6, seq=0, kind=RecordKind.HEARTBEAT, observed_ms=second * 1_000, zxid=Zxid(10**6)
        )
        outcome = steps(history.context, [record])
        history.context = outcome.context
        history.effects.extend(outcome.effects)
    yield history
    history.heartbeat(2 * MINUTE_MS)


@of("ZnodeRefused", counts=True)
def znodes_are_garbage(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for broker in range(1, count + 1):
        history.write(f"/brokers/ids/{broker}", b"\xff")
    history.heartbeat()
    yield history
    over(history)


@of("ClockStepped", counts=True)
def the_wall_clock_is_set(count: int) -> Telling:
    history = ZnodeHistory()
    history.steady_from_ms = 0
    history.start(1, 2, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    for _ in range(count):
        history.wall_ahead_ms -= HOUR_MS
        history.heartbeat()
    history.heartbeat(6_000)
    yield history
    over(history)


@of("ZooKeeperRolledBack", counts=True)
def zookeeper_is_restored_from_a_backup(count: int) -> Telling:
    history = a_cluster([1, 2], [1, 2])
    history.heartbeat()
    for _ in range(count):
        history.zxid -= 20
        history.generation, history.seq = history.generation + 1, -1
        history.send(RecordKind.SNAPSHOT_BEGIN, zxid=history.zxid)
        history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid)
    history.heartbeat(6_000)
    yield history
    over(history)


# --- ZooKeeper


def _until_well(history: ZnodeHistory) -> None:
    described(history, ensemble(), times=2)


@of("ZooKeeperNoQuorum")
def no_server_of_the_ensemble_serves() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    gone = ensemble((0, lost()), (1, lost(trouble="has no quorum")), (2, lost()))
    described(history, gone, times=2, session="suspended")
    yield history
    _until_well(history)


@of("ZooKeeperQuorumAtRisk")
def one_of_three_servers_is_lost() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, one_lost(), times=7)
    yield history
    _until_well(history)


@of("ZooKeeperServerLags")
def a_follower_is_a_round_behind_its_leader() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, ensemble((2, {"zxid": 7}), zxid=500), times=8)
    yield history
    _until_well(history)


@of("ZooKeeperSlow")
def a_server_forces_its_log_slowly() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, ensemble((0, {"fsync_ms": 310.4})), times=7)
    yield history
    _until_well(history)


@of("ZooKeeperSlow")
def a_server_has_a_queue() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, ensemble((1, {"outstanding": 1200})), times=7)
    yield history
    _until_well(history)


@of("ZxidRollover")
def the_counter_is_full_within_a_day() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for minute in range(10):
        described(history, ensemble(zxid=4_000_000_000 + minute * 1_000_000), times=6)
    yield history
    _until_well(history)


@of("ZnodeNearLimit")
def the_list_of_topics_is_nearly_too_long() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, large("/brokers/topics", 900_000))
    yield history
    _until_well(history)


@of("ZnodeNearLimit")
def notifications_of_isr_changes_pile_up() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    for minute in range(10):
        described(history, large("/isr_change_notification", 300_000 + minute * 20_000), times=6)
    yield history
    _until_well(history)


@of("SessionsExpiredAfterPause")
def two_brokers_lose_their_sessions_after_a_pause() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    described(history, ensemble())
    history.broker_leaves(1)
    history.broker_leaves(2)
    described(history, ensemble((0, {"answer_ms": 9_000.0, "expired_sessions": 3})))
    yield history
    history.broker(1)
    history.broker(2)
    over(history)


@of("BrokerBlockedByOldSession")
def an_old_session_owns_a_registration() -> Telling:
    history = a_cluster([1, 2], [1, 2])
    left = LeftSession(BrokerId(2), history.sessions[2], 12_400)
    described(history, ensemble(left_sessions=(left,)))
    yield history
    _until_well(history)
