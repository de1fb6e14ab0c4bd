"""Judgement of a broker's restart now, with every reason against it.

The question is for a person or a playbook in front of the next restart of a rolling restart. The answer is `unknown`
where Kontrast does not see the present, and never `yes` by default.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from controller.contract.flaw import Flaw
from controller.contract.ids import BrokerId
from controller.says.alert_kinds.kinds import NOTIFICATION_BACKLOG
from controller.view.advice import advice_for
from controller.view.flawed_znodes import OF_ZNODES, harming_failovers, no_controller_because, stopping_starts
from controller.view.gauges import REASSIGNING, replicas_by_broker
from controller.view.health import is_without_session, never_registered
from controller.view.held_back import held_back
from controller.view.partition_issues import PartitionIssue, parse_group
from controller.view.types import Context, Header, StoredEvent, Topic
from questions.check.check import counts_in
from questions.check.state import Counts
from questions.clients.groups import Impact, sizes_in, troubled_in
from questions.doubts import doubts
from questions.known_brokers import UnknownBrokersError, refuse_unknown
from questions.lint.checks import edited_state, state_of_a_later_controller
from questions.lint.cluster import linted
from questions.picture import Picture
from questions.question import Question, meaning
from questions.whatif.consequences import PartitionChange, place_of
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.rolling import failing_starts
from questions.whatif.scenario import Step, StepKind, play
from wording.facts import Fact, down, unknown
from wording.said import Said, line
from wording.sentences import counted, did_you_mean, joined, near, verb
from wording.times import exact_moment


class Verdict(Enum):
    """Answer to the question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_SAID_TOPICS: Final = 5
_SAID_HITS: Final = 10
_NAMED: Final = 5
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


_NAMED_TOPICS: Final = 20
_WILDCARD: Final = re.compile(r"[*?[]")


class MayRestart(Question, frozen=True):
    """Judge whether a broker may be restarted now, with every reason against it."""

    answer = Restartable
    tool = "restartable"
    path = "/clusters/{cluster}/restartable"
    asks_clients = True

    broker: Annotated[int, meaning("Broker to restart.")]
    accept_topics: Annotated[
        tuple[str, ...], meaning("Topics that may go offline or reject acks=all, such as 'scratch-*'.")
    ] = ()
    accept_absent: Annotated[
        tuple[int, ...], meaning("Broker that need not come back, such as a wrong id in a reassignment.")
    ] = ()

    def ask(self, picture: Picture) -> Restartable:
        """Judge the restart by a controlled shutdown. Raise NotFoundError."""
        absent = tuple(map(BrokerId, self.accept_absent))
        return restartable(picture, BrokerId(self.broker), accepted_topics=self.accept_topics, accepted_absent=absent)


def restartable(
    picture: Picture,
    broker: BrokerId,
    *,
    accepted_topics: Collection[str] = (),
    accepted_absent: Collection[BrokerId] = (),
) -> Restartable:
    """Judge the restart of a broker by a controlled shutdown.

    Partitions of topics that match a pattern of `accepted_topics` may go offline or reject acks=all. Brokers of
    `accepted_absent` need not come back, and reassignments and deletions may wait for them. Raises
    UnknownBrokersError for a broker that nothing in the cluster names, and for a topic that does not exist.
    """
    header = picture.header
    refuse_unknown(picture.context, (broker, *accepted_absent))
    _refuse_unknown_topics(picture, accepted_topics)
    found = list(doubts(picture))
    reasons: tuple[Reason, ...] = ()
    if not found:
        try:
            reasons = tuple(_reasons(picture, broker, accepted_topics, accepted_absent))
        except NoControllerError as error:
            found.append(str(error))
    verdict = Verdict.UNKNOWN if found else Verdict.NO if reasons else Verdict.YES
    return Restartable(header.cluster, picture.as_of_ms, broker, verdict, reasons, tuple(found))


def _reasons(
    picture: Picture, broker: BrokerId, accepted_topics: Collection[str], accepted_absent: Collection[BrokerId]
) -> Iterator[Reason]:
    """Yield the reasons against the restart, those that clients would feel first."""
    context, header, counts = picture.context, picture.header, counts_in(picture)
    for failing in failing_starts(picture):
        if failing.subject != OF_ZNODES and (not failing.brokers or broker in failing.brokers):
            yield Reason(Obstacle.CANNOT_START, failing.cause)
    if broker in header.brokers:
        yield from _consequences(picture, broker, accepted_topics)
    yield from _brokers_away(header, accepted_absent)
    if counts.under_replicated:
        yield from _catching_up(context, broker)
    cluster = linted(picture)
    edited = ((edited_state, Obstacle.LOSES_RECORDS), (state_of_a_later_controller, Obstacle.NO_CONTROLLER))
    for check, obstacle in edited:
        if places := list(check.find(cluster)):
            mend = advice_for(check.advice, header).removesuffix(".")
            yield Reason(obstacle, f"{joined(places, most=_NAMED)}: {check.will} {mend}")
    for flawed in stopping_starts(header, broker):
        yield Reason(Obstacle.START_FAILS, flawed.with_mend)
    yield from _controller(header, broker)
    for row in picture.alerts:  # one queue has the notifications, shutdowns and elections
        if row.alert == NOTIFICATION_BACKLOG.name:
            yield Reason(Obstacle.CONTROLLER_BUSY, f"{row.cause}, so it may be late with new leaders")
    yield from _work_under_way(context, counts, set(accepted_absent).difference(header.brokers))


def _refuse_unknown_topics(picture: Picture, accepted: Collection[str]) -> None:
    """Refuse the name of a topic that does not exist. A pattern may match no topic yet."""
    for name in accepted:
        if not _WILDCARD.search(name) and picture.topic(name) is None:
            names = [topic for topic, _ in picture.context.topics]
            raise UnknownBrokersError(f"there is no topic {name} to be accepted{did_you_mean(near(name, names))}")


def _consequences(picture: Picture, broker: BrokerId, accepted_topics: Collection[str]) -> Iterator[Reason]:
    taken = play(picture.context, [Step(StepKind.SHUT_DOWN, (broker,))]).in_all
    back = f"until broker {broker} is"
    would: tuple[tuple[Obstacle, str, Iterable[PartitionChange]], ...] = (
        (Obstacle.OFFLINE, f"would {Fact.OFFLINE.infinitive} {back} back", taken.newly_offline),
        (Obstacle.LOSES_RECORDS, f"would lose acknowledged records when broker {broker} leaves", taken.unclean),
        (
            Obstacle.REFUSES_ACKS_ALL,
            f"would {Fact.REJECTS_ACKS_ALL.infinitive} {back} in sync again",
            taken.newly_unwritable,
        ),
    )
    for obstacle, effect, changes in would:
        hit = [
            change for change in changes if not any(fnmatchcase(change.topic, pattern) for pattern in accepted_topics)
        ]
        if hit:
            topics = Counter(change.topic for change in hit)
            reason = _by_topic(obstacle, f"{counted(len(hit), 'partition')} {effect}", topics, picture.context)
            yield _with_impact(reason, hit, picture)


def _with_impact(reason: Reason, hit: Iterable[PartitionChange], picture: Picture) -> Reason:
    """Return the reason with the groups, transactional ids and teams that the loss of these partitions stops."""
    impact = picture.clients.hit_by(troubled_in(hit, sizes_in(picture.context)))
    if impact is None or not impact.sentence:
        return reason
    return replace(
        reason, sentence=f"{reason.sentence}. This {impact.sentence}, {impact.as_of(picture.now_ms)}", impact=impact
    )


def _by_topic(obstacle: Obstacle, sentence: str, topics: Counter[str], context: Context) -> Reason:
    ranked = sorted(topics.items(), key=lambda item: place_of(item[0], context))
    named = tuple(TopicCount(topic, partitions) for topic, partitions in ranked[:_NAMED_TOPICS])
    return Reason(obstacle, sentence, named, len(ranked) - len(named))


def _brokers_away(header: Header, accepted: Collection[BrokerId]) -> Iterator[Reason]:
    """Yield a reason for each broker that is shutting down, or hosts replicas and is not registered."""
    for ghost in sorted(broker for broker in header.brokers if is_without_session(broker, header)):
        why = f"{down((ghost,))}, because /brokers/ids/{ghost} belongs to no session (delete the znode, and start it)"
        yield Reason(Obstacle.BROKER_DOWN, why)
    for away in sorted(replicas_by_broker(header).keys() - header.brokers.keys() - set(accepted)):
        if never_registered(header, away):
            accept = f"If it need not come, use --accept-absent {away}"
            yield Reason(Obstacle.BROKER_UNKNOWN, f"{unknown((away,), 'assignment or reassignment')} {accept}")
        else:
            yield Reason(Obstacle.BROKER_DOWN, f"{down((away,))} (start it and wait until its replicas are in sync)")
    for leaving in sorted(set(header.shutdowns.under_way) & header.brokers.keys()):
        yield Reason(Obstacle.SHUTTING_DOWN, f"broker {leaving} is shutting down, and must be back first")


def _catching_up(context: Context, broker: BrokerId) -> Iterator[Reason]:
    """Yield other registered brokers whose replicas are not in sync, as after their own restart."""
    registered = context.header.brokers.keys() - {broker}
    lagging: dict[BrokerId, Counter[str]] = {}
    for name, topic in context.topics:
        for partition in topic.partitions.values() if topic.exists and not topic.queued_for_deletion else ():
            value = partition.zk_state
            if value is None or len(value.isr) >= len(partition.replicas):
                continue
            for replica in partition.replicas:
                if replica in registered and replica not in (*value.isr, value.leader):
                    lagging.setdefault(replica, Counter())[name] += 1
    for replica, topics in sorted(lagging.items()):
        behind, held = topics.total(), held_back((replica,), context.header).removesuffix(".")
        why = f": {held}" if held else ""
        yield _by_topic(
            Obstacle.CATCHING_UP,
            f"{counted(behind, 'replica')} of broker {replica} {verb(behind, 'is')} not in sync yet{why}",
            topics,
            context,
        )


def _controller(header: Header, broker: BrokerId) -> Iterator[Reason]:
    flawed = no_controller_because(header)
    if flawed is None and broker == header.controller:
        flawed = next(iter(harming_failovers(header)), None)
    # The present controller goes on, whatever login another broker would need. What ends starts is told already.
    goes_on = flawed is None or flawed.flaw is Flaw.LOCKED and header.acting and broker != header.controller
    if flawed is not None and not goes_on and not flawed.consequence.stops_start:
        yield Reason(Obstacle.NO_CONTROLLER, flawed.with_mend)
    if not header.acting:
        yield Reason(Obstacle.NO_CONTROLLER, "no broker acts as controller, so the partitions would get no new leaders")
        return
    if header.controller not in header.brokers:
        lost = f"controller {header.controller} is not registered, so a broker cannot ask it for a clean shutdown"
        yield Reason(Obstacle.NO_CONTROLLER, lost)
    due = sum(event.writes_due for event in header.events.values() if not _reassigns(event))
    if due:
        yield Reason(
            Obstacle.CONTROLLER_BUSY, f"the controller still has {counted(due, 'write')} to do for earlier events"
        )


def _reassigns(event: StoredEvent) -> bool:
    return "Reassignment" in event.kind.value


def _work_under_way(context: Context, counts: Counts, accepted: set[BrokerId]) -> Iterator[Reason]:
    """Yield reassignments and deletions under way, without those that wait for accepted brokers alone."""
    header = context.header
    # The controller's memory completes a reassignment when all replicas are in sync. Its entry goes with the due write.
    topics = {name for event in header.events.values() if _reassigns(event) for name in event.topics}
    partitions = [at for name, topic in context.topics if name in topics for at in topic.partitions.values()]
    ending = sum(bool(at.pending_assignments) and not at.reassigning for at in partitions)
    waiting = [parse_group(key)[1] for key in header.tally.issues if accepted and key.startswith(REASSIGNING)]
    keys = [PartitionIssue.REASSIGNING.of(brokers) for brokers in waiting if brokers and accepted.issuperset(brokers)]
    moved = counts.reassigning + ending - sum(header.tally.issues[key].count for key in keys)
    if moved > 0:
        yield Reason(Obstacle.REASSIGNMENT, f"the controller is still reassigning {counted(moved, 'partition')}")
    deleted = counts.topics_to_delete - sum(_waits_for(topic, accepted, header) for _, topic in context.topics)
    if deleted:
        yield Reason(Obstacle.DELETION, f"the controller is still deleting {counted(deleted, 'topic')}")


def _waits_for(topic: Topic, accepted: set[BrokerId], header: Header) -> bool:
    """Return whether the topic's deletion waits for accepted brokers, and for no other absent one."""
    if not accepted or not topic.queued_for_deletion:
        return False
    hosts = {replica for partition in topic.partitions.values() for replica in partition.replicas}
    absent = hosts - header.brokers.keys()
    return bool(absent) and accepted.issuperset(absent)
