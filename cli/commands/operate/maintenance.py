"""Announce work on brokers, so that its effects do not page."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Final

import click

from cli.lazy_group import SuggestingGroup
from cli.printing import standard_error
from cli.printing.standard_output import print_json, print_line
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import (
    Layer,
    Settings,
    cluster_zookeeper,
    known_clusters,
    maintenance_file,
    maintenance_files,
)
from cli.settings.keys import keys_of
from cli.settings.options import config_option, settings_options
from cli.settings.parameters import DURATION, HIGHEST_ID
from controller.contract.ids import BrokerId
from ingest.config import IngestConfig
from ingest.errors import IngestError
from ingest.maintenance import LONGEST_REASON, AnnouncedWindow, changing_windows, read_windows

_PATIENCE_SECONDS: Final = 3.0  # for ZooKeeper's answer. A session begins within tenths of a second
_file_option = settings_options("watch", leave_out=keys_of(IngestConfig).keys() - {"maintenance_file"})


def _read_reason(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    if len(text) > LONGEST_REASON:
        raise click.BadParameter(f"it has {len(text):,} characters, at most {LONGEST_REASON} are allowed.")
    return text


_EPILOG: Final = """\b
Examples:
  kontrast maintenance start --config kontrast.toml --cluster orders --broker 3 --for 30m --reason "new disks"
  kontrast maintenance list --config kontrast.toml

\b
Exit codes:
  0  done
  2  a flag, a setting or the name of a cluster or window is wrong
  3  the file cannot be read or written
"""


@click.group(cls=SuggestingGroup, epilog=_EPILOG)
def maintenance() -> None:
    """Announce work on brokers, so that its effects do not page.

    The windows are in a file that `kontrast watch` reads (setting `maintenance_file`). You can edit it.
    """


@maintenance.command()
@config_option
@_file_option
@click.option("--cluster", required=True, metavar="NAME", help="Cluster under maintenance.")
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=click.IntRange(0, HIGHEST_ID),
    metavar="ID",
    help="Broker under maintenance. Repeatable.",
)
@click.option("--all", "whole_cluster", is_flag=True, help="Cover the whole cluster.")
@click.option(
    "--for", "duration", required=True, type=DURATION, metavar="TIME", help="Duration, like 30m, 2h or 1h30m."
)
@click.option(
    "--reason",
    default="",
    callback=_read_reason,
    metavar="TEXT",
    help=f"Reason to show with the window, at most {LONGEST_REASON} characters.",
)
def start(  # noqa: PLR0913 (one parameter an option)
    settings: Settings,
    *,
    cluster: str,
    brokers: tuple[BrokerId, ...],
    whole_cluster: bool,
    duration: timedelta,
    reason: str,
    watch: Layer,
) -> int:
    """Start a window now. It ends by itself.

    A cluster that is not configured is rejected. A broker that is not registered causes a warning.
    """
    if bool(brokers) == whole_cluster:
        raise click.UsageError("Give either --broker ID, as often as needed, or --all.")
    file = maintenance_file(settings, cluster, watch)
    now = datetime.now(timezone.utc)
    window = AnnouncedWindow(
        id=secrets.token_hex(4),
        cluster=cluster,
        brokers=tuple(sorted(set(brokers))),
        until=(now + duration).replace(microsecond=0),
        reason=reason,
    )

    def add(_: threading.Event) -> int:
        with changing_windows(file) as replace:
            replace([*(kept for kept in read_windows(file) if kept.until > now), window])
        standard_error.say(f"{_sentence(window)}, or until `kontrast maintenance end {window.id}`")
        return ExitCode.OK

    code = run_until_stopped({"maintenance": add})
    if code == ExitCode.OK:
        for doubt in _doubts(settings, window):
            standard_error.warn(doubt)
    return code


def _doubts(settings: Settings, window: AnnouncedWindow) -> Iterator[str]:
    """Warn of likely mistakes in a valid window."""
    if not known_clusters(settings):
        yield f"the name {window.cluster} was not checked, because no configuration names clusters (give --config)"
    config = cluster_zookeeper(settings, window.cluster)
    if config is None or not window.brokers:
        return
    from ingest.complete_read import read_registered_brokers  # not for --help

    patience_seconds = min(_PATIENCE_SECONDS, config.connect_timeout_seconds)
    try:
        registered = read_registered_brokers(
            replace(config, connect_timeout_seconds=patience_seconds), threading.Event()
        )
    except IngestError as error:
        yield f"whether the brokers are registered was not checked: {error}"
        return
    absent = [str(broker) for broker in window.brokers if broker not in registered]
    if absent:
        named = f"broker {absent[0]} is" if len(absent) == 1 else f"brokers {', '.join(absent)} are"
        there = ", ".join(map(str, sorted(registered))) or "none"
        yield f"{named} not registered in {window.cluster} now (registered: {there}). If it is a mistake, end it"


@maintenance.command("list")
@config_option
@_file_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_windows(settings: Settings, *, as_json: bool, watch: Layer) -> int:
    """Print the windows that are not over."""
    files = maintenance_files(settings, watch)
    now = datetime.now(timezone.utc)

    def show(_: threading.Event) -> int:
        windows = [window for file in files for window in read_windows(file) if window.until > now]
        for window in sorted(windows, key=lambda window: (window.cluster, window.until)):
            if as_json:
                print_json(_fields(window))
            else:
                print_line(f"{window.name}  {_sentence(window)}")
        if not windows:
            standard_error.say("no maintenance window is in force")
        return ExitCode.OK

    return run_until_stopped({"maintenance": show})


@maintenance.command()
@config_option
@_file_option
@click.argument("window_id", metavar="ID")
def end(settings: Settings, *, window_id: str, watch: Layer) -> int:
    """End a window now. `kontrast maintenance list` prints the ids."""
    files = maintenance_files(settings, watch)
    now = datetime.now(timezone.utc)

    def remove(_: threading.Event) -> int:
        for file in files:
            with changing_windows(file) as replace:
                windows = [window for window in read_windows(file) if window.until > now]
                kept = [window for window in windows if window.name != window_id]
                if len(kept) < len(windows):
                    replace(kept)
                    standard_error.say(f"ended maintenance window {window_id}")
                    return ExitCode.OK
        standard_error.complain(
            f"no maintenance window {window_id} is in force. `kontrast maintenance list` prints the ids"
        )
        return ExitCode.USAGE

    return run_until_stopped({"maintenance": remove})


def _sentence(window: AnnouncedWindow) -> str:
    brokers = f"broker {', '.join(map(str, window.brokers))}" if window.brokers else "all brokers"
    until = window.until.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    reason = f": {window.reason}" if window.reason else ""
    return f"{window.cluster}: {brokers} until {until}{reason}"


def _fields(window: AnnouncedWindow) -> dict[str, object]:
    fields = {"id": window.name, "cluster": window.cluster, "brokers": window.brokers}
    return {**fields, "until_ms": window.until_ms, "reason": window.reason}
