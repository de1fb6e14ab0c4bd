"""Starts of the job without a finished batch since, so that a slow machine gets more time for its first batch."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from streaming.checkpoint.directory import STARTS_FILE
from streaming.checkpoint.files import numbered
from streaming.checkpoint.place import Place, replace_content


@dataclass(frozen=True, slots=True)
class FruitlessStarts:
    """How many earlier starts finished no batch, and the newest batch that was finished before them (-1: none)."""

    count: int = 0
    finished: int = -1


def fruitless_starts(directory: Place, spark_directory: Place) -> FruitlessStarts:
    """Count this start of a checkpoint, and return the ones before it since the newest finished batch.

    A file that cannot be read or written counts as none, because the job itself fails at the same disk.
    """
    finished = max(numbered(spark_directory / "commits"), default=-1)
    earlier = 0
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads((directory / STARTS_FILE).read_bytes())
        if (stored["directory"], stored["finished"]) == (spark_directory.name, finished):
            earlier = int(stored["starts"])
    with suppress(OSError):
        content = {"directory": spark_directory.name, "finished": finished, "starts": earlier + 1}
        replace_content(directory / STARTS_FILE, f"{json.dumps(content)}\n".encode())
    return FruitlessStarts(earlier, finished)
