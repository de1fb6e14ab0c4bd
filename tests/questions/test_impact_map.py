"""The impact map of recorded and made-up clusters, whose numbers must be those of `whatif` and of the ranking."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId
from questions.check.damage import place_of
from questions.memory import Memory
from questions.page.impact_map import AFFECTED, Asked, ImpactMap, MapLine, Moment, SquareState, impact_map
from questions.page.incident_cards import Presentation
from questions.page.overview import Overviews, ShownMoment
from questions.whatif.rolling import rank_losses
from questions.whatif.scenario import Step, StepKind, play
from tests.dashboards import page_cases
from tests.dashboards.page_cases import Size, Story
from tests.dashboards.recorded_cases import recorded_story

CASES = (
    page_cases.healthy,
    page_cases.shutdown,
    page_cases.long_name,
    partial(recorded_story, "rack-lost"),
    partial(recorded_story, "brokers-30"),
    pytest.param(partial(recorded_story, "topics-2000"), marks=pytest.mark.nightly),  # 20 s to begin
)


class Mapped:
    """A story's cluster, its incidents, and its maps."""

    def __init__(self, story: Story) -> None:
        self.context = story.context
        memory = Memory()
        for row in page_cases.in_order(story.effects):
            memory.apply(row)
        found = memory.cluster(story.cluster, topics=None)
        assert found is not None
        self.found, self._ranks = found, ()
        overview = Overviews(memory, Presentation(), self._ranks, lambda _: "").overview(found, None)
        cards = overview.incidents
        self.returns = [each.broker for each in cards[0].returns if each.restores] if cards else []
        self.restores = [each.restores for each in cards[0].returns if each.restores] if cards else []

    def map(self, moment: Moment) -> ImpactMap:
        asked = Asked(self.found.picture(()).header, self.found, self.returns, moment)
        return impact_map(self.found, partial(place_of, ranks=self._ranks), asked)

    def after(self, change: StepKind, *brokers: BrokerId) -> int:
        then = play(self.context, [Step(change, brokers)]).in_all
        return then.offline + then.under_min_isr


@pytest.fixture(scope="module", params=CASES)
def mapped(request):
    return Mapped(request.param())


def counts(impact: ImpactMap) -> dict[Moment, int]:
    return {choice.moment: choice.affected for choice in impact.choices}


def affected(lines: tuple[MapLine, ...]) -> int:
    return sum(line.counts.get(state, 0) for line in lines for state in AFFECTED)


def test_the_numbers_of_moments_are_those_of_whatif_and_the_order_of_return(mapped):
    found = counts(mapped.map(Moment.NOW))
    gauges = mapped.context.header.tally.gauges
    assert found[Moment.NOW] == gauges.leaderless + gauges.under_min_isr_partitions
    for moment, brokers in ((Moment.FIRST, mapped.returns[:1]), (Moment.SECOND, mapped.returns[:2])):
        if moment in found:
            assert found[moment] == mapped.after(StepKind.RESTORE, *brokers)
            assert found[moment] == found[Moment.NOW] - sum(mapped.restores[: len(brokers)])
    worst = next(loss for loss in rank_losses(mapped.context) if len(loss.brokers) == 1)
    shown = mapped.map(Moment.LOSS)
    assert shown.lost == (() if worst.is_harmless else worst.brokers)
    assert found[Moment.LOSS] == mapped.after(StepKind.CRASH, *worst.brokers)


@pytest.mark.parametrize("moment", Moment)
def test_the_lines_have_as_many_affected_partitions_as_the_moment_says(mapped, moment):
    impact = mapped.map(moment)
    shown = next(choice for choice in impact.choices if choice.moment is impact.shown)
    if not impact.more_affected:
        assert affected(impact.lines) == shown.affected
    assert len(impact.lines) + impact.more_affected + impact.others == len(mapped.found.topics)
    for line in impact.lines:
        assert sum(len(cause.partitions) for cause in line.causes) == affected((line,))
        assert not line.squares or [each.partition for each in line.squares] == list(range(line.partitions))


def test_a_topic_with_many_partitions_has_counts_instead_of_squares():
    topics = {"large": Size(61, 1, 1), "small": Size(60, 1, 1)}
    mapped = Mapped(Story("orders").begin(topics=topics).crash(1).to_the_present())
    lines = {line.topic: line for line in mapped.map(Moment.NOW).lines}
    assert (len(lines["large"].squares), len(lines["small"].squares)) == (0, 60)
    assert lines["large"].counts == {SquareState.OFFLINE: 16, SquareState.USABLE: 45}
    assert lines["large"].says == "16 offline"
    back = {line.topic: line for line in mapped.map(Moment.FIRST).lines}
    assert (back["large"].says, back["large"].counts[SquareState.COMES_BACK]) == ("all back", 16)


def test_a_topic_in_deletion_is_neither_usable_nor_affected():
    story = Story("orders").begin(topics={"old": Size(6, 3, 2), "new": Size(6, 3, 2)})
    story.broker_leaves(4)
    story.delete_topic("old")
    mapped = Mapped(story.to_the_present())
    for moment in (Moment.NOW, Moment.LOSS):
        old = next(line for line in mapped.map(moment).lines if line.topic == "old")
        assert (old.counts, old.says) == ({SquareState.IN_DELETION: 6}, "6 in deletion")
    assert SquareState.IN_DELETION in mapped.map(Moment.NOW).states


def test_before_an_incident_nothing_of_it_was_broken():
    story = Story("orders", minutes=9).begin(topics={"orders": Size(12, 1, 1)}).crash(1)
    for _ in range(20):
        story.heartbeat(5_000)
    memory = Memory()
    for row in page_cases.in_order(story.crash(4).to_the_present().effects):
        memory.apply(row)
    found = memory.cluster("orders", topics=None)
    assert found is not None
    overviews = Overviews(memory, Presentation(), (), lambda _: "")
    made = overviews.overview(found, None)
    impact = overviews.mapped(made, found, ShownMoment(None, story.now_ms)).map
    assert impact is not None
    assert counts(impact)[Moment.BEFORE] == 0 < counts(impact)[Moment.NOW]


def test_counts_cards_and_map_of_one_moment_agree_before_the_next_heartbeat():
    story = Story("orders").begin(topics={"orders": Size(12, 2, 1), "scratch": Size(8, 1, 1)}).to_the_present()
    heard = len(story.effects)
    story.crash(1)
    rows = [*story.effects[:heard], *(row for row in story.effects[heard:] if not isinstance(row, GaugesRow))]
    memory = Memory()
    for row in page_cases.in_order(rows):
        memory.apply(row)
    found = memory.cluster("orders", topics=None)
    assert found is not None
    overviews = Overviews(memory, Presentation(), (), lambda _: "")
    made = overviews.overview(found, None)
    assert made.health is not None
    impact = overviews.mapped(made, found, ShownMoment(None, story.now_ms)).map
    assert impact is not None
    by_state = sum((Counter(line.counts) for line in impact.lines), Counter())
    assert made.health.counts.leaderless == by_state[SquareState.OFFLINE] == made.incidents[0].unusable == 2
    assert made.lacking == by_state[SquareState.UNDER_REPLICATED] == made.incidents[0].under_replicated == 6


def test_of_very_many_topics_only_the_affected_ones_have_lines():
    topics = {f"t-{number:03}": Size(1, 1, 1) for number in range(120)}
    mapped = Mapped(Story("orders").begin(topics=topics).crash(1).to_the_present())
    impact = mapped.map(Moment.NOW)
    assert (len(impact.lines), impact.more_affected, impact.others) == (24, 6, 90)
    assert all(line.causes[0].says == "Its only replica is on broker 1." for line in impact.lines)
    healthy = Mapped(Story("orders").begin(topics=topics).to_the_present())
    assert healthy.map(Moment.NOW).lines == ()
    assert len(healthy.map(Moment.LOSS).lines) == 24
