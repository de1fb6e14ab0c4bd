"""The question for the events of a cluster."""

from __future__ import annotations

from typing import Annotated

from controller.contract.ids import BrokerId
from questions.explain.subject import Subject, read_partition
from questions.moments import TIMES, Moment, read_moment
from questions.picture import Picture
from questions.question import NotFoundError, Question, Scope, meaning
from questions.timeline.selection import HistorySpan, Selection, TimelineRows
from questions.timeline.timeline import Timeline, timeline_of


class ShowTimeline(Question, frozen=True):
    """List the events of a cluster in order, with their changes of leaders, ISRs and alerts."""

    answer = Timeline
    needs_past = True

    topics: Annotated[tuple[str, ...], meaning("Only this topic.")] = ()
    partitions: Annotated[tuple[str, ...], meaning("Only this partition, such as orders-7.")] = ()
    brokers: Annotated[tuple[int, ...], meaning("Only this broker, its leaderships and its places in ISRs.")] = ()
    controller: Annotated[bool, meaning("Only controllers, failovers, and phases of a migration to KRaft.")] = False
    since: Annotated[str | None, meaning(f"First moment: 0x1f, {TIMES}.")] = None
    until: Annotated[str | None, meaning(f"Last moment: 0x1f, {TIMES}.")] = None

    def __post_init__(self) -> None:
        """Raise ValueError for words that name no partition or no moment."""
        self._selection()
        self._window()

    def scope(self) -> Scope:
        """Return the whole cluster with its past."""
        return Scope(past=True, keeps=TimelineRows(), past_outputs=("transitions", "metadata", "alerts"))

    def ask(self, picture: Picture) -> Timeline:
        """Return the events. Raise NotFoundError if none is about a named subject."""
        selection = self._selection()
        found = timeline_of(picture, selection, self._window())
        if found is None:
            named = selection.words or "any subject"
            raise NotFoundError(f"the kept data of cluster {picture.header.cluster} lacks {named}")
        return found

    def similar(self, picture: Picture) -> list[str]:
        """Return existing subjects with a name similar to the first named topic or partition."""
        named = [Subject(name, topic=name) for name in sorted(self.topics)]
        named += [Subject(str(tp), partition=tp) for tp in sorted(map(read_partition, self.partitions))]
        return named[0].similar(picture) if named else []

    def _selection(self) -> Selection:
        return Selection(
            topics=frozenset(self.topics),
            partitions=frozenset(map(read_partition, self.partitions)),
            brokers=frozenset(map(BrokerId, self.brokers)),
            controller=self.controller,
        )

    def _window(self) -> HistorySpan:
        since, until = (Moment() if text is None else read_moment(text) for text in (self.since, self.until))
        return HistorySpan(since_zxid=since.zxid, since_ms=since.time_ms, until_zxid=until.zxid, until_ms=until.time_ms)
