"""Print whether a broker may be restarted, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType

from cli.printing.answers import line
from questions.restartable import Obstacle, Reason, Restartable, Verdict
from wording.times import exact_moment

_COLOURS: Final = {Verdict.YES: "green", Verdict.NO: "bold red", Verdict.UNKNOWN: "magenta"}
_NAMED_TOPICS: Final = 5


def restartable_lines(answer: Restartable) -> Iterator[RenderableType]:
    """Show the verdict, and a line for each reason or doubt."""
    yield line(
        (answer.verdict.value, _COLOURS[answer.verdict]),
        f": {headline(answer)}  as of {exact_moment(answer.as_of_ms)}",
    )
    lease = answer.lease
    if lease is not None and not any(reason.obstacle is Obstacle.LEASE for reason in answer.reasons):
        yield line(f"{lease.holder} holds the lease until {exact_moment(lease.until_ms)}", indent=2)
    for doubt in answer.doubts:
        yield line(doubt, indent=2)
    for reason in answer.reasons:
        yield line(reason.sentence, indent=2)
        if reason.topics:
            yield line(_topics(reason), indent=4)


def headline(answer: Restartable) -> str:
    """Return the verdict as a sentence."""
    if answer.verdict is Verdict.YES:
        return f"broker {answer.broker} may be restarted now"
    if answer.verdict is Verdict.NO:
        return f"do not restart broker {answer.broker} now"
    return f"Kontrast does not know whether broker {answer.broker} may be restarted"


def one_line(answer: Restartable) -> str:
    """Return the verdict with all reasons on one line."""
    why = "; ".join([*answer.doubts, *(reason.sentence for reason in answer.reasons)])
    return f"{headline(answer)}{': ' if why else ''}{why}"


def _topics(reason: Reason) -> str:
    named = [f"{each.topic} ({each.partitions})" for each in reason.topics[:_NAMED_TOPICS]]
    more = len(reason.topics) - len(named) + reason.more_topics
    return ", ".join([*named, f"and {more} more" if more else ""]).removesuffix(", ")
