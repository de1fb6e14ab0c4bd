"""Find obstacles to a migration to KRaft in ZooKeeper."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

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
from cli.settings.config import ConfigError, Layer, Settings, snapshot_config
from cli.settings.options import config_option, zookeeper_options
from cli.settings.parameters import Parsed, files_option, read_ids
from cli.sources.asking import ask_as_long_as
from cli.sources.zookeeper import read_cluster
from controller.rules.releases import read_release
from dashboards.probe.config import KafkaLoginConfig
from ingest.config import ZooKeeperConfig
from ingest.errors import StoppedError
from migration.preflight.check import Patch
from migration.preflight.node_checks import SETTINGS
from migration.preflight.report import examine
from migration.preflight.tree import Owner, Tree
from questions.question import NotFoundError

_EPILOG = """\b
Examples:
  kontrast migration check --zookeeper zk1:2181/kafka
  kontrast migration check --zookeeper zk1:2181/kafka --release 3.9.2 --controller-ids 3001,3002,3003
  kontrast migration check --zookeeper zk1:2181/kafka --bootstrap controller1:9093,controller2:9093
  kontrast migration check --zk-data /var/lib/zookeeper --chroot /kafka --json

\b
Exit codes:
  0  no obstacle, and everything that a znode can show was read
  1  the printed obstacles exist, or the printed znodes may not be read
  2  a flag, a setting or the chroot is wrong
  3  ZooKeeper cannot be reached, or the files cannot be read
"""


def _read_patch(text: str) -> Patch:
    release = read_release(text)
    parts = text.strip().split(".")
    return (*release, int(parts[2]) if len(parts) > 2 else 0)


@click.command(epilog=_EPILOG)
@config_option
@click.option("--cluster", metavar="NAME", help="Cluster of the file. Optional if it is the only one.")
@files_option("Check copied files instead, a server's dataDir, and its separate dataLogDir.")
@click.option("--chroot", metavar="PATH", help="Kafka's chroot in --zk-data.")
@click.option(
    "--release",
    type=Parsed("VERSION", _read_patch),
    metavar="VERSION",
    help="The migrating release, like 3.9.2. By default all releases with such znodes.",
)
@click.option(
    "--controller-ids",
    callback=read_ids,
    metavar="LIST",
    help="The ids that the quorum's controllers shall have, which must be no broker's.",
)
@bootstrap_option(
    "Ask these nodes, and the registered brokers, for their mode. Name the quorum's controllers here.", required=False
)
@zookeeper_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def check(  # noqa: PLR0913 (one parameter an option)
    settings: Settings,
    cluster: str | None,
    directories: tuple[Path, ...],
    chroot: str | None,
    release: Patch | None,
    controller_ids: tuple[int, ...],
    bootstrap: tuple[str, ...] | None,
    *,
    as_json: bool,
    of_session: Layer,
    probe: Layer,
) -> int:
    """Find obstacles to a migration to KRaft in ZooKeeper.

    Reads everything once, sets no watch, and prints the worst first. Hidden znodes, and facts without a znode, are
    printed as not checked. Secrets are never printed.
    """
    if directories and "zookeeper" in of_session:
        raise ConfigError("give either --zookeeper or --zk-data")
    if chroot is not None and not (directories and chroot.startswith("/")):
        raise ConfigError("--chroot belongs to --zk-data and begins with /. An address has its own behind its ports")
    config = None if directories else snapshot_config(settings, cluster, of_session, {})[0]
    login = read_login(settings, cluster, probe)

    def look(stop: threading.Event) -> ExitCode:
        if config is None:
            tree = _tree_of_files(directories, chroot or "/", frozenset(controller_ids), stop)
        else:
            tree = _tree(config, frozenset(controller_ids), stop)
        if stop.is_set():
            raise StoppedError
        return _examine(_with_nodes(tree, bootstrap, login), release, as_json=as_json)

    return ask_as_long_as(look)


def _with_nodes(tree: Tree, bootstrap: tuple[str, ...] | None, config: KafkaLoginConfig) -> Tree:
    """Return the tree with the nodes' answers, if there are nodes to ask."""
    if not bootstrap:
        return tree
    from migration.nodes.requests import ask_nodes, with_settings, with_voters  # not for --help

    login = node_login(config)
    nodes = ask_nodes(bootstrap, registered_addresses(tree, config), login, TIMEOUT_SECONDS)
    nodes = with_voters(with_settings(nodes, SETTINGS, login, TIMEOUT_SECONDS), login, TIMEOUT_SECONDS)
    voters = nodes.quorum.voters if nodes.quorum else ()
    return replace(tree, nodes=nodes, controller_ids=tree.controller_ids | set(voters))


def _examine(tree: Tree, release: Patch | None, *, as_json: bool) -> ExitCode:
    if tree.is_ruled_by_kraft:
        standard_error.say("the migration is under way and a KRaft controller leads, so findings affect its next sync")
    report = examine(tree, release)
    print_answer(report.objects(), report.said(), as_json=as_json)
    return ExitCode.OK if report.is_clean else ExitCode.FAILED


def _tree(config: ZooKeeperConfig, controller_ids: frozenset[int], stop: threading.Event) -> Tree:
    from ingest.copied_znodes import read_copied_znodes  # not for --help

    read = read_cluster(config, stop, read_copied_znodes)
    owners = {path: frozenset(Owner(*owner) for owner in owners) for path, owners in (read.owners or {}).items()}
    return Tree(read.values, read.forbidden, owners, controller_ids)


def _tree_of_files(
    directories: tuple[Path, ...], chroot: str, controller_ids: frozenset[int], stop: threading.Event
) -> Tree:
    from ingest.files.history import FileHistory  # not for --help
    from ingest.observed.paths import is_copied

    history = FileHistory(directories, "", chroot=chroot, matters=is_copied)
    znodes = history.last_znodes(stop.is_set)
    for note in history.files.notes:
        standard_error.say(note)
    if not znodes and not stop.is_set():
        raise NotFoundError(history.below.without_cluster())
    return Tree(znodes, controller_ids=controller_ids)
