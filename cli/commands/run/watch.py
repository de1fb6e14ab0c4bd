"""Watch clusters' ZooKeeper and forward every change into a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Final

import click

from cli import checks
from cli.printing.standard_error import complain, say
from cli.running import ExitCode, Part, run_until_stopped
from cli.settings.config import Layer, Settings, watch_configs
from cli.settings.options import service_command, settings_options
from dashboards.errors import ServeError
from ingest.config import IngestConfig
from transport.forwarding import Forwarding
from transport.listening import Listening

_EXAMPLES: Final = """
  kontrast watch --cluster orders --zookeeper zk1:2181,zk2:2181/kafka --to journal:/var/lib/kontrast/changes
  kontrast watch --config kontrast.toml --check
"""


@service_command(_EXAMPLES)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    help="Watch this cluster, by default all of the file. Repeatable. [env: KONTRAST_WATCH__CLUSTER]",
)
@settings_options("watch", leave_out=("cluster",))
def watch(settings: Settings, clusters: tuple[str, ...], *, check: bool, watch: Layer) -> int:
    """Watch clusters' ZooKeeper and forward every change into a stream.

    Read-only: the session on the watched ensemble creates, sets and deletes nothing.
    """
    configs = watch_configs(settings, clusters, watch)
    if check:
        return checks.check(checks.of_watch(configs))
    parts: dict[str, Part] = {}
    ready: dict[str, Callable[[], bool]] = {}
    shown: dict[Listening, list[Forwarding]] = {}
    for config in configs:
        forwarding = Forwarding(config.cluster)
        parts[config.cluster] = _forwarder(config, forwarding)
        ready[config.cluster] = partial(attrgetter("works"), forwarding)
        if config.listening is not None:
            shown.setdefault(config.listening, []).append(forwarding)
    try:
        metrics = {f"metrics at {where.listen}": _metrics(where, forwardings) for where, forwardings in shown.items()}
    except ServeError as error:
        complain(str(error))
        return ExitCode.UNAVAILABLE
    return run_until_stopped(parts, beside=metrics, ready=ready)


def _forwarder(config: IngestConfig, forwarding: Forwarding) -> Part:
    def run(stop: threading.Event) -> None:
        from ingest.forwarder import Forwarder  # not for --help

        Forwarder(config, forwarding).run(stop)

    return run


def _metrics(listening: Listening, forwardings: list[Forwarding]) -> Part:
    from dashboards.exporter import watch_page  # not for --help

    # Open the port before the watch begins, so that no forwarder starts without its page.
    server = watch_page.open_page(listening, forwardings)
    return lambda stop: watch_page.run(server, stop, started=lambda address: say(f"metrics: {address}/metrics"))
