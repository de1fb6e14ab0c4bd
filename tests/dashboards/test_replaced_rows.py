"""Replaced rows. They give the cluster at any kept moment, as a view that stopped then has it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import MigrationRow
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from dashboards.kept_rows.cluster_at import snapshot_as_of
from dashboards.kept_rows.reading import FOLLOWED_OUTPUTS, ReadingCounts
from dashboards.kept_rows.replaced import PAST_ROWS, Past
from dashboards.kept_rows.view import ClusterSnapshot, View
from dashboards.page.answers import Answers, BrokerAnswer, TopicAnswer
from dashboards.page.config import PageConfig
from dashboards.page.leases import Leases
from questions.explain.explanation import Explanation
from tests import recorded_moment
from tests.rows import NEVER_STALE_MS, TIME_MS

CLUSTER = "north"


@pytest.fixture(scope="module")
def recorded(recorded_files) -> list[Row]:
    """Return the rows of a recorded cluster up to its bad moment, in causal order."""
    records = list(recorded_moment.history(recorded_files, CLUSTER).records())
    rows = steps(new_context(CLUSTER, chunk_count=8), records).effects
    return [row for row in rows if row.output in FOLLOWED_OUTPUTS]


def viewed(rows, past_rows: int = PAST_ROWS) -> View:
    view = View(past_rows)
    for row in rows:
        view.apply(row)
    return view


def as_of(view: View, at_ms: int) -> ClusterSnapshot:
    state = view.as_of(CLUSTER, at_ms)
    assert state is not None
    return snapshot_as_of(state, at_ms)


def shown(snapshot: ClusterSnapshot) -> tuple[object, ...]:
    """Return the parts that the page shows. Gauges are kept only when they change."""
    gauges = snapshot.gauges
    assert gauges is not None
    counts = (
        gauges.controller,
        gauges.leaderless_partitions,
        gauges.under_min_isr_partitions,
        gauges.leaders_by_broker,
    )
    subjects = (snapshot.controller, snapshot.brokers, snapshot.unusable, snapshot.under_min_isr, snapshot.open_alerts)
    return *subjects, counts


def test_as_of_each_moment_the_cluster_is_as_one_that_has_no_later_rows_has_it(recorded):
    view = viewed(recorded)
    since_ms = view.kept_since_ms(CLUSTER)
    moments = sorted({row.time_ms for row in recorded if since_ms is not None and row.time_ms >= since_ms})
    assert len(moments) > 100
    some = moments[:: max(1, len(moments) // 30)]
    seen = set()
    for at_ms in some:
        then = viewed(row for row in recorded if row.time_ms <= at_ms)
        (expected,) = then.snapshot()
        found = as_of(view, at_ms)
        assert shown(found) == shown(expected), at_ms
        seen.add((len(found.unusable), len(found.open_alerts), sum(row.registered for row in found.brokers)))
    assert len(seen) > 5, "the recording should have had its ups and downs"


def test_the_outputs_may_come_one_after_the_other(recorded):
    by_output = viewed(sorted(recorded, key=lambda row: FOLLOWED_OUTPUTS.index(row.output)))
    in_order = viewed(recorded)
    at_ms = recorded[len(recorded) // 2].time_ms
    assert shown(as_of(by_output, at_ms)) == shown(as_of(in_order, at_ms))


def test_where_there_is_no_more_room_the_oldest_moments_go_and_that_is_known(recorded):
    view = viewed(recorded, past_rows=200)
    since_ms = view.kept_since_ms(CLUSTER)
    assert since_ms is not None
    assert since_ms > recorded[0].time_ms
    (expected,) = viewed(row for row in recorded if row.time_ms <= since_ms).snapshot()
    assert shown(as_of(view, since_ms)) == shown(expected)


def test_a_state_that_began_from_nothing_has_no_past(rows):
    view = viewed([rows.broker(1), rows.controller(1), rows.partition("orders"), rows.gauges()])
    assert view.kept_since_ms(CLUSTER) is not None
    for output in ("metadata", "gauges"):
        view.forget(output, CLUSTER)
    assert view.kept_since_ms(CLUSTER) is None
    for row in (rows.broker(1), rows.controller(1), rows.gauges()):
        view.apply(row)
    assert view.kept_since_ms(CLUSTER) == row.time_ms


def test_what_is_explained_as_of_a_moment_is_what_was_explained_at_that_moment(recorded):
    view = viewed(recorded)
    moments = sorted({row.time_ms for row in recorded if isinstance(row, GaugesRow) and row.ready})
    heads = set()
    for at_ms in moments[:: max(1, len(moments) // 12)]:
        then = viewed(row for row in recorded if row.time_ms <= at_ms)
        assert explained(view, then, at_ms) == explained(then, then, None), at_ms
        heads |= {answer.headline for answer in explained(view, then, at_ms) if isinstance(answer, Explanation)}
    assert len(heads) > 10, "the recording should have had its ups and downs"


def explained(view: View, then: View, at_ms: int | None) -> list[object]:
    """Return every explanation of the view at that moment."""
    answers = Answers(view, ReadingCounts(), str, PageConfig(stale_after_ms=NEVER_STALE_MS), Leases())
    partitions = [TopicPartition(*name) for name in sorted(then.partitions(CLUSTER))]
    brokers = range(5)
    found = [
        *(answers.partition(CLUSTER, tp, at_ms) for tp in partitions),
        *(answers.topic(CLUSTER, topic, 0, at_ms) for topic in sorted({tp.topic for tp in partitions})),
        *(answers.broker(CLUSTER, broker, at_ms) for broker in brokers),
        answers.controller(CLUSTER, at_ms),
    ]
    return [_without_doubts(answer) for answer in found]


def _without_doubts(answer: object) -> object:
    """Return the answer without its doubts about the present, which a replayed past has."""
    if isinstance(answer, TopicAnswer | BrokerAnswer):
        return replace(answer, explanation=_without_doubts(answer.explanation))
    return replace(answer, doubts=()) if isinstance(answer, Explanation) else answer


def test_the_phase_of_a_migration_is_that_of_the_moment(rows):
    claimed, beat = rows.migration("claimed"), rows.migration("claimed")
    later = rows.migration("dual_write")
    view = viewed([rows.broker(1), rows.controller(1), claimed, beat, later, rows.gauges()])
    found = [as_of(view, row.time_ms).migration for row in (claimed, beat, later)]
    assert [row and row.phase for row in found] == ["claimed", "claimed", "dual_write"]
    assert as_of(view, claimed.time_ms - 1).migration is None
    kept = [row for row in view.changed(CLUSTER, 0, later.time_ms) if isinstance(row, MigrationRow)]
    assert kept == [claimed, later], "a heartbeat's row says nothing new"


@pytest.mark.parametrize("output", ["metadata", "alerts"])
def test_rows_that_compaction_or_damage_took_end_the_past_there(rows, output):
    view = viewed([rows.gauges(), rows.broker(1), rows.alert("x"), rows.controller(1)])
    before_ms = view.kept_since_ms(CLUSTER)
    later = [rows.offline("orders"), rows.alert("y")]
    for row in later:
        view.apply(row)
    view.lacks_rows_before(output)
    newest_ms = next(row.time_ms for row in later if row.output == output)
    assert (before_ms or 0) < newest_ms == view.kept_since_ms(CLUSTER)


def test_gauges_that_say_nothing_new_take_no_room(rows):
    kept = Past(150)  # room for three
    first = rows.gauges()
    kept.note(None, first)
    for _ in range(10):
        kept.note(first, rows.gauges())
    fuller = rows.gauges(partitions=4)
    kept.note(None, fuller)
    assert kept.gauges_at(fuller.time_ms - 1) is first
    assert kept.gauges_at(fuller.time_ms) is fuller
    assert kept.gauges_at(TIME_MS) is None


def test_what_changed_comes_with_what_it_replaced(rows):
    old, new, newest = rows.partition("orders"), rows.offline("orders"), rows.partition("orders", leader=2)
    view = viewed([old, new, newest])
    assert view.changed(CLUSTER, new.time_ms, new.time_ms) == [old, new]
    assert view.changed(CLUSTER, new.time_ms, newest.time_ms) == [old, new, newest]
    assert view.changed(CLUSTER, newest.time_ms + 1, newest.time_ms + 9) == []
    assert view.changed("south", 0, newest.time_ms) == []
