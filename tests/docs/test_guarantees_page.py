"""The page of guarantees links a test for each row."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_each_guarantee_links_a_test() -> None:
    page = (_ROOT / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
    rows = page.split("| --- |")[1].split("## ")[0]
    for row in [line for line in rows.splitlines() if line.startswith("| ")]:
        assert "test](../../tests/" in row, row
