"""Every sentence of every alert, explanation and card, with no, one, two and many subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import messages_of
from questions.check.check import Finding
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.memory import Memory
from questions.page.incident_cards import Presentation
from questions.page.overview import Overview, Overviews, ShownMoment
from questions.picture import Picture, Present
from tests.controller.stories_of_alerts import STORIES, Story
from tests.controller.znode_history import ZnodeHistory
from tests.questions.cluster import broker, brokers, controller, look, state, topic
from tests.wording.faults import MOST_WORDS, MOST_WORDS_OF_ADVICE, faults
from wording.sentences import counted, in_brackets, listed, plural

MANY = 40  # more than any sentence names
COUNTS = (1, 2, MANY)


def assert_plain(texts: Iterable[str], most_words: int = MOST_WORDS) -> None:
    assert list(dict.fromkeys(fault for text in texts for fault in faults(text, most_words))) == []


@cache
def told(story: Story, count: int) -> tuple[Row, ...]:
    """Return the rows of a story until it has ended."""
    return tuple(story.ended(count).effects)


def words_of_rows(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the sentences of alerts and partitions, and those that Alertmanager gets."""
    for row in rows:
        if isinstance(row, AlertRow):
            yield from (row.cause, row.expected or "", *row.evidence, *row.news)
            for message in messages_of(row, AlertmanagerConfig()):
                texts = dict(message.annotations)
                yield from (texts["summary"], texts["description"])
        elif isinstance(row, PartitionRow):
            yield row.reason or ""


STORIES_BY_COUNT = [(story, count) for story in STORIES for count in (COUNTS if story.counts else (1,))]
NAMES = [f"{story.kind}-{story.title}-{count}" for story, count in STORIES_BY_COUNT]


@pytest.mark.parametrize(("story", "count"), STORIES_BY_COUNT, ids=NAMES)
def test_every_alert_is_told_plainly_from_its_begin_to_its_end(story, count):
    rows = told(story, count)
    assert_plain(words_of_rows(rows))
    assert_plain((row.action for row in rows if isinstance(row, AlertRow)), MOST_WORDS_OF_ADVICE)


@pytest.mark.parametrize("kind", ALERT_KINDS.values(), ids=lambda kind: kind.name)
def test_every_text_of_a_kind_is_plain(kind):
    assert_plain([kind.expected or "", kind.patience_else or "", kind.ends_early])
    assert_plain([kind.action], MOST_WORDS_OF_ADVICE)
    for count in (2, MANY):
        names = in_brackets(("t-0", "t-1", "t-2"), count)
        assert_plain([kind.several.format(count=count, names=names)])
    for count in COUNTS:
        values = {
            "partitions": counted(count, "partition"),
            "brokers": listed(range(1, count + 1)),
            "broker": 1,
            "subject": "broker 1",
            "them": plural(count, "it", "them"),
        }
        assert_plain([kind.headline.format(**values), kind.step.format(**values)])


def test_every_kind_has_a_story_and_counts_what_it_can():
    assert {story.kind for story in STORIES} == ALERT_KINDS.keys()
    counting = {story.kind for story in STORIES if story.counts}
    assert {kind.name for kind in ALERT_KINDS.values() if "{count}" in kind.several} <= counting


def overviews(rows: Iterable[Row]) -> Iterator[Overview]:
    """Yield the page's overview whenever alerts have changed."""
    memory = Memory()
    made = Overviews(memory, Presentation(), (), lambda _: "not asked")
    for row in rows:
        memory.apply(row)
        if isinstance(row, AlertRow):
            now_ms = row.time_ms
            for found in memory.clusters():
                overview = made.now(found, Present(now_ms, now_ms), now_ms)
                whole = memory.cluster(found.cluster, None, None)
                assert whole is not None
                yield made.mapped(overview, whole, ShownMoment(None, now_ms))


def words_of(overview: Overview) -> Iterator[str]:
    state = overview.state
    yield from (state.event, state.reason, state.effect, state.restores)
    yield from overview.doubts
    for card in overview.incidents:
        yield from (card.event, card.how, card.effect, card.detail, card.keep_up)
        yield from (each.says for each in card.returns)
    for finding in findings_of(overview):
        yield from (finding.cause, finding.expected or "", *finding.evidence)
    if overview.map is not None:
        for line in overview.map.lines:
            yield from (line.says, *(cause.says for cause in line.causes))
        yield from (choice.says for choice in overview.map.choices)
    yield from (news.says for news in overview.news)
    if overview.migration is not None:
        yield from (overview.migration.next_step, overview.migration.quorum)


def findings_of(overview: Overview) -> Iterator[Finding]:
    yield from overview.own_alerts
    for card in overview.incidents:
        yield from card.alerts


def advice_of(overview: Overview) -> Iterator[str]:
    yield overview.state.first_step
    yield from (finding.action for finding in findings_of(overview))
    if overview.migration is not None:
        yield overview.migration.rollback_sentence


def assert_cards_are_plain(rows: Iterable[Row]) -> None:
    shown = list(overviews(rows))
    assert_plain(text for overview in shown for text in words_of(overview))
    assert_plain((text for overview in shown for text in advice_of(overview)), MOST_WORDS_OF_ADVICE)


@pytest.mark.parametrize(("story", "count"), STORIES_BY_COUNT, ids=NAMES)
def test_every_card_is_told_plainly(story, count):
    assert_cards_are_plain(told(story, count))


def losses(brokers: int, partitions: int, then: Callable[[ZnodeHistory, list[int]], object]) -> ZnodeHistory:
    """Return a history in which so many brokers, each with so many partitions of its own, are gone at once."""
    lost = list(range(10, 10 + brokers))
    topics = {f"own-{broker}": {at: ([broker], broker, 0, [broker]) for at in range(partitions)} for broker in lost}
    shared = {at: ([broker, 1], broker, 0, [broker, 1]) for at, broker in enumerate(lost)}
    history = ZnodeHistory(release=(3, 9)).start(1, 2, *lost, controller=2, topics={**topics, "shared": shared})
    history.heartbeat()
    then(history, lost)
    for _ in range(2):
        history.heartbeat(6_000)
        history.the_controller_writes_its_due()
    history.heartbeat(6_000)
    return history


def crash(history: ZnodeHistory, lost: list[int]) -> None:
    for each in lost:
        history.broker_leaves(each)


def crash_and_one_returns(history: ZnodeHistory, lost: list[int]) -> None:
    crash(history, lost)
    history.heartbeat(6_000)
    for each in lost[:1]:
        history.broker(each)


def shut_down(history: ZnodeHistory, lost: list[int]) -> None:
    for each in lost:
        history.broker_closes(each)


@pytest.mark.parametrize("then", [crash, crash_and_one_returns, shut_down], ids=lambda then: then.__name__)
@pytest.mark.parametrize(("count", "partitions"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 2), (12, 1), (50, 1)])
def test_every_number_of_lost_brokers_is_told_plainly(count, partitions, then):
    rows = losses(count, partitions, then).effects
    assert_plain(words_of_rows(rows))
    assert_cards_are_plain(rows)


def test_a_card_has_each_broker_to_start():
    shown = list(overviews(losses(2, 1, crash).effects))
    assert any(len(card.returns) == 2 for overview in shown for card in overview.incidents)


def explanations(picture: Picture) -> Iterator[Explanation]:
    yield explain_controller(picture)
    for number in {*picture.header.brokers, BrokerId(9)}:
        yield explain_broker(picture, number)
    for name, found in picture.context.topics:
        yield explain_topic(picture, name)
        yield from (explain_partition(picture, TopicPartition(name, number)) for number in [*found.partitions][:3])


def said(explanation: Explanation) -> Iterator[str]:
    yield from (explanation.headline, *explanation.doubts)
    yield from (statement.says for statement in explanation.statements)
    for cause in explanation.causes or ():
        yield from (cause.says, cause.event)
    yield from (finding.cause for finding in explanation.findings)


def lost(count: int, replicas: list[int], isr: list[int]) -> dict[str, object]:
    """Return a cluster with so many partitions that have no live in-sync replica."""
    znodes = {**brokers(1, 2, 3), **controller(1), **topic("t", *[replicas] * count)}
    for number in range(count):
        znodes |= state("t", number, -1, isr)
    return znodes


@pytest.mark.parametrize("count", [0, *COUNTS])
@pytest.mark.parametrize(
    ("replicas", "isr"),
    [
        ([1, 1], []),  # an assignment that names a broker twice, and an empty ISR
        ([1, 2], []),
        ([9], [9]),
        ([9, 8], [9, 8]),
        ([1, 9], [9]),
        (list(range(10, 310)), list(range(10, 310))),
        (list(range(1, 301)), [1]),
    ],
    ids=["twice", "empty", "one", "two", "unclean", "300", "under-replicated"],
)
def test_every_explanation_is_told_plainly(count, replicas, isr):
    for explanation in explanations(look(lost(count, replicas, isr))):
        assert_plain(said(explanation))


@pytest.mark.parametrize("absent", [0, 1, 2, 300])
def test_brokers_that_never_registered_are_told_plainly(absent):
    replicas = [1, *range(10, 10 + absent)]
    picture = look({**broker(1), **controller(1), **topic("t", replicas), **state("t", 0, 1, [1])})
    for explanation in explanations(picture):
        assert_plain(said(explanation))
    assert_plain(text for row in picture.alerts for text in (row.cause, row.expected or "", row.action))


def test_absent_brokers_whose_partitions_lack_nothing_yet_say_what_is_missing():
    deleting = {"/admin/delete_topics/t": None}
    picture = look({**broker(1), **controller(1), **topic("t", [8, 9]), **state("t", 0, -1, [8]), **deleting})
    causes = {row.alert: row.cause for row in picture.alerts}
    assert_plain(causes.values())
    absent = "brokers 8 and 9 host replicas but are not registered: their 2 replicas are missing"
    assert causes["BrokerAbsent"] == absent


def test_an_empty_isr_has_only_an_unclean_election():
    picture = look(lost(1, [1, 1], []))
    explanation = explain_partition(picture, TopicPartition("t", 0))
    assert "the ISR is empty" in explanation.headline
    ways = [statement.says for statement in explanation.statements if statement.about == "comes back"]
    assert ways == ["only by an unclean election, because the ISR is empty"]


def test_a_topic_without_partitions_is_not_all_led():
    picture = look({**broker(1), **controller(1), "/brokers/topics/bad-json": {"version": 1, "partitions": {}}})
    assert explain_topic(picture, "bad-json").headline == "it has no partitions"


@pytest.mark.parametrize(
    "text",
    [
        "in sync [], . It stays offline until broker  returns",
        "comes back        , with every acknowledged record",
        "brokers 8 and 9 were never seen:  (bad-dead-0)",
        "topic bad-json: all 0 partitions are led and in sync",
        "1 partition regain replicas",
        "brokers 1 and 2 is down",
        "3 partitions has no leader",
        "it has 1 partitions",
        "they waits for broker .",
        " ".join(["word"] * 26),
    ],
)
def test_a_fault_is_found(text):
    assert list(faults(text))
