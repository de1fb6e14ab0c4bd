"""Print a cluster's metadata from one read of ZooKeeper."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from cli.printing import standard_error
from cli.printing.standard_output import flush, print_json, print_json_lines, print_plain
from cli.running import ExitCode
from cli.settings.config import Layer, Settings, snapshot_config
from cli.settings.options import brokers_options, config_option, zookeeper_options
from cli.sources.asking import ask_as_long_as
from cli.sources.zookeeper import read_cluster, without_garbage_collection
from controller.restore.stored_context import new_context
from controller.step import Outcome, steps
from controller.view.metadata import UnreadableZnode, Znode, cluster_metadata
from questions.judged_cluster import Concern, JudgedCluster, JudgedPartition, PartitionChoice, Sound
from streaming.config import BrokersConfig
from wording.sentences import counted, did_you_mean, near

if TYPE_CHECKING:
    from ingest.complete_read import CompleteRead

_NAMED_ZNODES = 20
_LINES_AT_ONCE = 1_000
_EPILOG = """\b
Examples:
  kontrast snapshot --zookeeper zk1:2181/kafka
  kontrast snapshot --zookeeper zk1:2181/kafka --only offline
  kontrast snapshot --config kontrast.toml --cluster orders --topic payments --json

\b
Exit codes:
  0  everything was read and printed
  1  some znodes cannot be read, and are named. The rest is printed
  2  a flag, a setting or the chroot is wrong
  3  ZooKeeper cannot be reached
"""


@click.command(epilog=_EPILOG)
@config_option
@click.option("--cluster", metavar="NAME", help="Cluster of the file. Optional if it is the only one.")
@click.option(
    "--only",
    type=click.Choice([concern.value for concern in Concern]),
    help="Print all of these partitions, and no others.",
)
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME", help="Print only this topic's partitions. Repeatable."
)
@zookeeper_options
@brokers_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line (brokers, controller, partitions)."
)
def snapshot(  # noqa: PLR0913 (one parameter an option)
    settings: Settings,
    cluster: str | None,
    *,
    only: str | None,
    topics: tuple[str, ...],
    as_json: bool,
    of_session: Layer,
    of_brokers: Layer,
) -> int:
    """Print a cluster's metadata from one read of ZooKeeper.

    Reads everything in a few requests and sets no watch. Offline partitions come first, then those with fewer in-sync
    replicas than min.insync.replicas, then other under-replicated ones.
    """
    config, brokers = snapshot_config(settings, cluster, of_session, of_brokers)
    selection = PartitionChoice(topics=frozenset(topics), only=Concern(only) if only else None)

    def look(stop: threading.Event) -> ExitCode:
        from ingest.complete_read import read_once  # not for --help

        with without_garbage_collection():
            found = _snapshot(read_cluster(config, stop, read_once), cluster or "snapshot", brokers)
        code = _tell(found, selection)
        if as_json:
            _print_objects(found, selection)
        else:
            print_plain(found.said(selection))
        return code

    return ask_as_long_as(look)


def _snapshot(read: CompleteRead, cluster: str, brokers: BrokersConfig) -> JudgedCluster:
    znodes = (Znode(path, value.data, value.czxid) for path, value in read.values.items())
    empty = new_context(cluster, *brokers.read())

    def replicated(sound: Sound) -> Outcome:
        return steps(empty, read.without(sound).records(cluster))

    return JudgedCluster(list(cluster_metadata(znodes, read.forbidden, JudgedPartition)), replicated)


def _print_objects(found: JudgedCluster, selection: PartitionChoice) -> None:
    """Print unreadable znodes, brokers, the controller, then the chosen partitions."""
    for each in (*found.unreadable, *found.brokers, found.controller):
        print_json(each, flush=False)
    chosen = found.chosen(selection)
    for at in range(0, len(chosen), _LINES_AT_ONCE):
        print_json_lines(chosen[at : at + _LINES_AT_ONCE])
    flush()


def _tell(found: JudgedCluster, selection: PartitionChoice) -> ExitCode:
    """Warn of the snapshot's gaps. Return the exit code."""
    unreadable: list[UnreadableZnode] = found.unreadable
    for znode in unreadable[:_NAMED_ZNODES]:
        standard_error.complain(f"{znode.path} cannot be read: {znode.reason}")
    if len(unreadable) > _NAMED_ZNODES:
        more = counted(len(unreadable) - _NAMED_ZNODES, "more znode")
        standard_error.complain(f"{more} cannot be read (--json names them all)")
    known = {partition.topic for partition in found.partitions}
    absent = sorted(selection.topics - known)
    if absent and not unreadable:
        standard_error.complain(f"there is no topic {', '.join(absent)}{did_you_mean(near(absent[0], known))}")
        return ExitCode.USAGE
    return ExitCode.FAILED if unreadable else ExitCode.OK
