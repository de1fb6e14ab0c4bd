"""A generation that goes back. Kontrast refuses it, and after a minute an alert shows the way out."""

from __future__ import annotations

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.restore.stored_context import encode_header, restore_context
from controller.step import step, steps
from tests.controller.znode_history import ZnodeHistory

MINUTE_MS = 60_000


@pytest.fixture
def history() -> ZnodeHistory:
    history = ZnodeHistory()
    history.generation = 7
    return history.start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})


def older(at_ms: int, *, generation: int = 6, kind: RecordKind = RecordKind.HEARTBEAT, seq: int = 0) -> Record:
    return Record(cluster="c", generation=generation, seq=seq, kind=kind, observed_ms=at_ms, zxid=10**6)


def follow(history: ZnodeHistory, *records: Record) -> tuple[Row, ...]:
    outcome = steps(history.context, records)
    history.context = outcome.context
    history.effects.extend(outcome.effects)
    return outcome.effects


def test_one_that_goes_on_for_a_minute_pages_once_and_moves_nothing_else(history):
    before = history.context
    place = (history.effects[-1].generation, history.effects[-1].seq, history.effects[-1].ordinal)
    effects = follow(history, *(older(at_ms) for at_ms in range(5_000, 5_000 + 2 * MINUTE_MS, 1_000)))
    (alert,) = effects
    assert (alert.alert, alert.state, alert.severity) == ("OlderGeneration", "open", Severity.PAGE)
    assert "generation 6, because it has followed generation 7: two run" in alert.cause
    assert (alert.generation, alert.seq, alert.ordinal) > place
    header = history.context.header
    assert (header.position, header.time_ms, header.zxid) == (
        before.header.position,
        before.header.time_ms,
        before.header.zxid,
    )
    assert history.context.topics is before.topics


def test_what_a_deposed_one_still_says_pages_nobody(history):
    assert follow(history, *(older(at_ms) for at_ms in range(0, MINUTE_MS, 1_000))) == ()
    assert follow(history, *(older(5, kind=kind) for kind in (RecordKind.SNAPSHOT_BEGIN, RecordKind.NODE))) == ()
    assert history.context.header.feed.refused.last_ms == 59_000


@pytest.mark.parametrize(
    "times",
    [
        [(6, 0), (6, MINUTE_MS + 1)],  # it was silent for longer than a minute
        [(6, MINUTE_MS), (6, 0), (6, 59_000)],  # its clock went back
        [(6, 0), (5, 30_000), (6, MINUTE_MS)],  # not one, but several
    ],
)
def test_a_minute_is_one_watchers_without_a_pause(history, times):
    assert follow(history, *(older(at_ms, generation=generation) for generation, at_ms in times)) == ()


def test_a_record_again_is_no_older_one(history):
    for at_ms in range(0, 3 * MINUTE_MS, 10_000):
        assert follow(history, older(at_ms, generation=7, seq=0)) == ()
    assert history.context.header.feed.refused is None


def test_a_second_watcher_beside_the_one_that_is_followed_pages_until_it_ends(history):
    for second in range(70):
        history.heartbeat(1_000)
        follow(history, older(second * 1_000))
    assert "OlderGeneration" in history.open_alerts()
    for _ in range(62):
        history.heartbeat(1_000)
    assert "OlderGeneration" not in history.open_alerts()
    assert history.context.header.feed.refused is None


def test_a_newer_generation_ends_it(history):
    follow(history, *(older(at_ms) for at_ms in range(0, 2 * MINUTE_MS, 1_000)))
    assert "OlderGeneration" in history.open_alerts()
    history.generation, history.seq = 8, -1
    history.start(1, 2, topics={"t": {0: ([2, 1], 2, 0, [2])}})
    history.heartbeat()
    assert "OlderGeneration" not in history.open_alerts()


def test_a_batch_with_older_ones_before_the_newest_gives_the_rows_of_both(history):
    follow(history, *(older(at_ms) for at_ms in range(0, MINUTE_MS, 1_000)))
    newest = Record(
        cluster="c",
        generation=7,
        seq=history.seq + 1,
        kind=RecordKind.HEARTBEAT,
        observed_ms=history.now_ms + 1_000,
        data='{"session":"connected","watch_mode":"persistent"}',
    )
    outcome = steps(history.context, (older(MINUTE_MS), newest))
    assert [row.alert for row in outcome.effects if isinstance(row, AlertRow)] == ["OlderGeneration"]
    assert outcome.effects[-1].seq == newest.seq
    again = steps(step(history.context, older(MINUTE_MS)).context, (older(MINUTE_MS), newest))
    assert again.context.header.position == outcome.context.header.position


def test_it_is_stored_with_the_state(history):
    follow(history, older(0), older(MINUTE_MS))
    restored = restore_context("c", encode_header(history.context), {}.get)
    assert restored.header.feed.refused == history.context.header.feed.refused
    assert restored.header.feed.refused.alerts
