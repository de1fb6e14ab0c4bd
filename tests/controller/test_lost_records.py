"""Lost records. The replica draws no conclusion from later ones until the next complete read."""

from __future__ import annotations

import pytest

from controller.contract.gauges_row import GaugesRow
from controller.contract.records import RecordKind
from tests.controller.znode_history import ZnodeHistory, on


def gauges(history: ZnodeHistory) -> GaugesRow:
    (row,) = (row for row in history.send(RecordKind.HEARTBEAT) if isinstance(row, GaugesRow))
    return row


def test_a_hole_in_the_numbers_ends_all_conclusions_until_a_new_complete_read() -> None:
    history = ZnodeHistory().start(1, 2, topics=on([2, 1], 2, 0, [2, 1]))
    assert gauges(history).ready
    history.seq += 1  # the lost record of broker 1's departure
    assert history.broker_leaves(2) == ()
    shown = gauges(history)
    assert not shown.ready
    assert shown.divergences == {"records_missing": 1}
    history.generation += 1
    history.seq = -1
    history.start(1, topics=on([2, 1], 1, 1, [1]))
    shown = gauges(history)
    assert shown.ready
    assert (shown.active_brokers, shown.offline_partitions) == (1, 0)


@pytest.mark.parametrize("lost", [RecordKind.NODE, RecordKind.SNAPSHOT_END])
def test_a_complete_read_with_a_hole_in_it_is_none(lost: RecordKind) -> None:
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_BEGIN)
    history.seq += 1
    if lost is RecordKind.NODE:
        history.send(RecordKind.SNAPSHOT_END)
    assert not gauges(history).ready


def test_a_repeated_record_is_no_hole() -> None:
    history = ZnodeHistory().start(1, 2)
    history.seq -= 1
    assert history.send(RecordKind.HEARTBEAT) == ()
    assert gauges(history).ready
