"""Choice of the parameters with which the gate runs a test, while a night runs it with all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def in_gate(*few: Any, of: Iterable[Any]) -> Sequence[Any]:
    """Return all values for `parametrize`, with the mark `nightly` on all but the few."""
    every = list(of)
    assert all(value in every for value in few), f"{few} are not all among {every}"
    return [value if value in few else pytest.param(value, marks=pytest.mark.nightly) for value in every]
