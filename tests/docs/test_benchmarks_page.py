"""The page of benchmarks shows the figures that were measured, and no others."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.generated
def test_the_table_and_the_picture_are_of_the_measured_figures():
    found = importlib.util.spec_from_file_location("benchmarks", DOCS / "benchmarks.py")
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    text = (DOCS / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    assert script.page(text) == text, "run `make docs`"
    assert (DOCS / "benchmarks.svg").read_text(encoding="utf-8") == script.picture(), "run `make docs`"
