"""Make foreign text harmless in a log or on a terminal."""

from __future__ import annotations


def printable(text: str, longest: int | None = None) -> str:
    """The text with every line end, control and direction character escaped, cut behind `longest` characters."""
    if longest is not None and len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
