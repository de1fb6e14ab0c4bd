"""Counts with their nouns and verbs, lists that may be empty or long, parts of a sentence, and mistyped names.

A list names up to ten members, because a person can act on ten. A longer list has a count and three examples.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from typing import Final

_NAMED: Final = 10
_NAMED_OF_MORE: Final = 3
_EXAMPLES: Final = 2

_PLURAL_VERBS: Final = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
_WITH_ES: Final = ("s", "x", "ch", "sh")


def plural(count: int, one: str, many: str) -> str:
    """Return the singular or plural, by the count."""
    return one if count == 1 else many


def verb(count: int, singular: str) -> str:
    """Return the verb for the count. Its first word is conjugated: has gone, have gone."""
    first, gap, rest = singular.partition(" ")
    if count == 1:
        return singular
    return _PLURAL_VERBS.get(first, _without_s(first)) + gap + rest


def counted(count: int, noun: str, singular_verb: str = "") -> str:
    """Return the count with its noun, and with its verb if one is given: 1 partition is, 2,000 partitions are."""
    said = f"{count:,} {noun if count == 1 else plural_of(noun)}"
    return f"{said} {verb(count, singular_verb)}" if singular_verb else said


def all_of(count: int, noun: str, singular_verb: str) -> str:
    """Return all of something with the verb: all 6 partitions are, the only partition is, no partition is."""
    if count <= 1:
        return f"{'the only' if count else 'no'} {noun} {singular_verb}"
    return f"all {counted(count, noun, singular_verb)}"


def plural_of(noun: str) -> str:
    """Return the regular plural of a noun: partitions, entries, losses."""
    if noun.endswith("y") and noun[-2:-1] not in ("a", "e", "o", "u"):
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(_WITH_ES) else "s")


def listed(brokers: Collection[int], singular_verb: str = "") -> str:
    """Return brokers in a sentence: no broker, broker 3, brokers 1 and 3, 12 brokers (1, 2, 3, …).

    If a verb is given, it agrees with the number of brokers: broker 3 is, brokers 1 and 3 are, no broker is.
    """
    said = _counted_names(sorted(brokers), "and")
    return f"{said} {verb(len(brokers) or 1, singular_verb)}" if singular_verb else said


def one_of(brokers: Iterable[int]) -> str:
    """Return brokers as a choice: no broker, broker 3, broker 1 or 3, one of 12 brokers (1, 2, 3, …)."""
    ordered = sorted(brokers)
    if len(ordered) > _NAMED:
        return f"one of {_counted_names(ordered, 'or')}"
    return f"broker {joined(list(map(str, ordered)), 'or')}" if ordered else "no broker"


def joined(names: Sequence[str], last: str = "and", most: int = _NAMED) -> str:
    """Return names of any kind in a sentence: a, a and b, "a, b and c", or "a, b, c and 9 more" of more than `most`."""
    if len(names) > most:
        shown = min(most, _NAMED_OF_MORE)
        return f"{', '.join(names[:shown])} {last} {len(names) - shown:,} more"
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def in_order(brokers: Iterable[int]) -> str:
    """Return brokers in their order, because the first of the replicas is the preferred one: 3, 1 and 2."""
    return joined(list(map(str, brokers))) or "none"


def in_brackets(examples: Collection[str], count: int) -> str:
    """Return " (orders-1, orders-2, …)" for the first examples of `count`, or an empty text without examples."""
    shown = list(examples)[:_EXAMPLES]
    more = ", …" if count > len(shown) else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def bracketed(brokers: Iterable[int]) -> str:
    """Return brokers as ZooKeeper lists them, in their order, such as [1,2]."""
    return "[" + ",".join(map(str, brokers)) + "]"


def first_sentence(text: str) -> str:
    """Return the first sentence of an alert or an advice, without a full stop."""
    return text.partition(". ")[0].removesuffix(".")


def event_of(cause: str) -> str:
    """Return the event in an alert's sentences, which a colon separates from its effect."""
    return first_sentence(cause).partition(": ")[0]


def _without_s(singular: str) -> str:
    if singular.endswith(tuple(f"{end}es" for end in _WITH_ES)):
        return singular[:-2]
    return f"{singular[:-3]}y" if singular.endswith("ies") else singular.removesuffix("s")


def _counted_names(brokers: list[int], last: str) -> str:
    if not brokers:
        return "no broker"
    if len(brokers) > _NAMED:
        return f"{len(brokers):,} brokers ({', '.join(map(str, brokers[:_NAMED_OF_MORE]))}, …)"
    return f"{plural(len(brokers), 'broker', 'brokers')} {joined(list(map(str, brokers)), last)}"


_SIMILAR: Final = 0.7  # on a scale to 1, so that one or two letters of a short name may differ
_SUGGESTED: Final = 3


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the most similar known names, the nearest first."""
    return difflib.get_close_matches(name, list(known), _SUGGESTED, _SIMILAR)


def did_you_mean(names: Sequence[str]) -> str:
    """Return the end of a sentence that suggests these names, or an empty text."""
    return f". Did you mean {' or '.join(names)}?" if names else ""


def capital(sentence: str, names: Iterable[str] = ()) -> str:
    """Return the sentence with a capital letter first, unless it begins with one of these names."""
    return sentence if any(map(sentence.startswith, names)) else sentence[:1].upper() + sentence[1:]


def own_version(otherwise: str) -> str:
    """Return Kontrast's version, or other words for a source tree that is not installed."""
    from importlib import metadata  # its import takes as long as click's, so only who asks pays

    try:
        return metadata.version("kontrast")
    except metadata.PackageNotFoundError:
        return otherwise
