"""The page on metrics, which matches the catalogue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.generated
def test_the_committed_page_is_current():
    printed = subprocess.run([sys.executable, DOCS / "metrics.py"], capture_output=True, text=True, check=True).stdout
    assert (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8") == printed, "run `make docs`"
