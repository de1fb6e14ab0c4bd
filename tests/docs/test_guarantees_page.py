"""The page of guarantees links a test for each row."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_each_guarantee_links_a_test() -> None:
    page = (_ROOT / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!fault \||---).+$", page, re.MULTILINE)
    assert len(rows) > 30
    for row in rows:
        assert "test](../../tests/" in row, row
