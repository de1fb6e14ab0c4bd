"""Committed pages that programs of `lab/pages` print."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.pages import DOCS, ROOT

pytestmark = pytest.mark.generated


@pytest.mark.parametrize("name", ["alerts", "metrics", "migration_checks", "receivers", "remedies", "states"])
def test_the_committed_page_is_current(name):
    printed = subprocess.run(
        [sys.executable, "-m", f"lab.pages.{name}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    committed = DOCS / "reference" / f"{name.replace('_', '-')}.md"
    assert committed.read_text(encoding="utf-8") == printed, "run `make docs`"
