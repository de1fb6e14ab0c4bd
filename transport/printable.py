"""Make foreign text harmless in a log, on a terminal and in JSON."""

from __future__ import annotations


def printable(text: str, longest: int | None = None) -> str:
    """Return the text with every line end, control and direction character escaped, cut behind `longest` characters."""
    if longest is not None and len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def printable_json(line: bytes) -> bytes:
    """Return the JSON with each unprintable character as an escape. The value does not change.

    The JSON has no line ends between its values, as in one object per line.
    """
    if line.isascii() and b"\x7f" not in line:
        return line  # an encoder escapes the other control characters itself
    return "".join(map(_json_escape, line.decode())).encode()


def _json_escape(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
