"""`kontrast serve`: answer Prometheus from what `kontrast stream` derived. Only the wiring is here."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

import click

from cli import checks
from cli.config import SECTIONS, read_flags, read_settings, serve_config
from cli.options import GroupedCommand, check_option, config_option, settings_options
from cli.output import say
from cli.running import run_until_stopped

_EPILOG: Final = """\b
Examples:
  kontrast serve --from journal:/var/lib/kontrast/derived
  kontrast serve --config kontrast.toml --check

\b
Exit codes:
  0  stopped by Ctrl-C or SIGTERM; with --check: all is well
  1  failed unexpectedly
  2  a setting is wrong; nothing was started
  3  something that is needed cannot be used; it is named
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand)
@config_option
@check_option
@settings_options("serve")
@settings_options("serve.alertmanager")
@settings_options("serve.probe")
def serve(config_file: Path | None, *, check: bool, **flags: object) -> int:
    """Serve /metrics for Prometheus, tell Alertmanager of alerts, compare the view of brokers.

    It reads what `kontrast stream` derived.
    """
    settings = read_settings(config_file, os.environ)
    sections = [section for section in SECTIONS if section.split(".")[0] == "serve"]
    config = serve_config(settings, {section: read_flags(section, flags) for section in sections})

    if check:
        return checks.check(list(checks.of_serve(config)))

    def run(stop: threading.Event) -> None:
        from dashboards import server  # not for --help

        server.run(config, stop, started=lambda address: say(f"metrics: {address}/metrics"))

    return run_until_stopped({"serve": run})
