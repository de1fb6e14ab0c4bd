"""What the pages say can be made can be made."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]


def test_every_target_of_make_that_a_page_names_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert {"test", "demo", "bench-exporter", "soak"} <= named
    assert named <= targets
