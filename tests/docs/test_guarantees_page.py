"""The page of guarantees names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_each_guarantee_names_a_test_that_exists() -> None:
    rows = (
        (_ROOT / "docs" / "explanation" / "guarantees.md")
        .read_text(encoding="utf-8")
        .split("| --- |")[1]
        .split("## ")[0]
    )
    for row in [line for line in rows.splitlines() if line.startswith("| ") and "---" not in line]:
        named = re.findall(r"`(\w+/test_\w+\.py)`", row)
        assert named, row
        assert [name for name in named if not (_ROOT / "tests" / name).exists()] == []
