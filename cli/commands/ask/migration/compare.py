"""Compare the KRaft quorum with ZooKeeper."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

import click

from cli.commands.ask.migration import (
    TIMEOUT_SECONDS,
    bootstrap_option,
    node_login,
    read_login,
    registered_addresses,
)
from cli.printing import standard_error
from cli.printing.standard_output import print_answer
from cli.running import ExitCode
from cli.settings.config import Layer, Settings, snapshot_config
from cli.settings.options import config_option, zookeeper_options
from cli.sources.asking import ask_as_long_as
from cli.sources.zookeeper import where_clusters_are
from dashboards.probe.config import KafkaLoginConfig
from ingest.config import ZooKeeperConfig
from ingest.errors import StoppedError
from migration.preflight.tree import MIGRATION, Tree
from questions.question import NotFoundError

if TYPE_CHECKING:
    from ingest.zookeeper.client import WatchedZooKeeper

_LOOK_SECONDS: Final = 0.1
_EPILOG = """\b
Examples:
  kontrast migration compare --zookeeper zk1:2181/kafka --bootstrap controller1:9093,broker1:9092
  kontrast migration compare --config kontrast.toml --cluster orders --bootstrap broker1:9092 --json

\b
Exit codes:
  0  ZooKeeper has everything that the quorum reports. Facts that it does not report are printed
  1  ZooKeeper differs from the quorum, or lags behind it
  2  a flag, a setting or the chroot is wrong, or no quorum rules this cluster
  3  ZooKeeper or the quorum cannot be reached
"""


@click.command(epilog=_EPILOG)
@config_option
@click.option("--cluster", metavar="NAME", help="Cluster of the file. Optional if it is the only one.")
@bootstrap_option(
    "Nodes to ask. A broker in KRaft mode answers most. Name the KRaft controllers. ZooKeeper does not list them.",
    required=True,
)
@zookeeper_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line (nodes, subjects, the whole).")
def compare(  # noqa: PLR0913 (one parameter an option)
    settings: Settings,
    cluster: str | None,
    bootstrap: tuple[str, ...],
    *,
    as_json: bool,
    of_session: Layer,
    probe: Layer,
) -> int:
    """Compare the KRaft quorum with ZooKeeper during the dual write.

    Reads both sides, sets no watch and writes nothing. A difference must remain after ZooKeeper has reached the
    quorum's position. Before that it is a lag. Secrets are never printed.
    """
    zookeeper, _ = snapshot_config(settings, cluster, of_session, {})
    login = read_login(settings, cluster, probe)
    return ask_as_long_as(lambda stop: _compare(_ZooKeeper(zookeeper, stop), bootstrap, login, as_json=as_json))


class _ZooKeeper:
    """Reads of ZooKeeper, each in its own session. Raise IngestError."""

    def __init__(self, config: ZooKeeperConfig, stop: threading.Event) -> None:
        self.config = config
        self.stop = stop

    def read(self) -> Tree:
        """Return the present znodes that a migration copies."""
        from ingest.copied_znodes import read_copied_znodes  # not for --help

        read = read_copied_znodes(self.config, self.stop)
        return Tree(read.values, read.forbidden)

    def wait_for(self, offset: int, seconds: float) -> int:
        """Return the offset in /migration, as soon as it has reached `offset` or the time is over."""
        from ingest.complete_read import ask_once

        give_up_at = time.monotonic() + seconds

        def look(zookeeper: WatchedZooKeeper) -> int:
            while True:
                value = zookeeper.read_values([MIGRATION]).values.get(MIGRATION)
                migration = Tree({MIGRATION: value} if value else {}).migration
                reached = migration.kraft_metadata_offset if migration else -1
                if reached >= offset or time.monotonic() >= give_up_at or self.stop.wait(_LOOK_SECONDS):
                    return reached

        return ask_once(self.config, self.stop, look, -1)


def _compare(zookeeper: _ZooKeeper, bootstrap: tuple[str, ...], config: KafkaLoginConfig, *, as_json: bool) -> ExitCode:
    from migration.comparison.comparing import ComparisonOutcome, compare
    from migration.comparison.quorum_view import QuorumReader
    from migration.nodes.requests import ask_nodes
    from outputs.kafka_node import NodeError

    tree = zookeeper.read()
    if zookeeper.stop.is_set():
        raise StoppedError
    if not tree.is_ruled_by_kraft:
        raise NotFoundError(_why_nothing_to_compare(zookeeper, tree))
    login = node_login(config)
    nodes = ask_nodes(bootstrap, registered_addresses(tree, config), login, TIMEOUT_SECONDS)
    if nodes.quorum is None:
        reasons = "; ".join(f"{node.name}: {node.mode.words if node.mode else node.reason}" for node in nodes.nodes)
        standard_error.complain(
            f"no node reports the quorum's position: {reasons}. Name a KRaft controller that leads, or a broker "
            "in KRaft mode, with --bootstrap"
        )
        return ExitCode.UNAVAILABLE
    reader = QuorumReader(nodes, login, TIMEOUT_SECONDS)
    try:
        comparison = compare(zookeeper, reader)
    except NodeError as error:
        standard_error.complain(f"the quorum cannot be asked: {error}")
        return ExitCode.UNAVAILABLE
    finally:
        reader.close()
    if zookeeper.stop.is_set():
        raise StoppedError
    print_answer(comparison.objects(nodes), comparison.said(nodes), as_json=as_json)
    return ExitCode.OK if comparison.verdict is ComparisonOutcome.EQUAL else ExitCode.FAILED


def _why_nothing_to_compare(zookeeper: _ZooKeeper, tree: Tree) -> str:
    if not tree.znodes:
        return where_clusters_are(zookeeper.config, zookeeper.stop)
    return (
        "there is no comparison, because no KRaft quorum rules this cluster, or it has not yet copied ZooKeeper's "
        "metadata (/controller is a broker's, or /migration has no offset)"
    )
