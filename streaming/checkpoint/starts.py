"""Starts of the job without a finished batch since, so that a slow machine gets more time for its first batch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.checkpoint.directory import STARTS_FILE
from streaming.checkpoint.files import numbered
from streaming.checkpoint.place import Place, replace_content


class _Counted(msgspec.Struct, frozen=True):
    """Content of the file, with the starts of one of Spark's directories since its newest finished batch."""

    directory: str
    finished: int
    starts: int


_COUNTED = JsonDecoder(_Counted)


@dataclass(frozen=True, slots=True)
class FruitlessStarts:
    """Number of earlier starts that finished no batch, and the newest batch finished before these (-1 without one)."""

    count: int = 0
    finished: int = -1


def fruitless_starts(directory: Place, spark_directory: Place) -> FruitlessStarts:
    """Count this start of a checkpoint, and return the earlier starts since the newest finished batch.

    A file that cannot be read or written counts no start, because the job itself fails at the same disk.
    """
    finished = max(numbered(spark_directory / "commits"), default=-1)
    earlier = 0
    with suppress(OSError, UndecodableError):
        stored = _COUNTED.decode((directory / STARTS_FILE).read_bytes())
        if (stored.directory, stored.finished) == (spark_directory.name, finished):
            earlier = stored.starts
    with suppress(OSError):
        counted = _Counted(spark_directory.name, finished, earlier + 1)
        replace_content(directory / STARTS_FILE, msgspec.json.encode(counted) + b"\n")
    return FruitlessStarts(earlier, finished)
