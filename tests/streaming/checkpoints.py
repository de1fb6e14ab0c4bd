"""Checkpoints older than their outputs, and the final rows of readers."""

from __future__ import annotations

import shutil

from pyspark.sql import SparkSession

from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import decode_row
from controller.contract.row import Row
from tests.streaming.cluster_records import Streams


def newest_rows(lines: list[bytes]) -> dict[str, bytes]:
    """Return each subject's final row for a reader that drops known places."""
    kept: dict[str, tuple[tuple[int, int, int], bytes]] = {}
    for line in lines:
        row = decode_row(line)
        assert isinstance(row, Row)
        place = (row.generation, row.seq, row.ordinal)
        if isinstance(row, BeginningRow):
            kept.clear()
        if row.subject_key() not in kept or kept[row.subject_key()][0] < place:
            kept[row.subject_key()] = (place, line)
    return {key: line for key, (_, line) in kept.items()}


def forget_state(spark: SparkSession) -> None:
    """Drop the state in Java, as the end of a job's own process does. Otherwise another test's history would use it."""
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()


def drop_newest(streams: Streams, entries: int | None) -> None:
    """Remove the newest entries from both of Spark's logs, or with None the whole of Spark's files."""
    if entries is None:
        shutil.rmtree(streams.checkpoint / "spark")
        return
    for log in ("offsets", "commits"):
        names = [path for path in (streams.checkpoint / "spark" / log).glob("[0-9]*")]
        for path in sorted(names, key=lambda path: int(path.name))[-entries:]:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
