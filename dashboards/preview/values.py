"""Values for readers, with the unit of their panel and the colour of their thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

_SUFFIXES = {"ops": "/s", "reqps": "/s"}


def in_words(value: float, unit: str) -> str:
    """Return the value as people read it."""
    if not math.isfinite(value):
        return "–"
    match unit:
        case "s":
            return _duration(value)
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "bytes" | "Bps":
            return _binary(value) + ("/s" if unit == "Bps" else "")
        case "bool_yes_no":
            return "yes" if value else "no"
        case "dateTimeAsIso":
            return _moment(value / 1000)
        case "none":
            return f"{value:.10g}"
        case _:
            return _decimal(value) + _SUFFIXES.get(unit, "")


def clock(seconds: float) -> str:
    """Return a time of day, UTC."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%H:%M:%S")


def color_of(value: float, defaults: Mapping[str, Any]) -> str:
    """Return the colour of the highest limit that the value has reached."""
    color = "blue"
    for step in defaults.get("thresholds", {}).get("steps", ()):
        if step["value"] is None or value >= step["value"]:
            color = step["color"]
    return color


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def _duration(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    for most, divisor, unit in ((1, 0.001, "ms"), (120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < most:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 86400:.3g} d"


def _decimal(value: float) -> str:
    for least, unit in ((1e9, " G"), (1e6, " M"), (1e4, " K")):
        if abs(value) >= least:
            return f"{value / (1e3 if unit == ' K' else least):.3g}{unit}"
    return f"{value:.4g}"


def _binary(value: float) -> str:
    for least, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= least:
            return f"{value / least:.3g} {unit}"
    return f"{value:.3g} B"
