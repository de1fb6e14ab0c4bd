"""Faults of a sentence: empty lists, doubled spaces, a wrong number, and more words than a person reads at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MOST_WORDS: Final = 25
MOST_WORDS_OF_ADVICE: Final = 32  # longer, because its cost and its condition come first

_NOUNS: Final = (
    "partition|replica|broker|write|topic|notification|time|znode|record|election|alert|incident|leader|server|"
    "controller|request|session|event|change|state"
)
_ONE_VERBS: Final = "is|has|was|lacks|waits|rejects|returns|hosts|leads|lags|needs|misses"
_MANY_VERBS: Final = "are|have|were|lack|wait|reject|return|host|lead|lag|need|miss|regain"

_PATTERNS: Final = {
    "a doubled space": re.compile(r"\S {2,}\S"),
    "a space before a mark": re.compile(r" [,.;:)](?:\s|$)"),
    "an empty list": re.compile(
        r"\(\)|: *(?:[.,;(]|$)|, *[.,;]|\b(?:until|when|if|of|for|and|or|start|needs) brokers? "
        r"(?:is|are|has|have|returns?|registers?)\b",
        re.IGNORECASE,
    ),
    "one in the plural": re.compile(rf"(?<![\d.,])1 (?:{_NOUNS})s\b|(?<![\d.,])1 (?:{_NOUNS}) (?:{_MANY_VERBS})\b"),
    "many in the singular": re.compile(
        rf"\b(?:0|[2-9]|\d{{2,}}) (?:{_NOUNS})\b|(?<!of )\b(?:0|[2-9]|\d{{2,}}) (?:{_NOUNS})s (?:{_ONE_VERBS})\b"
    ),
    "brokers with one's verb": re.compile(
        rf"\bbrokers \d[\d, and]* (?:{_ONE_VERBS})\b|(?<!or )\bbroker \d+ (?:{_MANY_VERBS})\b"
    ),
    "all of none or of one": re.compile(rf"\b[Aa]ll [01] (?:{_NOUNS})"),
}

_NUMBERS: Final = re.compile(r"\d+(?:, \d+)+ and \d+")  # a list of brokers is read as one word
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n")


def faults(text: str, most_words: int = MOST_WORDS) -> Iterator[str]:
    """Yield each fault of a text of one or several sentences."""
    for name, pattern in _PATTERNS.items():
        if found := pattern.search(text):
            yield f"{name} ({found[0]!r}): {text}"
    for sentence in _SENTENCE_END.split(text):
        words = len(_NUMBERS.sub("several", sentence).split())
        if words > most_words:
            yield f"{words} words: {sentence}"
