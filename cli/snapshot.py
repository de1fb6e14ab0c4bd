"""`kontrast snapshot`: a cluster's metadata as its ZooKeeper has it now. Only the wiring and the printing are here."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cli import output
from cli.config import read_flags, read_settings, snapshot_config
from cli.keys import keys_of
from cli.options import config_option, settings_options
from cli.running import ExitCode, run_until_stopped
from controller.metadata import (
    BrokerMetadata,
    ControllerMetadata,
    Metadata,
    PartitionMetadata,
    UnreadableZnode,
    Znode,
    cluster_metadata,
)
from controller.states import PartitionState
from ingest.config import IngestConfig, ZooKeeperConfig

_NAMED_PARTITIONS = 20
_NOT_ONLINE, _REFUSES_ACKS_ALL, _NOT_FULLY_IN_SYNC, _WELL = range(4)
_ONLY_OF_WATCHING = keys_of(IngestConfig).keys() - keys_of(ZooKeeperConfig).keys()


@click.command()
@config_option
@click.option(
    "--cluster", metavar="NAME", help="The cluster of the file to read; may be left out if it is the only one."
)
@settings_options("watch", leave_out=_ONLY_OF_WATCHING)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line: brokers, controller, partitions.")
def snapshot(config_file: Path | None, cluster: str | None, *, as_json: bool, **flags: object) -> int:
    """Print a cluster's metadata as its ZooKeeper has it now.

    Reads everything once, in a few requests, and watches nothing.
    """
    config = snapshot_config(read_settings(config_file, os.environ), cluster, read_flags("watch", flags))
    unreadable: list[UnreadableZnode] = []

    def run(stop: threading.Event) -> None:
        metadata = _read(config, stop)
        if stop.is_set():
            return
        unreadable.extend(line for line in metadata if isinstance(line, UnreadableZnode))
        try:
            (_print_json if as_json else _print_summary)(metadata)
            sys.stdout.flush()
        except BrokenPipeError:
            output.discard_rows()

    code = run_until_stopped({"snapshot": run})
    for znode in unreadable[:_NAMED_PARTITIONS]:
        output.complain(f"{znode.path} cannot be read: {znode.reason}")
    if len(unreadable) > _NAMED_PARTITIONS:
        output.complain(f"{len(unreadable) - _NAMED_PARTITIONS} more znodes cannot be read; --json names them all")
    return code or (ExitCode.FAILED if unreadable else ExitCode.OK)


def _read(config: ZooKeeperConfig, stop: threading.Event) -> list[Metadata]:
    from ingest.snapshot import read_once  # not for --help

    with _progress() as show:
        values = read_once(config, stop, show)
    if not values and not stop.is_set():
        output.say(f"there is nothing of a Kafka cluster at {config.zookeeper}: is the address with its chroot right?")
    return list(cluster_metadata(Znode(path, value.data, value.czxid) for path, value in values.items()))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, if a person sees it."""
    if not sys.stderr.isatty():
        yield lambda _count, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("read", BarColumn(), MofNCompleteColumn(), "znodes", TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("read", total=None)
        yield lambda count, total: progress.update(task, completed=count, total=total)


def _print_json(metadata: Iterable[Metadata]) -> None:
    import msgspec

    encode = msgspec.json.Encoder().encode
    sys.stdout.buffer.writelines(encode(line) + b"\n" for line in metadata)


def _print_summary(metadata: list[Metadata]) -> None:
    brokers = [line for line in metadata if isinstance(line, BrokerMetadata)]
    partitions = [line for line in metadata if isinstance(line, PartitionMetadata)]
    led, hosted = Counter(line.leader for line in partitions), Counter(b for line in partitions for b in line.replicas)
    (controller,) = (line for line in metadata if isinstance(line, ControllerMetadata))
    who = f"broker {controller.broker}" if controller.broker >= 0 else "nobody"
    click.echo(f"controller: {who}, epoch {controller.epoch}")
    for broker in brokers:
        rack = f", rack {broker.rack}" if broker.rack else ""
        click.echo(
            f"broker {broker.broker}: epoch {broker.epoch}, {','.join(broker.endpoints) or 'no endpoint'}{rack}, "
            f"leads {led[broker.broker]} of {hosted[broker.broker]} partitions"
        )
    states = Counter(line.state for line in partitions)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    click.echo(f"{len({line.topic for line in partitions})} topics, {len(partitions)} partitions: {counts}")
    unwell = [line for line in partitions if _how_well(line) < _WELL]
    unwell.sort(key=_how_well)  # the worst come first, for not all are named
    refusing = sum(_how_well(line) == _REFUSES_ACKS_ALL for line in unwell)
    if refusing:
        click.echo(f"{refusing} of those that are online refuse writes with acks=all")
    for line in unwell[:_NAMED_PARTITIONS]:
        click.echo(
            f"{line.topic}-{line.partition}: {line.state}, leader {line.leader}, "
            f"in sync {list(line.isr)} of {list(line.replicas)}{_what_acks_all_needs(line)}"
        )
    if len(unwell) > _NAMED_PARTITIONS:
        click.echo(f"and {len(unwell) - _NAMED_PARTITIONS} more that are not online or not fully in sync")


def _how_well(partition: PartitionMetadata) -> int:
    if partition.state != PartitionState.ONLINE.word:
        return _NOT_ONLINE
    if partition.in_sync_lacking:
        return _REFUSES_ACKS_ALL
    return _NOT_FULLY_IN_SYNC if len(partition.isr) < _wanted(partition) else _WELL


def _what_acks_all_needs(partition: PartitionMetadata) -> str:
    lacking, candidates = partition.in_sync_lacking, partition.in_sync_candidates
    if not lacking:
        return ""
    if lacking > len(candidates):
        return "; refuses acks=all: min.insync.replicas is more than it has replicas"
    return f"; refuses acks=all until {lacking} more of {list(candidates)} in sync"


def _wanted(partition: PartitionMetadata) -> int:
    """How many replicas should be in sync: those that are being added not counted, as Kafka does."""
    return len(partition.replicas) - len(partition.adding_replicas)
