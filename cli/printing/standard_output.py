"""Lines, JSON objects and documents on standard output. No other module of `cli` writes there.

Names in znodes, reasons of maintenance and answers of brokers are foreign text, so every control, line and direction
character in them is escaped here. A reader that leaves early (`kontrast check | head -1`) ends only the printing, but
the command finishes, because its exit code is the verdict.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unicodedata import category, east_asian_width

import msgspec

from cli.printing import standard_error
from questions.question import NotFoundError
from transport.printable import printable, printable_json
from wording.said import Line, Table

_ENCODER: Final = msgspec.json.Encoder()

READER_LEFT: Final = 141  # exit code of a command without a use but for its reader: 128 + SIGPIPE
_reader_left = threading.Event()


def print_line(line: str, *, flush: bool = True) -> None:
    """Print one line for people."""
    _write(f"{printable(line)}\n".encode(), flush=flush)


def print_json(value: Any, *, flush: bool = True) -> None:  # noqa: ANN401 (whatever msgspec encodes)
    """Print one JSON object in a line."""
    print_json_line(_ENCODER.encode(value), flush=flush)


def print_json_line(line: bytes, *, flush: bool = True) -> None:
    """Print an encoded JSON object. Unprintable characters become escapes of JSON."""
    _write(printable_json(line) + b"\n", flush=flush)


def print_json_lines(values: Sequence[Any]) -> None:
    """Print these values as JSON objects, one a line, in one write. `flush` hands them to the reader."""
    lines = _ENCODER.encode_lines(values)
    if lines.isascii() and b"\x7f" not in lines:
        _write(lines, flush=False)
        return
    for value in values:
        print_json(value, flush=False)


def print_answer(objects: Iterable[Any], said: Iterable[Line | Table], *, as_json: bool) -> None:
    """Print an answer in its JSON objects, or in its text."""
    if as_json:
        for each in objects:
            print_json(each)
    else:
        print_said(said)


def print_said(said: Iterable[Line | Table]) -> None:
    """Print the text of an answer, wrapped and coloured on a terminal, plain elsewhere."""
    if is_terminal():
        from rich.console import Console

        from cli.printing.terminal import renderable

        Console().print(*map(renderable, said), sep="\n")
    else:
        print_plain(said)


def print_plain(said: Iterable[Line | Table]) -> None:
    """Print the text of an answer that may have many thousand lines, which rich would print too slowly."""
    for line in plain_lines(said):
        print_line(line, flush=False)
    flush()


def plain_lines(said: Iterable[Line | Table]) -> Iterator[str]:
    """Yield the lines of a text, with foreign text escaped, and without trailing blanks."""
    for each in said:
        if isinstance(each, Line):
            yield printable(each.text).rstrip()
            continue
        rows = [[printable(cell) for cell in row] for row in (each.columns, *each.rows)]
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Return the columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(category(each)[0] != "M" and 1 + (east_asian_width(each) in "WF") for each in text)


def print_document(text: str) -> None:
    """Print a whole page, in which foreign text is already escaped."""
    _write(text.encode(), flush=True)


def write_file(file: Path, text: str, flag: str) -> None:
    """Write a text into the file that the flag names. Raise NotFoundError if that cannot be done."""
    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise NotFoundError(f"{file} cannot be written: {error.strerror}. Give {flag} another file") from error
    standard_error.say(f"wrote {file}")


@contextmanager
def screen() -> Iterator[Callable[[Iterable[Line | Table]], None]]:
    """Yield a function that shows a text on the whole terminal in place of the last one, cut where it does not fit."""
    from rich.console import Console, Group
    from rich.live import Live

    from cli.printing.terminal import renderable

    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        yield lambda said: live.update(Group(*map(renderable, said)), refresh=True)


def is_terminal() -> bool:
    """Return whether a person sees standard output directly."""
    return sys.stdout is not None and sys.stdout.isatty()


def reader_has_left() -> bool:
    """Return whether standard output was closed by its reader."""
    return _reader_left.is_set()


def flush() -> None:
    """Hand everything printed so far to the reader."""
    _write(b"", flush=True)


def _write(content: bytes, *, flush: bool) -> None:
    if sys.stdout is None:  # closed before the start, as by `>&-`
        return
    try:
        sys.stdout.buffer.write(content)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError:
        # Discard the rest, and let the interpreter's last flush succeed.
        _reader_left.set()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
