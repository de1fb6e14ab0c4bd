"""`kontrast size`: the machine and the topics that a fleet needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from cli.capacity import DAY_MS, Capacity, shown_bytes
from cli.printing.standard_output import print_answer
from cli.running import ExitCode
from wording.said import Table

_EPILOG: Final = """\b
Examples:
  kontrast size --clusters 20 --partitions 100000 --changes-per-second 50
  kontrast size --clusters 200 --partitions 400000 --executors 3

\b
Exit codes:
  0  printed
  2  a flag is wrong
"""


@click.command(epilog=_EPILOG)
@click.option("--clusters", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Clusters.")
@click.option(
    "--partitions", type=click.IntRange(min=1), required=True, metavar="N", help="Partitions of all clusters together."
)
@click.option(
    "--changes-per-second",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="N",
    help="Changes of partitions, of all clusters together. `kontrast_watch_records_total` counts them.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0.1),
    default=7.0,
    show_default=True,
    metavar="N",
    help="How far back changes and outputs reach.",
)
@click.option(
    "--executors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Executors of a standing Spark cluster, with one core each. 0 is a job on one machine.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def size(*, as_json: bool, **fleet: Any) -> int:  # noqa: ANN401 (Capacity's fields)
    """Print cores, memory, disk and topic settings for a fleet.

    The figures follow from measurements on one machine: the job with up to 1,000,000 partitions, `watch` and
    `serve` with up to 200,000, and a Spark cluster of up to three executors with 400,000. Beyond that they are
    estimates.
    """
    capacity = Capacity(**fleet)
    print_answer([dict(_figures(capacity))], [Table(("need", "value", "where"), _rows(capacity))], as_json=as_json)
    return ExitCode.OK


def _figures(capacity: Capacity) -> Iterator[tuple[str, object]]:
    yield "cores", capacity.cores
    yield "tasks", capacity.tasks
    yield "memory_mb", capacity.memory_mb
    yield "memory_limits_mb", capacity.memory_limits_mb
    yield "driver_memory_mb", capacity.heap_mb
    yield "changes_bytes", capacity.changes_bytes
    yield "outputs_bytes", capacity.outputs_bytes
    yield "checkpoint_bytes", capacity.checkpoint_bytes
    yield "retention_ms", round(capacity.days * DAY_MS)


def _rows(capacity: Capacity) -> Iterator[tuple[str, str, str]]:
    yield "cores", str(capacity.cores), "of all executors" if capacity.executors else "of the machine"
    yield "tasks of the job", str(capacity.tasks), f"by itself, or shuffle_partitions = {capacity.tasks} in [stream]"
    for part, needed_mb in capacity.memory_mb.items():
        processes = capacity.processes_of(part)
        where = f"resident, each of {processes}" if processes > 1 else "resident"
        yield f"memory of {part}", f"{needed_mb:,} MB", where
    for command, limit_mb in capacity.memory_limits_mb.items():
        is_pod = capacity.executors and command not in ("watch", "serve")
        unit = f"memoryLimit of the {command}" if is_pod else f"MemoryMax={limit_mb}M of kontrast@{command}"
        yield f"limit of {command}", f"{limit_mb:,} MB", unit
    heap = "spark.{driver,executor}.memory={}m" if capacity.executors else 'driver_memory = "{}m" in [stream]'
    yield "Java's heap", f"{capacity.heap_mb} MB", heap.replace("{}", str(capacity.heap_mb))
    yield "disk of changes", shown_bytes(capacity.changes_bytes), f"journal_retain_bytes = {capacity.retain_bytes}"
    yield "disk of outputs", shown_bytes(capacity.outputs_bytes), "journals, or topics of OUTPUTS.*"
    yield "disk of the checkpoint", shown_bytes(capacity.checkpoint_bytes), "checkpoint in [stream]"
    yield "topic of changes", f"{capacity.days:g} days", f"retention.ms={round(capacity.days * DAY_MS)}"
