"""Advice for one cluster, with the ways of its release, and without a failover that would do harm."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import BrokerId
from controller.model.context import Header
from controller.says.remedies.remedy import Advice, Need, Remedy
from controller.says.remedies.topics import ASSIGN_IDS, PUT_ID_BACK_AND_FAIL_OVER
from controller.view.flawed_znodes import (
    harming_failovers,
    mends_before_failover,
    topic_znodes,
    topics_without_id,
    znodes_in_words,
)
from wording.sentences import counted, plural

# A remedy may cure the flaw that keeps others from failing over.
_CURES: Final = (ASSIGN_IDS.name, PUT_ID_BACK_AND_FAIL_OVER.name)  # remedies that help by a failover


def advice_for(advice: Advice, header: Header, brokers: Collection[BrokerId] = ()) -> str:
    """Return the advice in words, without what needs a condition that is false. `brokers` are those that it names.

    While a failover would do harm, the reason and its mend replace each remedy that fails over.
    """
    wanted = tuple(each for each in advice.remedies if all(is_met(need, header, brokers) for need in each.needs))
    steps = tuple(each for each in advice.steps if all(is_met(need, header, brokers) for need in each.needs))
    harm = harm_of_failover(header)
    kept = tuple(remedy.met if remedy.needs else remedy for remedy in wanted if not harm or not _fails_over(remedy))
    words = replace(advice, remedies=kept, steps=steps).in_words(header.profile.release)
    if len(kept) == len(wanted):
        return words
    mend = f" {mends_before_failover(header)}" if harming_failovers(header) else ""
    return f"Do not delete /controller yet: {harm}.{mend} {words}".rstrip()


def is_met(need: Need, header: Header, brokers: Collection[BrokerId]) -> bool:
    """Return whether the condition of a step or remedy about these brokers is true now."""
    if need is Need.CONTROLLER_ACTS:
        return header.acting
    if need is Need.BROKERS_LIVE:
        return bool(brokers) and header.brokers.keys() >= set(brokers)
    return not header.brokers.keys() >= set(brokers)


def _fails_over(remedy: Remedy) -> bool:
    return remedy.moves_controller and remedy.name not in _CURES


def harm_of_failover(header: Header) -> str:
    """Return the harm that the next controller would do, as a clause, empty if none is known."""
    if header.damaged.unloadable:
        return f"no controller can load {topic_znodes(header.damaged.unloadable)}"
    if flawed := harming_failovers(header):
        return f"the next controller fails at {znodes_in_words([each.path for each in flawed])}"
    lacking = topics_without_id(header)
    if lacking:
        topics = f"{counted(lacking, 'topic')} without an id {plural(lacking, 'gets', 'get')} a new one"
        return f"{topics}, which brokers with partition.metadata refuse"
    return ""
