"""What the journal costs: writing and reading records, as a share of the same bytes without marks and checksums."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from transport.journal import Fsync, JournalWriter, read_journal

_LINE = b'{"v":1,"cluster":"bench","generation":1,"seq":%09d,"kind":"node","data":"' + b"x" * 200 + b'"}'
_READ_BYTES = 1024**2


def main() -> None:
    """Measure, by lines an append, and print megabytes a second and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=400_000)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    lines = [_LINE % number for number in range(given.lines)]
    size = sum(map(len, lines)) + len(lines)
    for together in (1, 10, 5_000):
        with tempfile.TemporaryDirectory() as directory:
            seconds = _measured(Path(directory), lines, together)
        rates = {name: size / 1e6 / taken for name, taken in seconds.items()}
        shares = {what: rates[what] / rates[f"plain {what}"] for what in ("write", "read")}
        if given.json:
            print(json.dumps({"lines_an_append": together, "megabytes_a_second": rates, "share_of_plain": shares}))
            continue
        print(f"{together} lines an append:")
        for what, share in shares.items():
            plain = rates[f"plain {what}"]
            print(f"  {what} {rates[what]:8.0f} MB/s, {share:.2f} of {plain:.0f} MB/s without checksums")


def _measured(directory: Path, lines: list[bytes], together: int) -> dict[str, float]:
    journal, plain = directory / "journal", directory / "plain"
    return {
        "plain write": _seconds(lambda: _write_plain(plain, lines, together)),
        "write": _seconds(lambda: _write(journal, lines, together)),
        "plain read": _seconds(lambda: _read_plain(plain)),
        "read": _seconds(lambda: _read(journal)),
    }


def _seconds(work: Callable[[], None]) -> float:
    """Return the processor time, the system's included, because the wall time of a shared machine varies."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _write(directory: Path, lines: list[bytes], together: int) -> None:
    with JournalWriter(directory, fsync=Fsync.NEVER, retain_bytes=None) as writer:
        for begin in range(0, len(lines), together):
            writer.append(lines[begin : begin + together])


def _write_plain(path: Path, lines: list[bytes], together: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for begin in range(0, len(lines), together):
        os.write(descriptor, b"\n".join((*lines[begin : begin + together], b"")))
    os.close(descriptor)


def _read(directory: Path) -> None:
    offset = -1
    batch = read_journal(directory, 0, _READ_BYTES)
    while batch.next_offset != offset:
        offset = batch.next_offset
        batch = read_journal(directory, offset, _READ_BYTES)
        batch.lines  # noqa: B018 (made when asked for)


def _read_plain(path: Path) -> None:
    with path.open("rb") as file:
        rest = b""
        while block := file.read(_READ_BYTES):
            *_, rest = (rest + block).split(b"\n")


if __name__ == "__main__":
    main()
