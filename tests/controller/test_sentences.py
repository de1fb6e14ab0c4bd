"""Sentences of alerts, all in `sentences.txt`, for one and for several, and at the end.

`REWRITE=1 pytest tests/controller/test_sentences.py` writes the current ones. Read the page as the person it wakes. It
must name the event, the object, the effect on clients and the next step.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.says.alert_kinds.kinds import ALERT_KINDS
from tests.controller.stories_of_alerts import STORIES, Story
from tests.controller.znode_history import ZnodeHistory
from tests.kept_texts import assert_as_before

PAGE = Path(__file__).parent / "sentences.txt"

LONGEST = 230  # with the two names and the counts of these stories. A real topic's name is longer


def opened(history: ZnodeHistory, kind: str) -> AlertRow:
    """Return the newest row of the open alert of this kind."""
    return next(row for row in history.open_alerts().values() if row.alert == kind)


def told(story: Story) -> tuple[list[tuple[Severity, str]], str]:
    """Return the alert's sentences, for one and for three if it counts, and the sentence that ends it."""
    said = []
    for count in (1, 3) if story.counts else (1,):
        alert = opened(story.opened(count), story.kind)
        said.append((alert.severity, alert.cause))
        rows = story.ended(count).effects
        ends = [row for row in rows if isinstance(row, AlertRow) and row.id == alert.id]
        assert ends[-1].state == "resolved", f"{story.title} does not end"
    return said, ends[-1].cause


def advice(story: Story) -> list[str]:
    """Return the alert's advice if it is not its kind's."""
    action = opened(story.opened(), story.kind).action
    return [] if action == ALERT_KINDS[story.kind].action else [action]


def written(story: Story) -> str:
    said, ending = told(story)
    lines = [f"{story.kind}: {story.title}"]
    lines += [f"  {severity.value:4}  {sentence}" for severity, sentence in said]
    lines += [f"  do    {action}" for action in advice(story)]
    return "\n".join([*lines, f"  end   {ending}"]) + "\n"


def page() -> str:
    order = list(ALERT_KINDS)
    return "\n".join(written(story) for story in sorted(STORIES, key=lambda story: order.index(story.kind)))


def test_the_page_has_the_alerts_that_are_open_now():
    assert_as_before(page(), PAGE)


def test_every_kind_of_alert_is_on_the_page():
    headings = re.findall(r"^(\w+):", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert list(dict.fromkeys(headings)) == list(ALERT_KINDS)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.kind}-{story.title}")
def test_a_sentence_is_one_short_clause(story):
    said, ending = told(story)
    for sentence in (*(sentence for _, sentence in said), ending):
        assert len(sentence) <= LONGEST, len(sentence)
        assert not sentence.endswith(".")
    if story.counts:
        assert said[0] != said[1]


def of_kinds(field: str) -> pytest.MarkDecorator:
    """Run a test with every story whose kind has this field."""
    stories = [story for story in STORIES if getattr(ALERT_KINDS[story.kind], field)]
    return pytest.mark.parametrize("story", stories, ids=lambda story: f"{story.kind}-{story.title}")


@of_kinds("lasts_ms")
def test_what_happened_stays_open_for_as_long_as_its_kind_lasts(story):
    history = story.opened()
    lasts_ms = ALERT_KINDS[story.kind].lasts_ms
    history.heartbeat(lasts_ms - 60_000)
    assert opened(history, story.kind)
    history.heartbeat(61_000)
    assert story.kind not in {row.alert for row in history.open_alerts().values()}


@of_kinds("divergence")
def test_a_divergence_is_counted(story):
    assert story.opened().gauges().divergences[ALERT_KINDS[story.kind].divergence] >= 1
