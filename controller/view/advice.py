"""Advice for one cluster, with the ways of its release, and without a failover that would do harm."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from controller.contract.remedies.remedy import Advice, Remedy
from controller.contract.remedies.topics import ASSIGN_IDS, PUT_ID_BACK_AND_FAIL_OVER
from controller.model.context import Header
from wording.sentences import counted, joined, plural

_CURES: Final = (ASSIGN_IDS.name, PUT_ID_BACK_AND_FAIL_OVER.name)  # remedies that help by a failover
_NAMED: Final = 3


def advice_for(advice: Advice, header: Header) -> str:
    """Return the advice in words. While a failover would do harm, the reason replaces it."""
    harm = harm_of_failover(header)
    kept = tuple(remedy for remedy in advice.remedies if not harm or not _fails_over(remedy))
    words = replace(advice, remedies=kept).in_words(header.profile.release)
    return words if len(kept) == len(advice.remedies) else f"Do not delete /controller yet: {harm}. {words}".rstrip()


def _fails_over(remedy: Remedy) -> bool:
    return remedy.moves_controller and remedy.name not in _CURES


def harm_of_failover(header: Header) -> str:
    """Return the harm that the next controller would do, as a clause, empty if none is known."""
    if header.damaged.unloadable:
        return f"no controller can load {topic_znodes(header.damaged.unloadable)}"
    lacking = topics_without_id(header)
    if lacking:
        topics = f"{counted(lacking, 'topic')} without an id {plural(lacking, 'gets', 'get')} a new one"
        return f"{topics}, which brokers with partition.metadata refuse"
    return ""


def unless_harmful(step: str, header: Header) -> str:
    """Return a sentence about a failover, or an empty text while a failover would do harm."""
    return "" if harm_of_failover(header) else step


def topics_without_id(header: Header) -> int:
    """Return the number of topics that a failover gives an id, while other topics have one."""
    topics, with_id = header.tally.gauges.topics, header.tally.gauges.topics_with_id
    return topics - with_id if 0 < with_id < topics and header.profile.sends_topic_ids else 0


def topic_znodes(topics: Collection[str]) -> str:
    """Return the paths of some topics' znodes, the first by name, and the number of the rest."""
    paths = [f"/brokers/topics/{name}" for name in sorted(topics)[:_NAMED]]
    more = len(topics) - len(paths)
    return joined([*paths, f"{more} more"] if more else paths)
