"""`kontrast diff`: differences between two sides of a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from cli.migration.node_options import TIMEOUT_SECONDS, bootstrap_option, read_login
from cli.printing import standard_error
from cli.printing.standard_output import print_answer
from cli.running import ExitCode, StoppedError
from cli.settings.config import ConfigError, read_settings
from cli.settings.options import GroupedCommand
from cli.sources.asking import ask, ask_as_long_as
from cli.sources.moments import MomentParameter
from cli.sources.options import source_of, source_options
from cli.sources.source import Source
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.view.metadata import ControllerMetadata, Metadata, UnreadableZnode
from questions.diff.differences import Differences
from questions.diff.side import Side, of_metadata
from questions.question import EVERYTHING_NOW, Scope
from wording.sentences import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.sources.source import SourceWithPast
    from dashboards.probe.broker import BrokerConnection
    from ingest.files.data_directory import Until
    from questions.diff.differences import Differences
    from questions.diff.side import Side
    from questions.picture import Picture


_DECODER: Final[JsonDecoder[Metadata]] = JsonDecoder(Metadata)  # type: ignore[arg-type]  # mypy knows no union as a type


def read_snapshot(file: Path) -> Side:
    """Return a snapshot as one side of a comparison. Raise ConfigError for another file."""
    try:
        metadata = [_DECODER.decode(line) for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except UndecodableError as error:
        raise ConfigError(f"{file} is not of `kontrast snapshot --json`: {error}") from error
    if not any(isinstance(line, ControllerMetadata) for line in metadata):
        raise ConfigError(f"{file} is no whole answer of `kontrast snapshot --json`: it names no controller")
    if unreadable := sum(isinstance(line, UnreadableZnode) for line in metadata):
        standard_error.warn(
            f"in {file} {counted(unreadable, 'znode')} could not be read, so their data is missing there"
        )
    return Side(file.name, dict(of_metadata(metadata)))


# Both sides must be unchanged after this time, because a change takes a second or two from ZooKeeper to the brokers.
# The probe of `kontrast serve` waits as long (`confirm_seconds`).
_CONFIRM_SECONDS: Final = 5.0
_MOMENTS: Final = 2
_WAYS: Final = (
    "Give two files of `kontrast snapshot --json`, --zk-data or --from with --at twice, or a cluster "
    "with --predicted or --bootstrap"
)
_EPILOG: Final = """\b
Examples:
  kontrast diff before.json after.json
  kontrast diff --zk-data /var/lib/zookeeper --at 2024-05-01T03:00:00Z --at 2024-05-01T03:12:00Z
  kontrast diff --from journal:/var/lib/kontrast/derived --at 2024-05-01T03:00:00Z --at 2024-05-01T03:12:00Z
  kontrast diff --predicted --zookeeper zk1:2181/kafka
  kontrast diff --bootstrap broker1:9092,broker2:9092 --zookeeper zk1:2181/kafka --json

\b
Exit codes:
  0  the same
  1  something differs
  2  a flag, a setting, a file or the address is wrong
  3  the source cannot be reached
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="[A B]")
@click.option(
    "--at",
    "moments",
    type=MomentParameter(),
    multiple=True,
    help="Moment in --zk-data or --from. Give it twice.",
)
@click.option(
    "--predicted",
    is_flag=True,
    help="Compare ZooKeeper now with ZooKeeper after the controller's due writes.",
)
@bootstrap_option("Compare ZooKeeper with each of these brokers' answers to clients.", required=False)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic's partitions. Repeatable.")
@click.option("--all", "is_all", is_flag=True, help="Name all differences, not the worst twenty.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per difference, and one with the counts.")
@source_options
def diff(  # noqa: PLR0913 (one parameter an option)
    files: tuple[Path, ...],
    moments: tuple[Until, ...],
    bootstrap: tuple[str, ...],
    topics: tuple[str, ...],
    *,
    predicted: bool,
    is_all: bool,
    as_json: bool,
    **flags: Any,  # noqa: ANN401 (click's own)
) -> int:
    """Compare two sides of a cluster, worst difference first, with both values.

    The sides are two snapshots, two moments in ZooKeeper's files or in Kontrast's outputs, ZooKeeper and the
    controller's due writes, or ZooKeeper and the brokers' answers to clients. A difference from brokers counts if it
    lasts five seconds.
    """
    if sum(map(bool, (files, moments, predicted, bootstrap))) != 1:
        raise click.UsageError(f"{_WAYS}.")
    printed = _Printed(topics, is_all=is_all, as_json=as_json)
    if files:
        return _of_files(files, printed)
    if moments:
        return _of_moments(moments, flags, printed)
    source = source_of(flags)
    if predicted:
        return ask(source, Scope(topics=frozenset(topics) or None), lambda picture: _predicted(picture, printed))
    if not source.is_live:
        raise click.UsageError("--bootstrap compares the present. Give --zookeeper or --from.")
    return _of_brokers(source, _connections(bootstrap, flags), printed)


class _Printed:
    """Selection of subjects, and the form of the output."""

    def __init__(self, topics: tuple[str, ...], *, is_all: bool, as_json: bool) -> None:
        self.topics = topics
        self._is_all = is_all
        self._as_json = as_json

    def compare(self, a: Side, b: Side) -> ExitCode:
        """Compare the sides and print the result. Return the exit code, which shows if they differ."""
        from questions.diff.differences import diff

        return self.show(diff(a, b, self.topics))

    def show(self, differences: Differences) -> ExitCode:
        """Print the differences. Return the exit code, which shows if there are any."""
        print_answer(differences.objects(), differences.said(is_all=self._is_all), as_json=self._as_json)
        return ExitCode.FAILED if differences.differences else ExitCode.OK


def _of_files(files: tuple[Path, ...], printed: _Printed) -> int:
    if len(files) != _MOMENTS:
        raise click.UsageError(f"{counted(len(files), 'file')} given. A comparison needs two.")
    a, b = map(read_snapshot, files)
    return ask_as_long_as(lambda _: printed.compare(a, b))


def _of_moments(moments: tuple[Until, ...], flags: Mapping[str, Any], printed: _Printed) -> int:
    has_history = flags["directories"] or flags["stream"] is not None
    if len(moments) != _MOMENTS or not has_history or flags["until"] is not None:
        raise click.UsageError("two moments of a history are --at twice, with --zk-data or --from, without --until.")
    source = cast("SourceWithPast", source_of(flags))

    def look(stop: threading.Event) -> ExitCode:
        a, b = (source.side_at(moment, stop) for moment in moments)
        return printed.compare(a, b)

    return ask_as_long_as(look)


def _predicted(picture: Picture, printed: _Printed) -> ExitCode:
    from questions.diff.side import Side, observed, predicted

    has, must_have = dict(observed(picture.context)), dict(predicted(picture.context))
    return printed.compare(Side("in ZooKeeper", has), Side("predicted", must_have))


def _connections(bootstrap: tuple[str, ...], flags: Mapping[str, Any]) -> dict[str, BrokerConnection]:
    from dashboards.probe.broker import BrokerConnection, Endpoint
    from transport.kafka_login import split_address

    login = read_login(read_settings(flags["config_file"], os.environ), flags["cluster"], flags)
    return {
        address: BrokerConnection(Endpoint("", *split_address(address)), login, TIMEOUT_SECONDS)
        for address in bootstrap
    }


def _of_brokers(source: Source, connections: Mapping[str, BrokerConnection], printed: _Printed) -> int:
    def look(stop: threading.Event) -> ExitCode:
        try:
            first = dict(_answers(source, connections, printed, {}, stop))
            if any(found.differences for found in first.values()):
                if stop.wait(_CONFIRM_SECONDS):
                    raise StoppedError
                first = dict(_answers(source, connections, printed, first, stop))
        finally:
            for connection in connections.values():
                connection.close()
        codes = {printed.show(found) for found in first.values()}
        if len(first) < len(connections):
            return ExitCode.UNAVAILABLE
        return max(codes)

    return ask_as_long_as(look)


def _answers(
    source: Source,
    connections: Mapping[str, BrokerConnection],
    printed: _Printed,
    earlier: Mapping[str, Differences],
    stop: threading.Event,
) -> Iterator[tuple[str, Differences]]:
    """Return the differences from each answering broker by its address. With `earlier`, only lasting differences."""
    from dashboards.probe.broker import ProbeError, expected_bytes
    from dashboards.probe.sides import sides
    from questions.diff.differences import diff
    from questions.rows_of_picture import partition_rows

    picture = source.picture(EVERYTHING_NOW, stop)
    rows = {(row.topic, row.partition): row for row in partition_rows(picture) if not row.deleting}
    for address, connection in connections.items():
        try:
            answer = connection.answer(expected_bytes(rows))
        except ProbeError as error:
            if not earlier or address in earlier:
                standard_error.complain(f"{error}: it is not compared")
            continue
        a, b = sides(picture.header, rows, answer, f"broker at {address}")
        yield address, diff(a, b, printed.topics, earlier.get(address))
