"""`kontrast report`: availability, failovers and alerts of one or hundreds of clusters over weeks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cli.extras import need_extra
from cli.printing import standard_error
from cli.printing.standard_output import plain_lines, print_document, print_said
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import Settings, brokers_config, build, reached, read_flags, read_settings
from cli.settings.keys import keys_of
from cli.settings.options import GroupedCommand, config_option, settings_options
from cli.sources.addresses import read_address
from cli.sources.moments import Ago, chroot_option
from streaming.config import StreamConfig
from streaming.errors import StreamError
from transport.address import Address
from transport.printable import printable_json

if TYPE_CHECKING:
    from questions.report.report import Report
    from streaming.report.config import ReportConfig

_OF_SPARK: Final = {"master", "driver_memory", "connect_timeout_seconds"}
_OF_BROKERS: Final = {"broker_config", "kafka_version"}

_EPILOG: Final = """\b
Examples:
  kontrast report --from journal:/var/lib/kontrast/changes --since 30d --slo 99.95
  kontrast report --from kafka://kafka1:9092/kontrast.changes --since 90d --slo 99.95 --format html --out review.html
  kontrast report --zk-data orders=/archive/orders --zk-data billing=/archive/billing --format csv --out tables

\b
Exit codes:
  0  done, and every topic met the objective, if one is given
  1  a topic missed the objective
  2  a flag or a setting is wrong, or the data lacks the named clusters
  3  the source cannot be reached, or a cluster's files cannot be read. The report has the other clusters
"""


_Given = tuple[tuple[str, Path], ...]  # directories, each with the name of its cluster, empty if none is given


def _read_directories(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> _Given:
    """Return the parts of each NAME=DIR. A DIR alone has an empty name."""
    found: list[tuple[str, Path]] = []
    for text in given:
        name, equals, rest = text.partition("=")
        if not equals or "/" in name:
            found.append(("", Path(text)))
        elif name and rest:
            found.append((name, Path(rest)))
        else:
            raise click.BadParameter(f"{text!r} is not NAME=DIR.")
    return tuple(found)


def _by_cluster(given: _Given, clusters: tuple[str, ...]) -> dict[str, tuple[Path, ...]]:
    """Return the directories by cluster. A directory without a name belongs to the only --cluster, as in any question.

    Without --cluster, too, the last part of its path is the name. Raise UsageError.
    """
    found: dict[str, tuple[Path, ...]] = {}
    only = clusters[0] if len(set(clusters)) == 1 and not any(name for name, _ in given) else ""
    unnamed: set[str] = set()
    for given_name, directory in given:
        name = given_name or only or directory.absolute().name
        if not name:
            raise click.UsageError(f"give the name of the cluster in {directory}, NAME=DIR.")
        is_named = bool(given_name or only)
        if name in unnamed or (name in found and not is_named):
            raise click.UsageError(f"two directories are called {name!r}. Give each its cluster's name, NAME=DIR.")
        if not is_named:
            unnamed.add(name)
        found[name] = (*found.get(name, ()), directory)
    return found


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@config_option
@click.option(
    "--from",
    "stream",
    callback=read_address,
    metavar="ADDRESS",
    help="Kontrast's data. Give the changes of `kontrast watch` or the outputs of `kontrast stream`, as "
    "journal:DIRECTORY or kafka://HOST:PORT/TOPIC.",
)
@click.option(
    "--zk-data",
    "directories",
    multiple=True,
    callback=_read_directories,
    metavar="[NAME=]DIR",
    help="Archived files of a cluster's ZooKeeper, under the cluster's name. Repeatable, for other "
    "clusters, or with the same name for a dataLogDir. DIR alone has the name of the only --cluster.",
)
@chroot_option("In --zk-data, the znode that contains Kafka's znodes.")
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Only this cluster. Repeatable.")
@click.option(
    "--since", type=Ago(), help="Start as an age before the end (30d, 12h, 4w) or a time. By default all data."
)
@click.option(
    "--until",
    type=Ago(),
    help="End as an age or a time, by default the newest data. An age counts from now.",
)
@click.option(
    "--slo",
    "objective_percent",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Required share of partition-minutes writable with acks=all per topic, like 99.95.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "html", "csv", "json"]),
    default="text",
    show_default=True,
    help="html is one self-contained page, csv a directory with one file per table, json one object.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write, or a directory for csv, instead of standard output.",
)
@settings_options("stream", leave_out=keys_of(StreamConfig).keys() - _OF_SPARK - _OF_BROKERS)
def report(  # noqa: PLR0913 (one parameter an option)
    *,
    config_file: Path | None,
    stream: Address | None,
    directories: _Given,
    chroot: str,
    clusters: tuple[str, ...],
    since: int | None,
    until: int | None,
    objective_percent: float | None,
    form: str,
    out: Path | None,
    **flags: Any,  # noqa: ANN401 (of the section)
) -> int:
    """Report availability, failovers and alerts of one or hundreds of clusters over weeks.

    A Spark batch job. It reports availability by topic against an objective and by team of [topics], failovers with
    their durations, the controller's reaction times, crashes and bounces of brokers, and alerts by kind. Only time in
    which a forwarder watched the cluster counts. The report shows the rest.
    """
    need_extra("job", "report")
    if (stream is None) == (not directories):
        raise click.UsageError("give either --from ADDRESS or --zk-data DIR.")
    if form == "csv" and out is None:
        raise click.UsageError("--format csv needs --out DIRECTORY. It writes one file per table.")
    by_cluster = _by_cluster(directories, clusters)
    absent = sorted(set(clusters) - by_cluster.keys()) if directories else []
    if absent:
        raise click.UsageError(f"--zk-data names no cluster {', '.join(absent)}.")
    chosen = {name: found for name, found in by_cluster.items() if not clusters or name in clusters}
    window = _window(since, until, time.time_ns() // 1_000_000)
    settings = read_settings(config_file, os.environ)
    source = reached(settings, stream) if stream else (chosen, chroot)
    config = _config(settings, source, window, clusters, read_flags("stream", flags))

    def run(stop: threading.Event) -> ExitCode | None:
        from cli.followed_outputs import without_messages_of_waiting
        from questions.report.report import report_against
        from streaming.report import job  # brings pyspark

        try:
            with without_messages_of_waiting():
                found = report_against(objective_percent, job.run(config, stop), settings.teams)
        except StreamError:
            if not stop.is_set():
                raise
            return None  # Spark was stopped before its end
        return None if stop.is_set() else _answer(found, clusters, form, out)

    return run_until_stopped({"report": run})


def _window(since: int | None, until: int | None, now_ms: int) -> tuple[int | None, int | None]:
    """Return the ends of the window as moments. Raise UsageError if it ends before it begins."""
    until_ms = max(0, now_ms + until) if until is not None and until < 0 else until
    since_ms = max(0, (until_ms or now_ms) + since) if since is not None and since < 0 else since
    if since_ms is not None and since_ms >= (until_ms or now_ms):
        raise click.UsageError("The window ends before it begins. Check --since and --until.")
    return since_ms, until_ms


def _config(
    settings: Settings,
    source: Address | tuple[Mapping[str, tuple[Path, ...]], str],
    window: tuple[int | None, int | None],
    clusters: tuple[str, ...],
    flags: Mapping[str, Any],
) -> ReportConfig:
    from streaming.report.config import ReportConfig, Resources, ZooKeeperFiles

    section = settings.sections["stream"]
    return ReportConfig(
        source=ZooKeeperFiles(*source) if isinstance(source, tuple) else source,
        since_ms=window[0],
        until_ms=window[1],
        clusters=frozenset(clusters),
        brokers={
            name: brokers_config(settings, own, flags, f"cluster {name}") for name, own in settings.clusters.items()
        },
        other_brokers=brokers_config(settings, {}, flags),
        resources=build(Resources, "stream", section, flags),
    )


def _answer(found: Report, clusters: tuple[str, ...], form: str, out: Path | None) -> ExitCode:
    from questions.report.report import reasons_to_doubt

    doubts = [doubt for cluster in found.clusters for doubt in reasons_to_doubt(cluster)]
    named = {cluster.cluster for cluster in found.clusters} - {""}
    absent = sorted(set(clusters) - named)
    if absent or not named:
        what = f"cluster {', '.join(absent)}" if absent else "any cluster"
        standard_error.complain(f"the kept data has no rows of {what}")
        return ExitCode.USAGE
    try:
        _write(found, doubts, form, out)
    except OSError as error:
        standard_error.complain(f"{error.filename} cannot be written: {error.strerror}. Give --out another place")
        return ExitCode.USAGE
    for doubt in doubts:
        standard_error.warn(doubt)
    if any(cluster.failed for cluster in found.clusters):
        return ExitCode.UNAVAILABLE
    return ExitCode.FAILED if found.misses else ExitCode.OK


def _write(found: Report, doubts: list[str], form: str, out: Path | None) -> None:
    if form == "csv":
        from cli.printing.report_tables import write_tables

        assert out is not None, "it is asked for before"
        write_tables(found, out)
    elif form == "text" and out is None:
        print_said(found.said())
        return
    else:
        text = _text(found, doubts, form)
        if out is None:
            print_document(text)
            return
        out.write_text(text, encoding="utf-8")
    standard_error.say(f"wrote {out}")


def _text(found: Report, doubts: list[str], form: str) -> str:
    if form == "html":
        from dashboards.drawn_report.page import page_of

        return page_of(found, doubts)
    if form == "json":
        import msgspec

        return f"{printable_json(msgspec.json.encode(found)).decode()}\n"
    return "".join(f"{line}\n" for line in plain_lines(found.said()))
