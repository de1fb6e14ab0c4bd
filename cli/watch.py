"""`kontrast watch`: observe the ZooKeeper of one or more clusters and forward what changes. Only the wiring is here."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from cli.config import read_flags, read_settings, watch_configs
from cli.options import config_option, settings_options
from cli.running import Part, run_until_stopped
from ingest.config import IngestConfig


@click.command()
@config_option
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    help="Watch this cluster; may be given again. Without it: all of the file. [env: KONTRAST_WATCH__CLUSTER]",
)
@settings_options("watch", leave_out=("cluster",))
def watch(config_file: Path | None, clusters: tuple[str, ...], **flags: object) -> int:
    """Watch clusters' ZooKeeper and forward every change into a stream.

    Read-only: the session on the watched ensemble creates, sets and deletes nothing.
    """
    settings = read_settings(config_file, os.environ)
    configs = watch_configs(settings, clusters, read_flags("watch", flags))
    return run_until_stopped({config.cluster: _forwarder(config) for config in configs})


def _forwarder(config: IngestConfig) -> Part:
    def run(stop: threading.Event) -> None:
        from ingest.forwarder import Forwarder  # not for --help

        Forwarder(config).run(stop)

    return run
