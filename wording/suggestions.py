"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

_SIMILAR: Final = 0.7  # on a scale to 1, so that one or two letters of a short name may differ
_SUGGESTED: Final = 3


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the most similar known names, the nearest first."""
    return difflib.get_close_matches(name, list(known), _SUGGESTED, _SIMILAR)


def did_you_mean(names: Sequence[str]) -> str:
    """Return the end of a sentence that suggests these names, or an empty text."""
    return f". Did you mean {' or '.join(names)}?" if names else ""
