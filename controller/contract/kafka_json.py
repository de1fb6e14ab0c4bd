"""JSON as Kafka reads it (`kafka.utils.Json`, Jackson 2.8 to 2.16), which is more tolerant than JSON's standard.

Kafka ignores bytes after the value, and takes UTF-16 and UTF-32 for what they are. A strict decoder is much faster, so
this reader is only asked for content that the strict one rejected.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

# Jackson rejects a longer number, and Python's own limit is higher.
_LONGEST_NUMBER: Final = 1_000
_WITH_MARK_BYTES: Final = 4  # Jackson looks for a byte order mark only if there are at least so many bytes
_SPACE: Final = " \t\n\r"
_LONE_BYTE: Final = re.compile("[\udc80-\udcff]")  # Python's substitute for a byte that is no UTF-8
_HALF_CHARACTER: Final = re.compile(r"\\u[dD][89a-fA-F]")  # an escape of UTF-16, and perhaps without its other half
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}")
_MARKS: Final = (
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xef\xbb\xbf", "utf-8"),
)


class NoJsonError(ValueError):
    """Bytes that are no JSON value to Kafka."""


class NoContentError(ValueError):
    """Bytes that contain only spaces."""


def _rejected(text: str) -> NoReturn:
    raise NoJsonError(f"{text} is no number")


def _integer(text: str) -> int:
    return int(text) if len(text) <= _LONGEST_NUMBER else _rejected(f"{text[:20]}…")


class Fraction(float):
    """A number that is no integer, with its text."""

    def __new__(cls, text: str) -> Fraction:
        """Raise NoJsonError if the text is too long."""
        if len(text) > _LONGEST_NUMBER:
            _rejected(f"{text[:20]}…")
        fraction = super().__new__(cls, text)
        fraction.text = text
        return fraction

    text: str


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=Fraction, parse_constant=_rejected)


def value_in(data: bytes) -> object:
    """Return the first JSON value in the bytes, and ignore the rest. Raise NoContentError and NoJsonError.

    Every text in the value can be written in UTF-8.
    """
    text = _text(data)
    begin = len(text) - len(text.lstrip(_SPACE))
    if begin == len(text):
        raise NoContentError("no content")
    try:
        value, end = _DECODER.raw_decode(text, begin)
        if _HALF_CHARACTER.search(text, begin, end):
            value = _whole(value)
    except RecursionError as error:
        raise NoJsonError("nested too deeply") from error
    except ValueError as error:
        raise NoJsonError(str(error)) from error
    if _LONE_BYTE.search(text, begin, end):
        raise NoJsonError("bytes that are no UTF-8")
    if _goes_on(value, text[end : end + 1]):
        raise NoJsonError(f"{text[end : end + 1]!r} after {value}")
    return value


def _whole(value: object) -> object:
    """Return the value with a question mark for each half of a character, as Java writes it in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return list(map(_whole, value))
    return {_whole(key): _whole(field) for key, field in value.items()} if isinstance(value, dict) else value


def _goes_on(value: object, after: str) -> bool:
    """Return whether the text after a number or a word continues it, so that Jackson rejects the whole."""
    if isinstance(value, (dict, list, str)):
        return False
    if value is None or isinstance(value, bool):
        return after.isalnum() or after in ("_", "$") or after > "\x7f"
    return after not in ("", *_SPACE)


def integer_in(text: str) -> int | None:
    """Return the number of 32 bits in a text as Java's `Integer.parseInt` reads it, None for any other text."""
    number = int(text) if _INTEGER.fullmatch(text) else 2**31
    return number if -(2**31) <= number < 2**31 else None


def _text(data: bytes) -> str:
    for mark, encoding in _MARKS if len(data) >= _WITH_MARK_BYTES else ():
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    return _decoded(data, _encoding_of(data[:4]))


def _encoding_of(start: bytes) -> str:
    """Return the encoding that the zeros around the first character show."""
    zeros = tuple(byte == 0 for byte in start)
    if zeros == (True, True, True, False):
        return "utf-32-be"
    if zeros == (False, True, True, True):
        return "utf-32-le"
    if zeros[:2] == (True, False):
        return "utf-16-be"
    return "utf-16-le" if zeros[:2] == (False, True) else "utf-8"


def _decoded(data: bytes, encoding: str) -> str:
    if encoding == "utf-8":
        return data.decode(encoding, "surrogateescape")
    return data.decode(encoding, "replace")


def object_of(value: object) -> dict[str, Any]:
    """Return the value, if it is a JSON object. Raise ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in place of an object")
    return value
