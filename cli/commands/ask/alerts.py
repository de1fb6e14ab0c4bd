"""`kontrast alerts`: the open alerts, worst first."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.followed_outputs import Followed, followed, outputs_options, where_outputs_are
from cli.printing import standard_error
from cli.printing.standard_output import (
    READER_LEFT,
    flush,
    is_terminal,
    print_json_line,
    print_line,
    print_said,
    reader_has_left,
)
from cli.running import ExitCode
from cli.settings.config import known_clusters, read_flags, read_settings
from cli.settings.options import config_option
from cli.sources.asking import ask_as_long_as
from cli.sources.moments import MomentParameter
from cli.sources.stream import moment_in
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.outputs import encode_row
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import rows_lost
from questions.moments import TIMES
from questions.picture import Present
from transport.printable import printable
from wording.said import Said, Table, line, marked
from wording.sentences import counted
from wording.times import age, duration

if TYPE_CHECKING:
    from rich.console import Group

    from ingest.files.data_directory import Until
    from transport.address import Address

_OUTPUTS: Final = ("job", "alerts", "gauges")
_LOOK_SECONDS: Final = 1.0
_EXAMPLES: Final = 3
_LINES_AROUND: Final = 3  # lines of the live picture for the title, the table's head and the rule
_COLUMNS: Final = ("severity", "since", "cluster", "alert", "cause")
_WORST_FIRST: Final = {severity: place for place, severity in enumerate(Severity)}
_EPILOG: Final = """\b
Examples:
  kontrast alerts --from journal:/var/lib/kontrast/derived
  kontrast alerts --config kontrast.toml --cluster orders --severity page --watch

\b
Exit codes:
  0  no alert is open
  1  an alert is open, or the data of a cluster is old
  2  a flag or setting is wrong
  3  the outputs are missing or unreadable
"""


@click.command(epilog=_EPILOG)
@config_option
@outputs_options
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Only this cluster's alerts. Repeatable.")
@click.option(
    "--severity",
    type=click.Choice([severity.value for severity in Severity]),
    default=Severity.INFO.value,
    show_default=True,
    help="Only alerts of at least this severity.",
)
@click.option("--long", "is_long", is_flag=True, help="Show expected actions, next steps and evidence too.")
@click.option("--until", type=MomentParameter(), metavar="TIME", help=f"The alerts of this moment: {TIMES}.")
@click.option("--watch", "is_live", is_flag=True, help="Follow changes until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows, one JSON object per line.")
def alerts(  # noqa: PLR0913 (one parameter an option)
    config_file: Path | None,
    *,
    clusters: tuple[str, ...],
    severity: str,
    is_long: bool,
    until: Until | None,
    is_live: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Print the open alerts, worst first.

    Reads the outputs of `kontrast stream`. No other command has to run.
    """
    if is_live and until is not None:
        raise click.UsageError("--watch and --until exclude each other.")
    settings = read_settings(config_file, os.environ)
    where = where_outputs_are(settings, read_flags("serve", flags))
    expected = frozenset(clusters or known_clusters(settings))
    shown = _Shown(
        frozenset(clusters), Severity(severity), expected, where.stale_after_ms, is_long=is_long, as_json=as_json
    )

    def look(stop: threading.Event) -> ExitCode:
        with followed(where, _OUTPUTS if until is None else (*_OUTPUTS, "metadata")) as outputs:
            outputs.wait_until_read(stop)
            if is_live:
                _follow(outputs, shown, stop)
                return ExitCode.OK
            is_open = not stop.is_set() and _print(outputs, shown, until, where.address)
            return ExitCode.FAILED if is_open else ExitCode.OK

    code = ask_as_long_as(look)
    return code or READER_LEFT if is_live and reader_has_left() else code


class _Shown:
    """The choice of alerts, and their form of print."""

    def __init__(
        self,
        clusters: frozenset[str],
        least: Severity,
        expected: frozenset[str],
        stale_after_ms: int,
        *,
        is_long: bool,
        as_json: bool,
    ) -> None:
        self.clusters = clusters
        self._expected = expected  # clusters that should be known, even if no alert is open there
        self._stale_after_ms = stale_after_ms
        self.is_long = is_long
        self.as_json = as_json
        self._least = _WORST_FIRST[least]

    def rows(self, snapshots: Collection[ClusterSnapshot]) -> list[AlertRow]:
        found = [row for snapshot in snapshots for row in snapshot.open_alerts if self._has(row)]
        return sorted(found, key=lambda row: (_WORST_FIRST[row.severity], row.since_ms, row.cluster, row.id))

    def _has(self, row: AlertRow) -> bool:
        of_cluster = not self.clusters or row.cluster in self.clusters
        return of_cluster and _WORST_FIRST[row.severity] <= self._least

    def doubts(self, outputs: Followed, snapshots: Collection[ClusterSnapshot]) -> dict[str, str]:
        """Return a sentence for each cluster that may be unwell even if it has no open alerts."""
        known = {snapshot.cluster: snapshot for snapshot in snapshots}
        newer, present = outputs.newer(), Present(time.time_ns() // 1_000_000, self._stale_after_ms)
        found = {}
        for cluster in sorted(self.clusters or known.keys() | self._expected):
            if cluster in newer:
                doubt = "a newer Kontrast wrote its rows. Upgrade this one"
            elif cluster in known and (lost := outputs.lacking(cluster)):
                doubt = rows_lost(lost)
            else:
                doubt = _doubt(known.get(cluster), present)
            if doubt:
                found[cluster] = f"{cluster}: {doubt}"
        return found if found or known else {"": "no cluster is known yet (see `kontrast status`)"}


def _doubt(snapshot: ClusterSnapshot | None, present: Present) -> str:
    heard_ms = None if snapshot is None else snapshot.heartbeat_ms
    if snapshot is None or heard_ms is None:
        return "the cluster is unknown. Check the name, and that `kontrast watch` forwards it"
    if snapshot.is_replayed:
        return "this shows a past that `kontrast replay` published, not the present"
    if present.is_stale(heard_ms):
        old = duration((present.now_ms - heard_ms) // 1_000 * 1_000)
        return f"the newest heartbeat is {old} old, so this may have changed (see `kontrast status`)"
    return "" if snapshot.ready else "its first complete read has not arrived yet"


def _print(outputs: Followed, shown: _Shown, until: Until | None, address: Address) -> bool:
    memory, snapshots = outputs.memory, outputs.memory.clusters()
    doubts, counted_to = shown.doubts(outputs, snapshots), _counted_to_ms(snapshots)
    if until is not None:
        chosen = [each.cluster for each in snapshots if each.cluster in (shown.clusters or counted_to)]
        then = [memory.cluster(cluster, moment_in(memory, cluster, until, address)) for cluster in chosen]
        snapshots = tuple(each for each in then if each is not None)
        doubts, counted_to = {}, {each.cluster: each.heartbeat_ms or 0 for each in snapshots}
    rows = shown.rows(snapshots)
    if shown.as_json:
        for row in rows:
            print_json_line(encode_row(row), flush=False)
        flush()
    elif rows and shown.is_long:
        for number, row in enumerate(rows):
            print_said((*([line("")] if number else []), *_long(row, counted_to[row.cluster])))
    elif rows:
        print_said([Table(_COLUMNS, (_cells(row, counted_to[row.cluster]) for row in rows), below=2)])
    for doubt in doubts.values():
        standard_error.warn(doubt)
    if not rows and not doubts:
        standard_error.say(f"no alert is open in {', '.join(snapshot.cluster for snapshot in snapshots)}")
    return bool(rows or doubts)


def _counted_to_ms(snapshots: Collection[ClusterSnapshot]) -> dict[str, int]:
    """Return the moment to which ages count, by cluster. It is now, or the end of a replayed past."""
    now_ms = time.time_ns() // 1_000_000
    return {each.cluster: (each.heartbeat_ms or now_ms) if each.is_replayed else now_ms for each in snapshots}


def _cells(row: AlertRow, counted_to_ms: int) -> Sequence[str]:
    severity = row.severity.value if row.state == "open" else row.state
    return severity, age(row.since_ms, counted_to_ms), row.cluster, *_said(row)


def _said(row: AlertRow) -> tuple[str, str]:
    examples = f" ({', '.join(row.examples[:_EXAMPLES])})" if row.examples else ""
    return f"{row.alert} {row.subject}", f"{row.cause}{examples}"


def _long(row: AlertRow, counted_to_ms: int) -> Said:
    severity, since, cluster, alert, cause = _cells(row, counted_to_ms)
    yield line(marked(severity), f"  {alert}  in {cluster} for {since}")
    yield line(cause, indent=2)
    for name, said in (("expected", row.expected), ("to do", row.action), ("runbook", f"Kontrast{row.alert}.md")):
        if said:
            yield line(f"{name}: {said}", indent=2)
    for evidence in row.evidence:
        yield line(f"evidence: {evidence}", indent=2)


def _follow(outputs: Followed, shown: _Shown, stop: threading.Event) -> None:
    """Show the alerts until `stop` is set, on a terminal as one live picture, elsewhere as a line for each change."""
    if shown.as_json or not is_terminal():
        _follow_as_lines(outputs, shown, stop)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(_picture(outputs, shown, *console.size), console=console, auto_refresh=False, screen=True) as live:
        while not stop.wait(_LOOK_SECONDS):
            outputs.check()
            live.update(_picture(outputs, shown, *console.size), refresh=True)


def _picture(outputs: Followed, shown: _Shown, width: int, height: int) -> Group:
    """Return the open alerts in a terminal of this size, and count the rest."""
    from rich.console import Group
    from rich.text import Text

    from cli.printing.terminal import lines_of_a_row, renderable

    snapshots = outputs.memory.clusters()
    rows, doubts, counted_to = shown.rows(snapshots), shown.doubts(outputs, snapshots), _counted_to_ms(snapshots)
    said = [*doubts.values(), *([] if outputs.is_up else ["the outputs are unreadable now, and this is older"])]
    fit = max(0, height - len(said) - _LINES_AROUND) // lines_of_a_row(width)
    more = f", {len(rows) - fit} more than fit here" if len(rows) > fit else ""
    title = f"{counted(len(rows), 'open alert')}{more}, {time.strftime('%H:%M:%S')} (Ctrl-C ends this)"
    return Group(
        Text(title, no_wrap=True),
        *(Text(printable(doubt), style="yellow", no_wrap=True, overflow="ellipsis") for doubt in said),
        renderable(Table(_COLUMNS, (_cells(row, counted_to[row.cluster]) for row in rows[:fit]), below=2, is_cut=True)),
    )


def _follow_as_lines(outputs: Followed, shown: _Shown, stop: threading.Event) -> None:
    shown_before: dict[tuple[str, str], AlertRow] = {}
    doubts: dict[str, str] = {}
    write: Callable[[AlertRow, str], None] = _write_json if shown.as_json else _write_line
    while True:
        outputs.check()
        snapshots = outputs.memory.clusters()
        now = {(row.cluster, row.id): row for row in shown.rows(snapshots)}
        for key, row in now.items():
            if _says(shown_before.get(key)) != _says(row):
                write(row, row.state)
        for key in shown_before.keys() - now.keys():
            write(_ending(key, snapshots) or shown_before[key], "resolved")
        shown_before = now
        doubted, doubts = doubts, shown.doubts(outputs, snapshots)
        for cluster in doubts.keys() - doubted.keys():
            standard_error.warn(doubts[cluster])
        flush()
        if reader_has_left() or stop.wait(_LOOK_SECONDS):
            return


def _says(row: AlertRow | None) -> object:
    return None if row is None else (row.state, row.severity, row.cause)


def _ending(key: tuple[str, str], snapshots: Collection[ClusterSnapshot]) -> AlertRow | None:
    cluster, id_ = key
    endings: Mapping[str, AlertRow] = {
        row.id: row for snapshot in snapshots if snapshot.cluster == cluster for row in snapshot.resolved_alerts
    }
    return endings.get(id_)


def _write_json(row: AlertRow, _state: str) -> None:
    print_json_line(encode_row(row), flush=False)


def _write_line(row: AlertRow, state: str) -> None:
    alert, cause = _said(row)
    print_line(
        f"{time.strftime('%H:%M:%S')}  {state:<8}  {row.severity.value:<4}  {row.cluster}  {alert}: {cause}",
        flush=False,
    )
