"""The migration to KRaft and back, phase by phase, with its predictions, inferences and sentences."""

from __future__ import annotations

import pytest

from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow
from controller.contract.records import RecordKind
from controller.model.context import Phase
from controller.rules.migration_phases import LED_BY_KRAFT, NEXT_PHASE, MigrationPhase, PhaseEvidence
from tests.controller.znode_history import (
    ZnodeHistory,
    broker_znode,
    controller_znode,
    migration_znode,
    state_znode,
    topic_znode,
)


def a_cluster(*brokers: int, isr: tuple[int, ...] = (1, 2), topics: int = 1) -> ZnodeHistory:
    """Return topics t0, t1, … with one partition on brokers 1 and 2. Broker 3 is controller in epoch 1."""
    named = {f"t{number}": {0: ([1, 2], isr[0], 5, list(isr))} for number in range(topics)}
    return ZnodeHistory(release=(3, 9)).start(*(brokers or (1, 2, 3)), controller=3, topics=named)


def migration_rows(history: ZnodeHistory) -> list[MigrationRow]:
    return [row for row in history.effects if isinstance(row, MigrationRow)]


def shown(history: ZnodeHistory) -> MigrationRow:
    """Return the migration's newest row after a heartbeat."""
    history.heartbeat()
    return migration_rows(history)[-1]


def phases(history: ZnodeHistory) -> list[str]:
    """Return the phases that the rows showed, each once where it began."""
    rows = [row.phase for row in migration_rows(history)]
    return [phase for at, phase in enumerate(rows) if at == 0 or rows[at - 1] != phase]


def opened(history: ZnodeHistory) -> set[str]:
    return {row.alert for row in history.open_alerts().values()}


def into_kraft_mode(history: ZnodeHistory, broker: int, other: int, leader_epoch: int) -> None:
    """Take a broker out of /brokers/ids, and let it get in sync again while the other leads."""
    history.broker_leaves(broker)
    history.state("t0", 0, other, leader_epoch, [other], controller_epoch=3)
    history.state("t0", 0, other, leader_epoch, [other, broker], controller_epoch=3)


def all_in_kraft_mode() -> ZnodeHistory:
    history = a_cluster(1, 2, 3).migrates()
    history.broker_leaves(3)
    into_kraft_mode(history, 1, 2, 6)
    into_kraft_mode(history, 2, 1, 7)
    return history.pulses(1)


# Phases


def test_every_phase_but_the_first_is_entered_by_some_evidence_and_left_by_some():
    entered = {phase for evidence in NEXT_PHASE.values() for phase in evidence.values()}
    assert entered == set(MigrationPhase)
    assert set(NEXT_PHASE) == set(MigrationPhase)
    assert {evidence for left in NEXT_PHASE.values() for evidence in left} == set(PhaseEvidence)


def test_a_dead_member_of_an_isr_is_judged_again_once_kraft_leads():
    history = a_cluster()
    history.write("/config/topics/t0", {"version": 1, "config": {"min.insync.replicas": "2"}})
    history.migration()
    history.controller_dies(3)
    history.broker_leaves(2)
    assert history.row("t0", 0).problem == "under_min_isr"
    history.kraft_claims(3001, 3, 2)
    assert history.row("t0", 0).problem is None


def test_a_broker_takes_over_from_every_phase_in_which_kraft_leads():
    assert all(PhaseEvidence.BROKER_CLAIMED in NEXT_PHASE[phase] for phase in LED_BY_KRAFT)


def test_the_pulse_is_shown_with_its_offset_at_each_heartbeat():
    history = a_cluster().migrates()
    history.migration(350, 3001, 3)
    at_ms = history.now_ms
    row = shown(history)
    assert (row.offset, row.pulse_ms) == (350, at_ms)
    assert shown(history) is not row


def test_while_zookeeper_rules_a_row_comes_only_where_it_says_more():
    history = a_cluster()
    history.migration()
    row = shown(history)
    assert shown(history) is row
    assert row.pulse_ms is not None


# Predictions


def test_who_moved_is_named_with_its_kind():
    history = a_cluster().migrates()
    history.heartbeat()
    assert history.open_alerts()["ControllerMoved"].cause == (
        "KRaft controller 3001 took /controller (KRaft epoch 3) after broker 3"
    )
    history.delete("/controller")
    history.controller(2, 3)
    history.heartbeat(6_000)
    assert history.open_alerts()["ControllerMoved"].cause.endswith("in epoch 3 after KRaft controller 3001 (2 times)")
    rows = [row for row in history.effects if isinstance(row, ControllerRow)]
    assert {(row.broker, row.kraft_epoch) for row in rows} >= {(3001, 3), (-1, -1), (2, -1)}


def test_a_partition_that_was_copied_without_a_state_is_nobodys_duty():
    history = a_cluster()
    history.delete("/brokers/topics/t0/partitions/0/state")
    history.migrates().pulses(20)
    assert "CreationDue" not in opened(history)
    history.topic("n", {0: [1, 2]}, topic_id="xAAAAAAAAAAAAAAAAAAAAA")
    assert (
        history.row("n", 0).reason
        == "it has no state: KRaft controller 3001 writes the first state of a new partition, and none that was lost"
    )


def test_a_leader_that_kraft_has_not_replaced_is_kraft_s_to_replace():
    history = a_cluster().migrates()
    history.broker_leaves(1)
    history.pulses(6)
    assert "until KRaft controller 3001 elects another" in history.open_alerts()["ElectionDue/broker 1"].cause


# Brokers in KRaft mode


def test_a_broker_that_joins_an_isr_without_being_registered_lives_in_kraft_mode():
    history = a_cluster().migrates()
    registered = history.brokers()[1]
    into_kraft_mode(history, 1, 2, 6)
    row = [row for row in history.effects if isinstance(row, BrokerRow) and row.broker == 1][-1]
    assert (row.registered, row.inferred, row.forgotten) == (False, True, False)
    assert row.endpoints == registered.endpoints != ()
    assert history.row("t0", 0).problem is None
    assert (shown(history).zookeeper_brokers, shown(history).kraft_brokers) == ((2, 3), (1,))
    assert "BrokerCrashed" not in opened(history)


def test_a_finalized_migration_names_the_command_that_ends_it():
    history = all_in_kraft_mode()
    history.heartbeat(10_000)
    assert (shown(history).phase, shown(history).rollback) == ("silent", "no")
    forget = "If the migration is finalized, end its `kontrast watch`, then run `kontrast forget c`"
    assert shown(history).next_step == f"restart the active KRaft controller. {forget}"
    (stalled,) = (row for row in history.open_alerts().values() if row.alert == "DualWriteStalled")
    assert stalled.cause.endswith(". If it is finalized, run `kontrast forget c`")


def test_a_zookeeper_controller_knows_no_broker_in_kraft_mode():
    history = a_cluster().migrates()
    into_kraft_mode(history, 1, 2, 6)
    history.delete("/controller")
    history.controller(3, 3)
    assert sorted(history.context.header.brokers) == [2, 3]
    assert (shown(history).kraft_brokers, shown(history).missing_brokers) == ((), (1,))


def test_partitions_of_a_broker_that_is_restarted_page_only_if_it_stays_away():
    history = a_cluster(isr=(1,)).migrates()
    history.broker_leaves(1)
    history.pulses(20)
    assert history.open_alerts()["PartitionsOffline/broker 1"].severity.value == "info"
    assert history.open_alerts()["BrokerCrashed/broker 1"].severity.value == "warn"
    assert "broker 1 left at" in history.open_alerts()["BrokerCrashed/broker 1"].cause
    history.pulses(15)
    assert history.open_alerts()["PartitionsOffline/broker 1"].severity.value == "page"


# The pulse


def test_once_zookeeper_shows_nothing_of_the_cluster_any_more_other_alerts_end():
    history = all_in_kraft_mode()
    history.state("t0", 0, 2, 8, [2], controller_epoch=3)
    history.pulses(1, offset=500)
    assert "BrokerCrashed" in opened(history)
    history.heartbeat(11_000)
    history.heartbeat()
    assert opened(history) <= {"MigrationUnderWay", "DualWriteStalled", "ControllerMoved"}
    assert shown(history).rollback == "no"
    history.migration(600, 3001, 3)
    history.heartbeat()
    assert "BrokerCrashed" in opened(history)


def test_settings_written_since_a_rollback_are_named_before_a_sync_sets_them_back():
    history = a_cluster().migrates().pulses(1)
    history.write("/config/topics/t0", {"version": 1, "config": {"retention.ms": "1"}})
    history.delete("/controller")
    history.controller(3, 3)
    history.heartbeat()
    assert "resets" not in history.open_alerts()["OldMigration"].cause
    history.write("/config/topics/later", {"version": 1, "config": {}})  # a topic's settings come before it
    for retention_ms in ("2", "3"):
        history.write("/config/topics/t0", {"version": 1, "config": {"retention.ms": retention_ms}})
    history.heartbeat(6_000)
    alert = history.open_alerts()["OldMigration"]
    assert ". It resets settings written since (t0). Delete /migration" in alert.cause
    assert alert.examples == ("t0",)
    history.delete("/migration")
    history.heartbeat()
    assert "OldMigration" not in opened(history)
    history.write("/config/topics/t0", {"version": 1, "config": {}})
    assert history.context.header.migration.configured.count == 0


# The way back


def test_the_way_back_as_the_migration_goes():
    history = ZnodeHistory(release=(3, 9)).start(1, 2, 3, controller=3, epoch=7, topics={"t0": {0: ([1], 1, 5, [1])}})
    history.migration()
    assert shown(history).rollback == "yes"
    history.kraft_claims(3001, 3, 8)
    assert shown(history).rollback == "yes"
    history.migration(-1, 3001, 3)
    history.migration(300, 3001, 3)
    history.migration(301, 3001, 3)
    history.state("t0", 0, 1, 6, [1], controller_epoch=3)
    assert (shown(history).rollback, shown(history).highest_state_epoch) == ("yes", 3)
    history.kraft_claims(3000, 12, 9)
    row = shown(history)
    assert (row.rollback, row.rollback_epoch) == ("raise_epoch", 12)
    assert "set /controller_epoch (now 9) to 12 or more" in row.rollback_sentence
    history.migration(400, 3000, 12)
    history.heartbeat(11_000)
    row = shown(history)
    assert (row.rollback, row.rollback_epoch) == ("loses", 12)
    assert "offset 400" in row.rollback_sentence
    assert row.rollback_sentence.endswith("Set /controller_epoch (now 9) to 12 or more before you delete /controller")
    history.write("/controller_epoch", b"12")
    row = shown(history)
    assert (row.rollback, row.rollback_epoch) == ("loses", None)
    assert row.rollback_sentence.endswith("If you stopped the controllers at that offset, no change is lost")


def test_brokers_in_kraft_mode_go_back_first():
    assert "Take brokers 1 and 2 back to ZooKeeper mode" in shown(all_in_kraft_mode()).rollback_sentence


def test_what_waits_in_admin_is_a_leftover_that_the_next_controller_obeys():
    history = a_cluster().migrates().pulses(1)
    history.delete_topic("t0")
    history.reassign(("t0", 0, [2, 1]))
    history.elect_preferred(("t0", 0))
    row = shown(history)
    assert row.leftovers == (
        "/admin/reassign_partitions",
        "/admin/preferred_replica_election",
        "/admin/delete_topics/t0",
    )
    assert "/admin/delete_topics/t0, which the next controller obeys" in row.rollback_sentence
    assert not history.row("t0", 0).deleting
    history.delete("/admin/reassign_partitions")
    history.delete("/admin/preferred_replica_election")
    history.delete("/controller")
    history.controller(3, 5)
    assert history.row("t0", 0).deleting


def test_after_a_clean_rollback_the_row_says_that_all_is_done():
    history = a_cluster().migrates()
    history.delete("/controller")
    history.controller(3, 3)
    assert shown(history).rollback == "done"
    assert "Delete /migration" in shown(history).rollback_sentence
    history.delete("/migration")
    row = shown(history)
    assert (row.phase, row.rollback, row.offset, row.pulse_ms, row.leftovers) == ("zookeeper", "done", -1, None, ())


# The next step


def without_pulse(history: ZnodeHistory) -> ZnodeHistory:
    history.heartbeat(10_000)
    return history


def claimed(history: ZnodeHistory, kraft_epoch: int, epoch: int) -> ZnodeHistory:
    history.kraft_claims(3000, kraft_epoch, epoch)
    return history


def rolled_back(history: ZnodeHistory) -> ZnodeHistory:
    history.delete("/controller")
    history.controller(3, 3)
    return history


@pytest.mark.parametrize(
    ("history", "phase", "next_step"),
    [
        (lambda: claimed(a_cluster(), 3, 2), "claimed", "the KRaft controller copies ZooKeeper"),
        (lambda: claimed(a_cluster().migrates(), 5, 3), "syncing", "the KRaft controller makes ZooKeeper equal"),
        (lambda: a_cluster().migrates(), "hybrid", "restart broker 1 in KRaft mode. Brokers 1, 2 and 3 are still in"),
        (all_in_kraft_mode, "dual_write", "finalize when you are sure. Restart the controllers without the migration"),
        (lambda: without_pulse(a_cluster().migrates()), "silent", "restart the active KRaft controller, unless the"),
        (lambda: without_pulse(all_in_kraft_mode()), "silent", "restart the active KRaft controller. If the migration"),
        (lambda: rolled_back(a_cluster().migrates()), "rolled_back", "delete /migration and restart brokers without"),
    ],
    ids=["claimed", "syncing", "hybrid", "dual write", "silent", "silent, all brokers in KRaft mode", "rolled back"],
)
def test_each_phase_has_its_next_step(history, phase, next_step):
    row = shown(history())
    assert (row.phase, row.next_step[: len(next_step)]) == (phase, next_step)


# Before it is too late


def test_the_quorum_waits_for_brokers_by_name():
    history = a_cluster(1, 3, isr=(1,))
    history.migration()
    assert shown(history).missing_brokers == (2,)
    assert "broker 2 (in the assignment of t0-0), which is not registered. Start it" in shown(history).next_step
    history.broker(2)
    assert shown(history).next_step.startswith("the quorum waits until brokers 1, 2 and 3 and all its voters")


def test_of_many_missing_brokers_two_are_named():
    topics = {"t": {number: ([1, 6 + number], 1, 5, [1]) for number in range(3)}}
    history = ZnodeHistory(release=(3, 9)).start(1, controller=1, topics=topics)
    history.migration()
    assert "broker 6 (in the assignment of t-0) and broker 7 (in" in shown(history).next_step
    assert "and 1 more, which are not registered. Start them" in shown(history).next_step


def test_a_broker_whose_death_shows_in_no_state_yet_is_missing_too():
    history = a_cluster(isr=(2, 1))
    history.migration()
    history.topic("new", {0: [2, 9]})
    assert "broker 9 (has replicas), which is not registered" in shown(history).next_step


def test_topics_made_by_another_session_than_kraft_s_are_written_past_it():
    history = a_cluster()
    history.migration()
    history.znodes.pop("/controller")
    claim = controller_znode(3001) | {"kraftControllerEpoch": 3}
    history.write("/controller", claim, owner=0, author=77, cxid=1)
    history.write(
        "/brokers/topics/by-kraft", topic_znode({0: [1, 2]}, topic_id="aAAAAAAAAAAAAAAAAAAAAA"), author=77, cxid=2
    )
    history.write("/config/topics/by-kraft", {"version": 1, "config": {}}, author=77, cxid=3)
    history.heartbeat()
    assert "WrittenPastKRaft" not in opened(history)
    history.write(
        "/brokers/topics/by-tool", topic_znode({0: [1, 2]}, topic_id="bAAAAAAAAAAAAAAAAAAAAA"), author=78, cxid=1
    )
    history.write("/config/topics/t0", {"version": 1, "config": {}}, author=78, cxid=2)
    history.heartbeat()
    assert set(history.context.header.alerts.occurrences["WrittenPastKRaft"].about) == {"by-tool", "t0"}


# Complete reads


def read_again(history: ZnodeHistory, *writes: tuple[str, object], owner_of_controller: int | None = None) -> None:
    history.generation, history.seq = history.generation + 1, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    for path, content in writes:
        owner = owner_of_controller if path == "/controller" else None
        history.write(path, content, owner=owner, same_zxid=path == "/controller_epoch")  # a claim writes both
    history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid)


CLAIM = controller_znode(3001) | {"kraftControllerEpoch": 3}
TOPIC = [
    ("/brokers/topics/t0", topic_znode({0: [1, 2]})),
    ("/brokers/topics/t0/partitions/0/state", state_znode(1, 5, [1, 2], 3)),
]


@pytest.mark.parametrize(
    ("migration", "brokers", "phase", "kraft_brokers"),
    [
        (migration_znode(-1, 3001, 3), (1, 2), "claimed", ()),
        (migration_znode(300, 3001, 3), (1, 2), "hybrid", ()),
        (migration_znode(300, 3001, 3), (2,), "hybrid", (1,)),
        (migration_znode(300, 3001, 3), (), "dual_write", (1,)),
    ],
)
def test_a_complete_read_under_kraft_finds_the_phase_and_who_leads(migration, brokers, phase, kraft_brokers):
    history = ZnodeHistory()
    registered = [(f"/brokers/ids/{broker}", broker_znode(broker)) for broker in brokers]
    entry = ("/admin/delete_topics/t0", b"")
    head = [("/controller", CLAIM), ("/controller_epoch", b"2")]
    znodes = [*head, *registered, *TOPIC, entry, ("/migration", migration)]
    read_again(history, *znodes, owner_of_controller=0)
    row = shown(history)
    assert (row.phase, row.kraft_brokers, row.highest_state_epoch) == (phase, kraft_brokers, 3)
    assert row.leftovers == ("/admin/delete_topics/t0",)
    assert not history.row("t0", 0).deleting
    read_again(history, *znodes, owner_of_controller=0)
    assert shown(history).phase == phase
    assert history.context.header.phase is Phase.FOLLOWING


def test_a_complete_read_after_a_rollback_finds_a_broker_as_controller():
    history = a_cluster().migrates()
    into_kraft_mode(history, 1, 2, 6)
    broker = ("/brokers/ids/3", broker_znode(3))
    del history.znodes["/controller"]
    read_again(history, ("/controller", controller_znode(3)), ("/controller_epoch", b"3"), broker, *TOPIC)
    assert sorted(history.context.header.brokers) == [3]
    assert (shown(history).phase, shown(history).rollback) == ("zookeeper", "done")
    assert history.context.header.acting


def test_a_complete_read_finds_a_claim_over_an_old_migration():
    history = a_cluster().migrates()
    history.delete("/controller")
    history.controller(3, 3)
    registered = ("/brokers/ids/3", broker_znode(3))
    claim = [("/controller", CLAIM | {"kraftControllerEpoch": 9}), ("/controller_epoch", b"4")]
    read_again(
        history, *claim, registered, *TOPIC, ("/migration", migration_znode(400, 3001, 9)), owner_of_controller=0
    )
    history.heartbeat()
    assert "OldMigrationClaimed" in opened(history)


def test_a_complete_read_counts_the_epochs_of_topics_that_are_still_there():
    history = a_cluster(topics=2)
    history.migration()
    registered = ("/brokers/ids/3", broker_znode(3))
    znodes = [("/controller", controller_znode(3)), ("/controller_epoch", b"3"), registered]
    read_again(history, *znodes, *TOPIC, ("/migration", migration_znode()))
    assert history.context.header.migration.partitions_by_epoch == {3: 1}


def test_a_complete_read_without_a_controller_ends_no_lead_of_kraft():
    history = a_cluster().migrates().pulses(1)
    read_again(history, ("/controller_epoch", b"2"), *TOPIC, ("/migration", migration_znode(500, 3001, 3)))
    assert (shown(history).phase, shown(history).leader) == ("hybrid", -1)
    assert history.context.header.led_by_kraft


def test_the_newest_row_of_a_migration_replaces_the_older_ones():
    assert shown(a_cluster().migrates()).subject_key() == "c/migration"


# Between two controllers, and in a gap


def now_claimed(history: ZnodeHistory) -> ZnodeHistory:
    history.migration()
    history.kraft_claims(3001, 3, 2)
    history.migration(-1, 3001, 3)
    return history


def test_kraft_keeps_a_topic_that_its_sync_has_not_deleted_until_the_way_back():
    history = a_cluster(topics=2)
    history.delete_topic("t0")
    now_claimed(history)
    history.broker_leaves(2)
    history.broker(2)
    assert history.row("t0", 0).deleting
    history.migration(300, 3001, 3)
    history.migration(301, 3001, 3)
    assert (history.row("t0", 0).deleting, history.row("t0", 0).state) == (False, "OnlinePartition")
    history.delete("/migration")
    history.delete("/controller")
    history.controller(1, 3)
    assert history.row("t0", 0).deleting


def test_a_broker_that_returns_leads_again_though_kraft_writes_nothing():
    history = now_claimed(a_cluster(isr=(1,)))
    history.broker_leaves(1)
    history.broker(1)
    assert (history.row("t0", 0).state, history.row("t0", 0).problem) == ("OnlinePartition", "under_replicated")


def test_before_the_copy_a_leader_that_is_not_registered_is_dead():
    history = now_claimed(a_cluster())
    history.generation, history.seq = 2, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.write("/controller", controller_znode(3001) | {"kraftControllerEpoch": 3}, owner=0)
    history.write("/brokers/ids/2", broker_znode(2))
    history.write("/migration", migration_znode(-1, 3001, 3))
    history.write("/brokers/topics/t0", topic_znode({0: [1, 2]}))
    history.state("t0", 0, 1, 5, [1, 2])
    history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid)
    assert history.row("t0", 0).state == "OfflinePartition"


def test_a_state_of_before_a_departure_shows_no_broker_in_kraft_mode():
    history = a_cluster(isr=(2,)).migrates()
    written = history.zxid + 1
    history.zxid = written
    history.broker_leaves(1)
    path = "/brokers/topics/t0/partitions/0/state"
    at = {"zxid": written, "mzxid": written, "resync": True}
    history.write(path, state_znode(1, 6, [2, 1], 2), same_zxid=True, **at)
    assert history.context.header.in_kraft_mode == ()
    assert history.row("t0", 0).state == "OfflinePartition"
