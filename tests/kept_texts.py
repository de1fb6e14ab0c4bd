"""Committed texts that must not change unnoticed. REWRITE=1 writes the current ones."""

from __future__ import annotations

import os
from pathlib import Path


def assert_as_before(text: str, file: Path) -> None:
    """Compare the text with the committed file, or write it."""
    if "REWRITE" in os.environ:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
