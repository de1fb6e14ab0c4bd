"""TOML files that people write, read with a sentence for each mistake."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HIGHEST_INTEGER: Final = 2**63 - 1  # that TOML allows


class TomlError(Exception):
    """A file that is not TOML. The sentence does not name the file."""


def read_toml(file: Path, most_bytes: int) -> dict[str, Any]:
    """Return the document of a file of at most this size. Raise TomlError, or OSError without access."""
    with file.open("rb") as opened:
        content = opened.read(most_bytes + 1)
    return parse_toml(content, most_bytes)


def parse_toml(content: bytes, most_bytes: int) -> dict[str, Any]:
    """Return the document of a file's content. Raise TomlError."""
    if len(content) > most_bytes:
        raise TomlError(f"longer than {most_bytes:,} bytes")
    try:
        document: dict[str, Any] = tomllib.loads(content.decode().replace("\r\n", "\n"))
        too_high = any(abs(number) > _HIGHEST_INTEGER + (number < 0) for number in _integers(document))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TomlError(f"not a TOML file: {error}") from error
    except ValueError:  # Python refuses to read more than 4,300 digits
        too_high = True
    if too_high:
        raise TomlError("not a TOML file, because an integer in it has more than 64 bits")
    return document


def _integers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _integers(each)
