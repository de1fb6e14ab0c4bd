"""Conditions of settings in ZooKeeper that brokers cannot parse, so that their next start fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controller.alerts.conditions import Condition
from controller.contract.alert_kinds import kinds as kinds
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.context import Header
from controller.view.unparsable import Unparsable, unparsable_at_start
from wording.sentences import counted


def conditions_of_settings(header: Header, topic_exists: Callable[[str], bool]) -> Iterator[Condition]:
    """Yield the settings that end every broker's start, and those that end the start of one broker."""
    found = list(unparsable_at_start(header, topic_exists))
    of_topics = [each for each in found if each.broker is None]
    if of_topics:
        yield _condition("topics' settings", "every broker", of_topics)
    for broker in sorted({each.broker for each in found if each.broker is not None}):
        yield _condition(f"broker {broker}", f"broker {broker}", [each for each in found if each.broker == broker])


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
