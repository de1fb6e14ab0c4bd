"""Answer to the question whether a broker may be restarted, with its text."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from controller.contract.ids import BrokerId
from questions.clients.groups import Impact
from wording.said import Said, line
from wording.times import exact_moment


class Verdict(Enum):
    """Answer to the question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_SAID_TOPICS: Final = 5
_SAID_HITS: Final = 10
_MEANINGS: Final = {Verdict.YES: "ok", Verdict.NO: "page", Verdict.UNKNOWN: "unknown"}


class Obstacle(Enum):
    """Kind of a reason against a restart."""

    CANNOT_START = "cannot-start"
    OFFLINE = "offline"
    LOSES_RECORDS = "loses-records"
    REFUSES_ACKS_ALL = "refuses-acks-all"
    BROKER_DOWN = "broker-down"
    BROKER_UNKNOWN = "broker-unknown"
    SHUTTING_DOWN = "shutting-down"
    CATCHING_UP = "catching-up"
    NO_CONTROLLER = "no-controller"
    CONTROLLER_BUSY = "controller-busy"
    REASSIGNMENT = "reassignment"
    DELETION = "deletion"
    START_FAILS = "start-fails"


class TopicCount(msgspec.Struct, frozen=True):
    """Partitions of one topic."""

    topic: str
    partitions: int


class Reason(msgspec.Struct, frozen=True):
    """Reason against a restart. `topics` are the most important ones, and `more_topics` counts the others."""

    obstacle: Obstacle
    sentence: str
    topics: tuple[TopicCount, ...] = ()
    more_topics: int = 0
    impact: Impact | None = None  # on consumer groups and transactional ids, if any is known

    def said(self) -> Said:
        """Yield the reason, then its topics and groups."""
        yield line(self.sentence, indent=2)
        if self.topics:
            named = [f"{each.topic} ({each.partitions})" for each in self.topics[:_SAID_TOPICS]]
            more = len(self.topics) - len(named) + self.more_topics
            yield line(", ".join([*named, *([f"and {more} more"] if more else [])]), indent=4)
        if self.impact is not None:
            yield from self.impact.said(_SAID_HITS)


class Restartable(msgspec.Struct, frozen=True):
    """Answer for one broker. `doubts` has a sentence for each reason why the answer is unknown."""

    cluster: str
    as_of_ms: int
    broker: BrokerId
    verdict: Verdict
    reasons: tuple[Reason, ...]
    doubts: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Return the verdict as a sentence."""
        if self.verdict is Verdict.YES:
            return f"broker {self.broker} may be restarted now"
        if self.verdict is Verdict.NO:
            return f"do not restart broker {self.broker} now"
        return f"Kontrast does not know whether broker {self.broker} may be restarted"

    @property
    def one_line(self) -> str:
        """Return the verdict with all reasons on one line."""
        why = "; ".join([*self.doubts, *(reason.sentence for reason in self.reasons)])
        return f"{self.headline}{': ' if why else ''}{why}"

    def said(self) -> Said:
        """Yield the verdict, and a line for each reason or doubt."""
        word = (self.verdict.value, _MEANINGS[self.verdict])
        yield line(word, f": {self.headline}  as of {exact_moment(self.as_of_ms)}")
        for doubt in self.doubts:
            yield line(doubt, indent=2)
        for reason in self.reasons:
            yield from reason.said()
