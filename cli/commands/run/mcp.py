"""`kontrast mcp`: the questions for assistants, over the Model Context Protocol."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import click

from cli.extras import need_extra
from cli.printing.standard_error import say
from cli.running import run_until_stopped
from cli.settings.config import ConfigError
from cli.settings.options import GroupedCommand
from cli.sources.options import read_source_flags, source_of
from transport.listening import Listening, ListeningError

if TYPE_CHECKING:
    from starlette.applications import Starlette

_FINISH_SECONDS: Final = 2.0  # then the process ends, because a thread that reads standard input does not end by itself
_EPILOG: Final = """\b
Examples:
  kontrast mcp --from journal:/var/lib/kontrast/derived
  kontrast mcp --zookeeper zk1:2181/kafka --listen 127.0.0.1:9643

\b
Exit codes:
  0  the client left, or stopped by Ctrl-C or SIGTERM
  2  a flag or a setting is wrong, or the package mcp is missing
  3  the port cannot be used
"""


@click.command(
    epilog=_EPILOG,
    cls=GroupedCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
)
@click.option("--listen", metavar="HOST:PORT", help="Serve HTTP at /mcp there. Unset: standard input and output.")
@click.option("--tls-certificate-file", metavar="FILE", help="Certificate of --listen (PEM). Unset: no TLS.")
@click.option("--tls-key-file", metavar="FILE", help="Key of the certificate (PEM), without a passphrase.")
@click.option("--username", metavar="NAME", help="User name that --listen asks for. Unset: no login.")
@click.option("--password-file", metavar="FILE", help="File that contains only the password.")
@click.option("--password-variable", metavar="NAME", help="Environment variable with the password.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Host name of --listen besides this machine's. Repeatable.",
)
@click.argument("source", nargs=-1, type=click.UNPROCESSED)
def mcp(listen: str | None, source: tuple[str, ...], allowed_hosts: tuple[str, ...], **flags: Any) -> int:  # noqa: ANN401
    """Serve the questions as tools, and the runbooks as resources, to an assistant.

    SOURCE are the flags that name the cluster, as of `kontrast check`: --from, --zookeeper, --zk-data, --config and so
    on. With --from or --zk-data there is also a timeline. The tools only read.
    """
    has_past = source_of(read_source_flags(source)).has_past
    need_extra("mcp", "mcp")
    from cli.mcp_server import server as protocol

    made = protocol.make_server(source, has_past=has_past)
    if listen is None:
        if any(flags.values()) or allowed_hosts:
            raise click.UsageError("A login, a certificate or a host name needs --listen.")
        run = lambda stop: protocol.run_stdio(made, stop)  # noqa: E731
        return run_until_stopped({"mcp": run}, finish_within_seconds=_FINISH_SECONDS)
    try:
        listening = Listening(listen=listen, allowed_hosts=allowed_hosts, **flags)
    except ListeningError as error:
        raise ConfigError(str(error)) from error
    return _serve(protocol.make_app(made), protocol.PATH, listening, protocol.LONGEST_ANSWER_SECONDS)


def _serve(app: Starlette, path: str, listening: Listening, answer_seconds: float) -> int:
    """Serve HTTP until stopped."""

    def serve(stop: threading.Event) -> None:
        from dashboards.serving.connections import HttpFigures
        from dashboards.serving.http import HttpServer

        with HttpServer(app, listening, HttpFigures(), lifespan=True, answer_seconds=answer_seconds) as http:
            say(f"mcp: {http.address}{path}")
            while not stop.wait(0.2):
                http.check()

    return run_until_stopped({"mcp": serve})
