"""Runbooks of alerts, from the checkout or the installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PLACES: Final = (Path(__file__).parents[2] / "docs" / "runbooks", Path(__file__).parent / "runbooks")
ADDRESS: Final = "kontrast://runbooks/"


def runbooks() -> dict[str, Path]:
    """Return the file of each runbook by its address, such as kontrast://runbooks/KontrastBrokerCrashed."""
    return {f"{ADDRESS}{file.stem}": file for place in _PLACES for file in sorted(place.glob("*.md"))}
