"""The colours of pages and pictures, one for each fact, in the light and in the dark."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

LIGHT: Final = MappingProxyType(
    {
        "ground": "#f5f6f8",
        "card": "#fff",
        "text": "#171a21",
        "mute": "#565f6d",
        "line": "#dfe3e8",
        "soft": "#eef0f3",
        "link": "#1a55ad",
        "well": "#1d6f52",
        "well-soft": "#e1f2ea",
        "lacking": "#3f6fae",
        "lacking-soft": "#e4ecf7",
        "degraded": "#8a5200",
        "degraded-soft": "#fdf0d8",
        "affected": "#b3221f",
        "affected-soft": "#fdebea",
        "unknown": "#5b4a94",
        "unknown-soft": "#eeebf8",
    }
)
"""Offline is *affected*, rejecting acks=all is *degraded*, under-replicated is *lacking*."""

_DARK: Final = {
    "ground": "#0f1217",
    "card": "#171b22",
    "text": "#e8ebf0",
    "mute": "#a4adba",
    "line": "#2a313b",
    "soft": "#1f252e",
    "link": "#8ab8f7",
    "well": "#63c79d",
    "well-soft": "#15302a",
    "lacking": "#82abe6",
    "lacking-soft": "#1c2a3f",
    "degraded": "#e6ae56",
    "degraded-soft": "#33281a",
    "affected": "#ff8f89",
    "affected-soft": "#3a1c1d",
    "unknown": "#b9abe8",
    "unknown-soft": "#252136",
}


def _declared(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


VARIABLES: Final = (
    f":root {{ color-scheme: light dark; {_declared(dict(LIGHT))} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_declared(_DARK)} }} }}\n"
)
"""CSS that gives each colour a name, such as --well."""
