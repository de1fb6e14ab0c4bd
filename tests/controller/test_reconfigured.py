"""A stored state goes on under other static settings, or as another release, than it was made under."""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.gauges_row import GaugesRow
from controller.model.context import Context, Header, Phase
from controller.model.tally import GaugeCounts
from controller.model.topics import Partition
from controller.restore.stored_context import changed_chunks, encode_header, new_context, reconfigured, restore_context
from controller.rules.releases import NEWEST, profile_of
from controller.step import step
from controller.view.counting import count_gauges
from controller.view.gauges import gauges_row
from tests.controller.znode_history import ZnodeHistory

TOPICS = {"t": {0: ([1, 2], 1, 0, [1]), 1: ([1, 2], 1, 0, [1, 2]), 2: ([1], 1, 0, [1])}}
TWO = {"min.insync.replicas": 2}


def history(**made_under: object) -> ZnodeHistory:
    return ZnodeHistory(**made_under).start(1, 2, topics=TOPICS)


def restored(context: Context) -> Context:
    chunks = changed_chunks(new_context("c", chunk_count=context.header.chunk_count), context)
    return restore_context("c", encode_header(context), chunks.get)


def shown(context: Context) -> GaugesRow:
    """Return the gauges as the next row shows them."""
    return gauges_row(context.header, ("c", 1, 0, 0, 0, 0))


def test_what_is_the_same_changes_nothing():
    context = history().context
    assert reconfigured(context, {}, None) is context
    told = history(settings=TWO, release=(3, 6)).context
    assert reconfigured(told, TWO, profile_of((3, 6))) is told


def test_another_least_in_sync_is_counted_at_once():
    before = restored(history(release=(3, 6)).context)
    after = reconfigured(before, TWO, profile_of((3, 6)))
    assert [life.header.settings.min_insync_replicas for life in (before, after)] == [1, 2]
    assert [shown(life).under_min_isr_partitions for life in (before, after)] == [0, 2]
    assert shown(after) == shown(history(settings=TWO, release=(3, 6)).context)
    assert changed_chunks(before, after) == {}


def test_a_release_that_counts_the_least_in_sync_otherwise_is_counted_at_once():
    before = history(settings=TWO, release=(3, 6)).context
    after = reconfigured(before, TWO, profile_of((3, 7)))
    assert (after.header.profile, after.header.configuration.profile_is_set) == (profile_of((3, 7)), True)
    assert [shown(life).under_min_isr_partitions for life in (before, after)] == [2, 1]


def test_what_follows_is_counted_as_if_it_had_been_so_from_the_beginning():
    told, always = history(release=(3, 6)), history(settings=TWO, release=(3, 6))
    told.context = reconfigured(told.context, TWO, profile_of((3, 6)))
    for life in (told, always):
        life.state("t", 1, 1, 1, [1])
    assert shown(told.context) == shown(always.context)
    assert told.context.header.tally.gauges == count_gauges(told.context.topics, told.context.header.counting_rules)


def test_a_setting_that_no_count_depends_on_leaves_the_counts_alone():
    before = history().context
    after = reconfigured(before, {"delete.topic.enable": False}, None)
    assert after.header.settings.delete_topic_enable is False
    assert after.header.tally.gauges is before.header.tally.gauges


def test_a_release_that_is_set_no_more_is_inferred_again():
    inferred = history().context.header.profile
    told = history(release=(1, 1)).context
    after = reconfigured(told, {}, None).header
    assert (told.header.profile, after.profile, after.configuration.profile_is_set) == (
        profile_of((1, 1)),
        inferred,
        False,
    )
    unseen = reconfigured(new_context("c", profile=profile_of((1, 1)), chunk_count=4), {}, None)
    assert unseen.header == new_context("c", chunk_count=4).header
    assert unseen.header.profile == profile_of(NEWEST)


def timeless(header: Header) -> Header:
    """Blank the times at which troubles were first judged."""
    groups = {key: replace(group, since_ms=0) for key, group in header.tally.issues.items()}
    shown = header.copy()
    shown.tally.issues, shown.alerts.suspected_ms, shown.alerts.open = groups, {}, {}
    return shown


def timeless_partitions(context: Context) -> dict[str, dict[int, Partition]]:
    """Blank the same times of partitions. The heartbeat after the change judges them by the new rules."""
    return {
        name: {at: replace(partition, problem_since_ms=0) for at, partition in topic.partitions.items()}
        for name, topic in context.topics
    }


def test_at_whatever_record_it_changes_the_counts_end_as_if_it_had_always_been_so():
    always = history(settings=TWO, release=(3, 6))
    always.heartbeat()
    for at in range(len(always.records)):
        context = new_context("c", profile=profile_of((3, 6)), chunk_count=8)
        for record in always.records[:at]:
            context = step(context, record).context
        following = context.header.phase is Phase.FOLLOWING
        changed = reconfigured(context, TWO, profile_of((3, 6)))
        assert following or changed.header.tally.gauges == context.header.tally.gauges == GaugeCounts()
        for record in always.records[at:]:
            changed = step(changed, record).context
        assert timeless(changed.header) == timeless(always.context.header)
        assert timeless_partitions(changed) == timeless_partitions(always.context)
