"""Replaced rows give the cluster at any kept moment, equal to a memory whose rows ended at that moment."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings, strategies as st

from controller.contract.gauges_row import GaugesRow
from controller.contract.metadata_rows import MigrationRow
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from outputs.reading import FOLLOWED_OUTPUTS
from questions.cluster_rows import ClusterSnapshot
from questions.explain.explanation import Explanation
from questions.memory import Memory
from questions.page.incident_cards import Presentation
from questions.page.known_clusters import KnownCluster, KnownClusters
from questions.page.pages import ExplainController, ExplainPartition, ShowBroker, ShowTopic
from questions.past import PAST_ROWS, Past, Replacement
from questions.picture import Picture, Present
from questions.question import NotFoundError, Question
from tests import recorded_moment
from tests.rows import TIME_MS

CLUSTER = "north"


@pytest.fixture(scope="module")
def recorded(recorded_files) -> list[Row]:
    """Return the rows of a recorded cluster up to its bad moment, in causal order."""
    records = list(recorded_moment.history(recorded_files, CLUSTER).records())
    rows = steps(new_context(CLUSTER, chunk_count=8), records).effects
    return [row for row in rows if row.output in FOLLOWED_OUTPUTS]


def remembered(rows, past_rows: int = PAST_ROWS) -> Memory:
    memory = Memory(past_rows)
    for row in rows:
        memory.apply(row)
    return memory


def as_of(memory: Memory, at_ms: int) -> ClusterSnapshot:
    found = memory.cluster(CLUSTER, at_ms, topics=None)
    assert found is not None
    return found


def since_ms(memory: Memory) -> int | None:
    kept = memory.kept(CLUSTER)
    return None if kept is None else kept.since_ms


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
    return *subjects, snapshot.topics, counts


def test_as_of_each_moment_the_cluster_is_as_one_that_has_no_later_rows_has_it(recorded):
    memory = remembered(recorded)
    first_ms = since_ms(memory)
    moments = sorted({row.time_ms for row in recorded if first_ms is not None and row.time_ms >= first_ms})
    assert len(moments) > 100
    some = moments[:: max(1, len(moments) // 30)]
    seen = set()
    for at_ms in some:
        then = remembered(row for row in recorded if row.time_ms <= at_ms).cluster(CLUSTER, topics=None)
        assert then is not None
        found = as_of(memory, at_ms)
        assert shown(found) == shown(then), at_ms
        seen.add((len(found.unusable), len(found.open_alerts), sum(row.registered for row in found.brokers)))
    assert len(seen) > 5, "the recording should have had its ups and downs"


@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_the_picture_of_a_moment_is_the_one_that_its_rows_gave(recorded, data):
    delays = {output: data.draw(st.integers(0, len(recorded))) for output in FOLLOWED_OUTPUTS}
    arrived = [row for _, row in sorted(enumerate(recorded), key=lambda each: each[0] + delays[each[1].output])]
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(arrived))] * 2)))
    room = data.draw(st.sampled_from([100, 1_000, PAST_ROWS]))
    memory = remembered([*arrived[:end], *arrived[begin:end], *arrived[end:]], room)
    kept = memory.kept(CLUSTER)
    assert kept is not None
    assert (kept.since_ms > recorded[0].time_ms) >= (room < PAST_ROWS), "the oldest moments go"
    moments = [row.time_ms for row in recorded if row.time_ms >= kept.since_ms]
    at_ms = data.draw(st.sampled_from(moments))
    then = remembered(row for row in recorded if row.time_ms <= at_ms).cluster(CLUSTER, topics=None)
    assert then is not None
    found = as_of(memory, at_ms)
    assert shown(found) == shown(then)
    assert facts(found.picture()) == facts(then.picture())


def facts(picture: Picture) -> tuple[object, ...]:
    header = picture.header
    subjects = (header.brokers, header.departures.last, header.controller, header.controller_epoch, header.acting)
    issues = {key: group.count for key, group in header.tally.issues.items()}
    counts = (header.tally.gauges, issues, header.tally.offline_by_topic)
    return picture.alerts, dict(picture.context.topics), subjects, counts


def test_a_state_that_began_from_nothing_has_no_past(rows):
    memory = remembered([rows.broker(1), rows.controller(1), rows.partition("orders"), rows.gauges()])
    assert since_ms(memory) is not None
    for output in ("metadata", "gauges"):
        memory.forget(output, CLUSTER)
    assert since_ms(memory) is None
    for row in (rows.broker(1), rows.controller(1), rows.gauges()):
        memory.apply(row)
    assert since_ms(memory) == row.time_ms


def test_what_is_explained_as_of_a_moment_is_what_was_explained_at_that_moment(recorded):
    memory = remembered(recorded)
    moments = sorted({row.time_ms for row in recorded if isinstance(row, GaugesRow) and row.ready})
    heads = set()
    for at_ms in moments[:: max(1, len(moments) // 12)]:
        then = remembered(row for row in recorded if row.time_ms <= at_ms)
        assert explained(memory, then, at_ms) == explained(then, then, None), at_ms
        heads |= {answer.headline for answer in explained(memory, then, at_ms) if isinstance(answer, Explanation)}
    assert len(heads) > 10, "the recording should have had its ups and downs"


class Undated(KnownCluster):
    """A cluster that is not compared with the wall clock, as the recording is old."""

    def present(self, _: ClusterSnapshot) -> Present | None:
        """Return nothing, as for a moment of the past."""
        return None


def explained(memory: Memory, then: Memory, at_ms: int | None) -> list[object]:
    """Return every explanation of the memory at that moment."""
    cluster = Undated(KnownClusters(memory, Presentation(), 0), CLUSTER, at_ms)
    partitions = sorted(then.partitions(CLUSTER))
    asked: list[Question] = [
        *(ExplainPartition(topic=topic, partition=str(number)) for topic, number in partitions),
        *(ShowTopic(topic=topic) for topic in sorted({topic for topic, _ in partitions})),
        *(ShowBroker(broker=str(broker)) for broker in range(5)),
        ExplainController(),
    ]
    return [answered(question, cluster) for question in asked]


def answered(question: Question, cluster: KnownCluster) -> object:
    try:
        return question.on_page(cluster)
    except NotFoundError:
        return None


def test_the_phase_of_a_migration_is_that_of_the_moment(rows):
    claimed, beat = rows.migration("claimed"), rows.migration("claimed")
    later = rows.migration("dual_write")
    memory = remembered([rows.broker(1), rows.controller(1), claimed, beat, later, rows.gauges()])
    found = [as_of(memory, row.time_ms).migration for row in (claimed, beat, later)]
    assert [row and row.phase for row in found] == ["claimed", "claimed", "dual_write"]
    assert as_of(memory, claimed.time_ms - 1).migration is None
    kept = [row for row in memory.changes(CLUSTER, 0, later.time_ms) if isinstance(row, MigrationRow)]
    assert kept == [claimed, later], "a heartbeat's row says nothing new"


@pytest.mark.parametrize("output", ["metadata", "alerts"])
def test_rows_that_compaction_or_damage_took_end_the_past_there(rows, output):
    memory = remembered([rows.gauges(), rows.broker(1), rows.alert("x"), rows.controller(1)])
    before_ms = since_ms(memory)
    later = [rows.offline("orders"), rows.alert("y")]
    for row in later:
        memory.apply(row)
    memory.lacks_rows_before(output)
    newest_ms = next(row.time_ms for row in later if row.output == output)
    assert (before_ms or 0) < newest_ms == since_ms(memory)


def test_gauges_that_say_nothing_new_take_no_room(rows):
    kept = Past(150)  # room for three gauges
    first = rows.gauges()
    kept.note(Replacement(None, first, CLUSTER))
    for _ in range(10):
        kept.note(Replacement(first, rows.gauges(), CLUSTER))
    fuller = rows.gauges(partitions=4)
    kept.note(Replacement(None, fuller, CLUSTER))
    assert kept.gauges_at(fuller.time_ms - 1) is first
    assert kept.gauges_at(fuller.time_ms) is fuller
    assert kept.gauges_at(TIME_MS) is None


def test_what_changed_comes_with_what_it_replaced(rows):
    old, new, newest = rows.partition("orders"), rows.offline("orders"), rows.partition("orders", leader=2)
    memory = remembered([old, new, newest])
    assert memory.changes(CLUSTER, new.time_ms, new.time_ms) == [old, new]
    assert memory.changes(CLUSTER, new.time_ms, newest.time_ms) == [old, new, newest]
    assert memory.changes(CLUSTER, newest.time_ms + 1, newest.time_ms + 9) == []
    assert memory.changes("south", 0, newest.time_ms) == []
