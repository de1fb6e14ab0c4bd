"""Conditions of topics' znodes that no controller can load, of flawed ids, and of settings that end brokers' starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from controller.alerts.conditions import Condition
from controller.contract.alert_row import Severity
from controller.contract.flaw import Flaw
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.context import Header
from controller.says.alert_kinds import kinds as kinds
from controller.says.remedies.remedy import Advice
from controller.says.remedies.topics import PUT_ID_BACK_AND_FAIL_OVER
from controller.view.flawed_znodes import OF_ZNODES, FlawedZnode, stopping_starts, topic_znodes, topics_without_id
from controller.view.unparsable import Unparsable, unparsable_at_start
from wording.sentences import counted, in_brackets, plural, verb

_of_controller: Final = partial(Condition, group="controller")


def conditions_of_topics(header: Header) -> Iterator[Condition]:
    """Yield the problems of topics' znodes."""
    checks = (_unloadable, _duplicate_ids, _changed_ids, _missing_ids)
    yield from filter(None, (check(header) for check in checks))


def _duplicate_ids(header: Header) -> Condition | None:
    if not header.term.duplicate_topic_ids:
        return None
    pairs = tuple(
        f"topics {first} and {second} have the same id ({topic_id})"
        for topic_id, first, second in header.term.duplicate_topic_ids
    )
    more = f" and {counted(len(pairs) - 1, 'other pair')} too" if len(pairs) > 1 else ""
    return _of_controller(
        kind=kinds.DUPLICATE_TOPIC_ID,
        cause=f"no broker can become controller: {pairs[0]}{more}",
        ending="every topic has an id of its own",
        since_ms=header.term.since_ms,
        evidence=pairs,
    )


def _missing_ids(header: Header) -> Condition | None:
    lacking, lost = topics_without_id(header), header.damaged.lost_ids
    if not lacking or not header.acting:
        return None
    topics, them = header.tally.gauges.topics, plural(lacking, "it", "them")
    had = tuple(f"the id of {name} was {topic_id}" for name, topic_id in sorted(lost.items())[:EXAMPLES_NAMED])
    return _of_controller(
        kind=kinds.MISSING_TOPIC_ID,
        cause=f"{lacking} of {topics} topics {verb(lacking, 'has')} no id{in_brackets(sorted(lost), len(lost))}: the "
        f"next controller gives {them} a new one, which brokers with the former id refuse",
        ending="all topics have an id",
        patience_ms=0 if lost else None,
        evidence=had,
        examples=tuple(sorted(lost)[:EXAMPLES_NAMED]),
    )


def _changed_ids(header: Header) -> Condition | None:
    changed = header.damaged.changed_ids
    if not changed:
        return None
    first = min(changed)
    count, ids = len(changed), changed[first]
    sentences = tuple(
        f"the id of topic {name} changed from {topic.former} to {topic.present}"
        for name, topic in sorted(changed.items())[:EXAMPLES_NAMED]
    )
    cause = sentences[0] if count == 1 else f"the ids of {count} topics changed{in_brackets(sorted(changed), count)}"
    former = ids.former if count == 1 else "the former id"
    return _of_controller(
        kind=kinds.TOPIC_ID_CHANGED,
        cause=f"{cause}: brokers refuse {plural(count, 'it', 'them')}, so no replica follows a new leader",
        ending="the topics have their former ids again",
        since_ms=min(topic.since_ms for topic in changed.values()),
        advice=Advice(remedies=(PUT_ID_BACK_AND_FAIL_OVER.filled(FORMER=former),)),
        evidence=sentences,
        examples=tuple(sorted(changed)[:EXAMPLES_NAMED]),
    )


def _unloadable(header: Header) -> Condition | None:
    unloadable = header.damaged.unloadable
    if not unloadable or header.led_by_kraft:
        return None
    znodes, fails = topic_znodes(unloadable), not header.acting
    loads = "no broker can become controller, because none can load" if fails else "the next controller cannot load"
    return _of_controller(
        kind=kinds.TOPIC_UNLOADABLE,
        cause=f"{loads} {znodes}: Kafka cannot read its content",
        ending="every topic's znode can be loaded",
        since_ms=min(unloadable.values()),
        severity=None if fails else Severity.WARN,
        examples=tuple(sorted(unloadable)[:EXAMPLES_NAMED]),
    )


def conditions_of_settings(header: Header, topic_exists: Callable[[str], bool]) -> Iterator[Condition]:
    """Yield the settings that end every broker's start, and those that end the start of one broker."""
    found = list(unparsable_at_start(header, topic_exists))
    of_topics = [each for each in found if each.broker is None]
    if of_topics:
        yield _condition("topics' settings", "every broker", of_topics)
    for broker in sorted({each.broker for each in found if each.broker is not None}):
        yield _condition(f"broker {broker}", f"broker {broker}", [each for each in found if each.broker == broker])
    if flawed := list(stopping_starts(header)):
        yield _znodes(flawed)


def _znodes(flawed: list[FlawedZnode]) -> Condition:
    first, *others = flawed
    who = "brokers end, the running ones too" if first.consequence.stops_brokers else "brokers fail at their next start"
    more = f" and {counted(len(others), 'more znode')}" if others else ""
    return Condition(
        kind=kinds.START_WILL_FAIL,
        subject=OF_ZNODES,
        group="settings",
        cause=f"{who}: {first.sentence}{more}",
        ending="brokers can start again",
        severity=Severity.PAGE
        if any(each.consequence.stops_brokers or each.flaw is Flaw.REPLACED for each in flawed)
        else None,
        advice=Advice(first.mend),
        evidence=tuple(each.sentence for each in flawed[:EXAMPLES_NAMED]),
        examples=tuple(each.path for each in flawed)[:EXAMPLES_NAMED],
    )


def _condition(subject: str, who: str, found: list[Unparsable]) -> Condition:
    first, *others = found
    more = f" and {counted(len(others), 'more setting')}" if others else ""
    return Condition(
        kind=kinds.START_WILL_FAIL,
        subject=subject,
        group="settings",
        cause=f"{who} fails at its next start: it cannot parse {first.sentence}{more}",
        ending="brokers can parse the settings, or they are gone",
        evidence=tuple(each.sentence for each in found[:EXAMPLES_NAMED]),
        examples=tuple(dict.fromkeys(each.topic or each.path for each in found))[:EXAMPLES_NAMED],
        broker=first.broker,
        brokers=() if first.broker is None else (first.broker,),
    )
