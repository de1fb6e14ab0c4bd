"""`kontrast show`: the rows of an output, as lines for people or as JSON."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from cli.followed_outputs import Where, lines_until_now, outputs_options, where_outputs_are
from cli.printing import standard_error
from cli.printing.replay_lines import row_object, sentence, value_in_words
from cli.printing.rows import row_options
from cli.printing.standard_output import flush, print_json_line, print_line
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import read_flags, read_settings
from cli.settings.options import config_option
from controller.contract.effect_rows import Request
from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, BadRowError, OutputRow, decode_row
from streaming.sinks.standing_rows import StandingRows
from wording.sentences import counted

_TAIL: Final = 50
_EPILOG: Final = """\b
Examples:
  kontrast show alerts --from journal:/var/lib/kontrast/derived
  kontrast show transitions --from kafka://monitor:9092/kontrast --topic payments --tail 200
  kontrast show metadata --config kontrast.toml --json

\b
Exit codes:
  0  printed
  1  some lines are not rows that this Kontrast knows
  2  a flag or setting is wrong
  3  the outputs are missing or unreadable
"""


@click.command(epilog=_EPILOG)
@click.argument("output_name", metavar="OUTPUT", type=click.Choice([*OUTPUTS, JobRow.output]))
@config_option
@outputs_options
@click.option("--cluster", metavar="NAME", help="Only this cluster's rows.")
@click.option("--topic", metavar="NAME", help="Only rows of this topic.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every row in order, also replaced rows of metadata, alerts and gauges.",
)
@click.option(
    "--tail",
    type=click.IntRange(1),
    default=_TAIL,
    show_default=True,
    help="Number of newest rows of transitions, requests and refused. --all prints every row.",
)
@row_options("Print the rows as JSON, one object per line.")
def show(  # noqa: PLR0913 (one parameter an option)
    output_name: str,
    config_file: Path | None,
    *,
    cluster: str | None,
    topic: str | None,
    everything: bool,
    tail: int,
    as_json: bool,
    **flags: object,
) -> int:
    """Print the rows of an output for people: metadata, alerts, gauges, transitions, requests, refused or job.

    Prints the current rows of metadata, alerts, gauges and job, and the newest rows of the others.
    """
    where = where_outputs_are(read_settings(config_file, os.environ), read_flags("serve", flags))
    rows = _Rows(
        cluster=cluster,
        topic=topic,
        in_force=output_name in (*STANDING_OUTPUTS, JobRow.output) and not everything,
        most=None if everything else tail,
    )

    def run(stop: threading.Event) -> None:
        chosen = rows.read(where, output_name, stop)
        if not chosen and not stop.is_set():
            standard_error.say(f"there is no row of {output_name}{rows.asked_for}")
        for line, row in chosen:
            if as_json:
                print_json_line(line, flush=False)
            else:
                for sentence_of_row in _sentences(row):
                    print_line(sentence_of_row, flush=False)
        flush()

    code = run_until_stopped({"show": run})
    if rows.bad:
        lines = counted(rows.bad, "line")
        standard_error.complain(f"left out {lines} of {output_name} that this Kontrast cannot read: {rows.last_error}")
    return code or (ExitCode.FAILED if rows.bad else ExitCode.OK)


@dataclass(slots=True, kw_only=True)
class _Rows:
    """The chosen rows, current ones by subject, or the newest in order."""

    cluster: str | None
    topic: str | None
    in_force: bool
    most: int | None
    bad: int = 0
    last_error: str = ""
    _standing: StandingRows = field(default_factory=StandingRows)
    _in_order: deque[bytes] = field(default_factory=deque)

    def read(self, where: Where, output_name: str, stop: threading.Event) -> list[tuple[bytes, OutputRow]]:
        for line, is_void in lines_until_now(where, output_name, stop):
            if is_void:
                self._standing = StandingRows()
            if line is not None:
                self._take(line)
        lines = self._standing.lines() if self.in_force else self._in_order
        rows = [(line, decode_row(line)) for line in lines]
        return [each for each in rows if not (self.in_force and isinstance(each[1], BeginningRow))]

    @property
    def asked_for(self) -> str:
        """Return the choice of rows in words, which follow the name of their output."""
        of_topic = f" for topic {self.topic}" if self.topic else ""
        in_cluster = f" in cluster {self.cluster}" if self.cluster else ""
        return of_topic + in_cluster + (" that is in force" if self.in_force else "")

    def _take(self, line: bytes) -> None:
        try:
            row = decode_row(line)
        except BadRowError as error:
            self.bad, self.last_error = self.bad + 1, str(error)
            return
        if self.in_force and (isinstance(row, BeginningRow) or self._is_asked_for(row)):
            self._standing.add(line)
        elif not self.in_force and self._is_asked_for(row):
            self._in_order.append(line)
            if self.most is not None and len(self._in_order) > self.most:
                self._in_order.popleft()

    def _is_asked_for(self, row: OutputRow) -> bool:
        of_cluster = self.cluster in (None, getattr(row, "cluster", None))  # the job's row names no cluster
        return of_cluster and (self.topic is None or _tells_of(row, self.topic))


def _tells_of(row: OutputRow, topic: str) -> bool:
    if isinstance(row, Request):
        return any(state.topic == topic for state in row.partition_states)
    return getattr(row, "topic", None) == topic


def _sentences(row: OutputRow) -> Iterator[str]:
    if isinstance(row, JobRow):
        yield from _listed("", {"kind": "job", "zxid": None, **_without_v(row)}, first="batch")
        return
    fields = row_object(row)
    if isinstance(row, GaugesRow):
        fields.pop("reactions")  # a histogram
        fields["slowest_reactions"] = ", ".join(
            f"{slow['event']} after {slow['last_ms']} ms ({slow['cause']})" for slow in fields["slowest_reactions"]
        )
        yield from _listed(f"{row.cluster}  ", fields, first="ready")
    else:
        yield f"{row.cluster}  {sentence(fields)}"


def _listed(prefix: str, fields: dict[str, Any], *, first: str) -> Iterator[str]:
    """Yield a line with the time and the first field, and a line for each other field that is not zero or empty."""
    head = {name: fields.pop(name) for name in ("kind", "zxid", "time_ms", first)}
    yield prefix + sentence(head)
    for name, value in fields.items():
        if isinstance(value, dict):
            parts = sorted(value.items(), key=_by_broker)
            value = "  ".join(f"{key}: {value_in_words(part)}" for key, part in parts if part)
        if value not in (0, "", ()):
            yield f"  {name:<32}{value_in_words(value)}"


def _by_broker(item: tuple[object, object]) -> int:
    """Return a key for an order by broker. Rows with a name keep their order."""
    return item[0] if isinstance(item[0], int) else 0


def _without_v(row: JobRow) -> dict[str, object]:
    import msgspec

    fields: dict[str, object] = msgspec.to_builtins(row)
    return {name: value for name, value in fields.items() if name not in ("v", "kind")}
