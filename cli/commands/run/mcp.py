"""Serve the questions to an assistant, over the Model Context Protocol."""

from __future__ import annotations

from typing import Final

import click

from cli.running import run_until_stopped
from cli.settings.errors import need_extra
from cli.settings.options import GroupedCommand
from cli.sources.options import read_source_flags

_FINISH_SECONDS: Final = 2.0  # then the process ends, because a thread that reads standard input does not end by itself
_EPILOG: Final = """\b
Examples:
  kontrast mcp --from journal:/var/lib/kontrast/outputs
  kontrast mcp --zookeeper zk1:2181/kafka

\b
Exit codes:
  0  the client left, or stopped by Ctrl-C or SIGTERM
  2  a flag or a setting is wrong, or the package mcp is missing
"""


@click.command(
    epilog=_EPILOG,
    cls=GroupedCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
)
@click.argument("source", nargs=-1, type=click.UNPROCESSED)
def mcp(source: tuple[str, ...]) -> int:
    """Serve the questions as tools, and the runbooks as resources, to an assistant, over standard input and output.

    SOURCE are the flags that name the cluster, as of `kontrast check`: --from, --zookeeper, --zk-data, --config and so
    on. With --from or --zk-data there is also a timeline. The tools only read.
    """
    has_past = read_source_flags(source).source().has_past
    need_extra("mcp", "mcp")
    from cli.mcp_server.server import make_server, run_stdio

    server = make_server(source, has_past=has_past)
    return run_until_stopped({"mcp": lambda stop: run_stdio(server, stop)}, finish_within_seconds=_FINISH_SECONDS)
