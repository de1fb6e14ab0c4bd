"""A forgotten cluster. Its alerts end, its rows are void, and only a later `kontrast watch` brings it back."""

from __future__ import annotations

from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.records import RecordKind
from controller.contract.row import Row
from controller.model.context import Phase
from controller.restore.stored_context import changed_chunks, encode_header, new_context, restore_context
from controller.step import step, steps
from tests.controller.znode_history import ZnodeHistory

TOPICS = {"t": {0: ([1, 2], 1, 0, [1, 2])}, "u": {0: ([2], 2, 0, [2])}}
ENDING = "the cluster was forgotten (`kontrast forget`), so Kontrast no longer watches it"


def with_an_offline_partition(**settings: object) -> ZnodeHistory:
    history = ZnodeHistory(**settings).start(1, 2, topics=TOPICS)
    history.broker_leaves(2)
    for _ in range(400):
        history.heartbeat()
    assert len(history.open_alerts()) >= 2
    return history


def forgotten(history: ZnodeHistory) -> tuple[Row, ...]:
    history.generation, history.seq = history.generation + 1, -1
    return history.send(RecordKind.FORGOTTEN, zxid=history.zxid)


def test_each_open_alert_ends_and_then_all_earlier_rows_are_void():
    history = with_an_offline_partition()
    opened = set(history.open_alerts())
    *ends, last = forgotten(history)
    assert all(isinstance(row, AlertRow) for row in ends)
    assert {row.id for row in ends} == opened
    assert {(row.state, row.cause) for row in ends} == {("resolved", ENDING)}
    assert isinstance(last, BeginningRow)
    assert last.forgotten
    position = (last.generation, last.seq, last.ordinal)
    assert position > max((row.generation, row.seq, row.ordinal) for row in ends)


def test_nothing_is_known_of_it_and_what_comes_too_late_changes_nothing():
    history = with_an_offline_partition()
    late = next(record for record in history.records if record.path.startswith("/brokers"))
    forgotten(history)
    assert history.context.header.phase is Phase.BOOTSTRAPPING
    assert history.context.header.feed.forgotten
    assert [topic for topic in history.context.topics if topic] == []
    for record in (late, history.records[-1]):
        outcome = step(history.context, record)
        assert (outcome.context, outcome.effects) == (history.context, ())


def test_what_was_stored_of_it_is_replaced():
    history = with_an_offline_partition()
    before = history.context
    stored = changed_chunks(new_context("c", chunk_count=8), before)
    restored = restore_context("c", encode_header(before), stored.get)
    forgotten(history)
    after = step(restored, history.records[-1]).context
    stored |= changed_chunks(restored, after)
    assert [*restore_context("c", encode_header(after), stored.get).topics] == []


def test_a_later_watch_begins_afresh_with_the_same_settings():
    given = {"min.insync.replicas": 1}
    history = with_an_offline_partition(release=(2, 8), settings=given, preferred_controllers=(1,))
    forgotten(history)
    first = len(history.effects)
    history.generation, history.seq = history.generation + 1, -1
    history.start(1, 2, topics=TOPICS)
    history.heartbeat()
    header = history.context.header
    assert not header.feed.forgotten
    assert (header.configuration.given, header.preferred_controllers) == (given, (1,))
    assert header.profile.release == (2, 8)
    assert [row for row in history.effects[first:] if isinstance(row, AlertRow)] == []
    assert history.gauges().partitions == 2


def test_a_record_without_a_complete_read_before_it_asks_for_one():
    history = with_an_offline_partition()
    forgotten(history)
    history.generation, history.seq = history.generation + 1, 5
    history.heartbeat()
    feed = history.context.header.feed
    assert (feed.forgotten, feed.lacks_records) == (False, True)


def test_in_a_batch_it_is_the_same_as_record_by_record():
    history = with_an_offline_partition()
    forgotten(history)
    history.generation, history.seq = history.generation + 1, -1
    history.start(1, 2, topics=TOPICS)
    history.heartbeat()
    outcome = steps(new_context("c", chunk_count=8), history.records)
    assert list(outcome.effects) == history.effects
    assert encode_header(outcome.context) == encode_header(history.context)
    assert dict(outcome.context.topics) == dict(history.context.topics)
