"""A recorded migration to KRaft and back, with phases, pages, the way back, and predictions before and after.

recordings/README.md has the story of the zxids.
"""

from __future__ import annotations

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.effect_rows import Request, Transition
from controller.contract.metadata_rows import MigrationRow, PartitionRow
from tests.conformance.agreement import Parted, account_of, parted_by_epoch

NAME = "migration39"

# The beginning of each phase. A claim begins a sync, a pulse ends it. The dual write begins when no broker is
# registered.
PHASES = [
    (0xC9, "waiting"),
    (0x190, "claimed"),
    (0x192, "syncing"),
    (0x1AE, "hybrid"),
    (0x2D4, "syncing"),
    (0x2F4, "hybrid"),
    (0x347, "silent"),
    (0x3C7, "syncing"),
    (0x3F9, "hybrid"),
    (0x535, "dual_write"),
    (0x629, "syncing"),
    (0x662, "dual_write"),
    (0x6E7, "hybrid"),
    (0x7B9, "syncing"),
    (0x7F8, "hybrid"),
    (0x7FC, "rolled_back"),
    (0x8BB, "zookeeper"),
]

# The first transactions of KRaft's lead, and of the broker that took it back.
CLAIMED, TAKEN_BACK = 0x190, 0x7FC

# Epochs of ZooKeeper controllers in which the accounts differ. In 2 a leader of -1 was written by hand, which the
# replica shows and the controller never saw. In 2 and 21 a broker that shuts down asks again after an ISR grew, which
# no write shows. The election that epoch 23 had begun comes after the recording's end.
PARTED = {2: Parted(0, 1, 12, 12), 21: Parted(0, 0, 22, 22), 23: Parted(4, 0, 11, 0)}


@pytest.fixture(scope="module")
def recorded(recordings):
    return recordings(NAME)


@pytest.fixture(scope="module")
def shown(recorded) -> list[MigrationRow]:
    _, replay = recorded
    return [row for row in replay.rows if isinstance(row, MigrationRow)]


@pytest.fixture(scope="module")
def alerts(recorded) -> list[AlertRow]:
    _, replay = recorded
    return [row for row in replay.rows if isinstance(row, AlertRow)]


def pages(alerts: list[AlertRow], first: int, last: int) -> set[str]:
    """Return alerts that paged between two transactions."""
    opened = (row for row in alerts if row.severity is Severity.PAGE and row.state == "open")
    return {row.id for row in opened if first <= row.zxid < last}


def test_the_phases_begin_where_zookeeper_shows_them(shown):
    began = [(row.zxid, row.phase) for at, row in enumerate(shown) if at == 0 or shown[at - 1].phase != row.phase]
    assert began == PHASES


def test_the_broken_dual_write_pages_once_and_ends_with_the_next_leader(alerts):
    stalled = [(row.state, row.zxid) for row in alerts if row.alert == "DualWriteStalled"]
    assert [state for state, _ in stalled] == ["open", "resolved"]
    assert 0x31B < stalled[0][1] < 0x3C7 <= stalled[1][1] <= 0x3C9
    broken = next(row for row in alerts if row.alert == "DualWriteStalled")
    assert broken.time_ms - 10_500 <= broken.since_ms <= broken.time_ms - 10_000


def test_the_way_back_needs_a_higher_epoch_until_it_is_raised(shown):
    safe = {"yes", "done"}
    assert all(row.rollback in safe for row in shown if row.zxid < 0x2D4)
    assert not any(row.rollback in safe for row in shown if 0x2D4 <= row.zxid < 0x801)
    assert all(row.rollback in safe for row in shown if row.zxid >= 0x801)


def test_after_the_rollback_every_partition_is_named_as_never_elected(shown, alerts):
    lacking = [row for row in shown if row.never_elected_partitions]
    assert {row.never_elected_partitions for row in lacking} == {24}
    assert (lacking[0].zxid, lacking[0].rollback_epoch) == (0x7FC, 9)
    assert next(row for row in alerts if row.alert == "LeadersNeverElected").zxid == 0x7FC
    assert [row.zxid for row in alerts if row.alert == "LeadersNeverElected" and row.state == "resolved"] == [0x800]


def test_no_page_comes_while_brokers_move_to_kraft_mode_and_back(alerts):
    assert pages(alerts, 0x47D, 0x7FC) == set()


def test_what_pages_before_the_rollback_is_what_was_done_to_the_cluster(alerts):
    assert pages(alerts, 0xC9, 0x7FC) == {
        "UncleanElection",  # topic c allows it, and its only replica in sync was shut down
        "DualWriteStalled",
        "BrokerFlapping/broker 3",  # killed twice, and its session ended while ZooKeeper was frozen
    }


def test_nothing_is_predicted_or_asked_for_while_kraft_leads(recorded):
    _, replay = recorded
    during = [row for row in replay.rows if CLAIMED < row.zxid < TAKEN_BACK]
    assert len({row.zxid for row in during}) > 800
    assert [row for row in during if isinstance(row, Request)] == []
    machines = [row for row in during if isinstance(row, Transition) and row.subject in ("partition", "replica")]
    assert machines == []
    before, after = (
        max((gauges for gauges in replay.gauges if gauges.zxid < at), key=lambda gauges: (gauges.zxid, gauges.seq))
        for at in (CLAIMED, TAKEN_BACK)
    )
    assert after.divergences == before.divergences
    assert after.writes == before.writes


def test_with_all_brokers_in_kraft_mode_every_partition_is_online(recorded, shown):
    _, replay = recorded
    at = next(row for row in shown if row.zxid >= 0x6B0)
    assert (at.phase, at.kraft_brokers, at.zookeeper_brokers, at.missing_brokers) == ("dual_write", (1, 2, 3), (), ())
    last = {
        (row.topic, row.partition): row for row in replay.rows if isinstance(row, PartitionRow) and row.zxid <= 0x6B0
    }
    there = [row for row in last.values() if row.state != "NonExistentPartition"]
    assert [row for row in there if row.state != "OnlinePartition" or row.problem] == []
    assert len(there) == 24


def test_brokers_are_found_again_in_zookeeper_mode(shown):
    back = next(row for row in shown if row.zxid >= 0x7F8)
    assert (back.zookeeper_brokers, back.kraft_brokers) == ((1, 2, 3), ())


def test_no_alert_takes_a_kraft_controller_for_a_fault(alerts):
    wrong = {"StaleController", "ControllerOverdue", "TopicRemovedByHand", "DeletionGivenUp", "ControllerEpochWentBack"}
    assert {row.alert for row in alerts} & wrong == set()
    during = [row for row in alerts if CLAIMED < row.zxid < TAKEN_BACK and row.state == "open"]
    assert not {row.alert for row in during} & {"CreationDue", "NoController", "GhostController"}
    assert "unexplained_write" not in {row.subject for row in during}


def test_controllers_that_moved_are_named_with_their_kind(alerts):
    moved = [row.cause.partition(" (2")[0] for row in alerts if row.alert == "ControllerMoved"]
    assert any(
        cause.startswith("KRaft controller 3001 took /controller (KRaft epoch 3) after broker 1") for cause in moved
    )
    assert any("became controller in epoch 8 after KRaft controller 3001" in cause for cause in moved)


def test_what_was_written_by_hand_while_kraft_leads_is_named(alerts):
    past = next(row for row in alerts if row.alert == "WrittenPastKRaft")
    assert "settings of topic c " in past.cause
    ended = next(row for row in alerts if row.alert == "WrittenPastKRaft" and row.state == "resolved")
    assert TAKEN_BACK <= ended.zxid < 0x801  # no KRaft leader comes any more that would set them back


def test_before_and_after_the_predictions_are_the_controllers_own(recorded):
    recording, replay = recorded
    real, ours = recording.account(), account_of(replay.rows)
    assert parted_by_epoch(real, ours) == PARTED
