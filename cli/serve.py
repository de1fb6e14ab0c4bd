"""`kontrast serve`: answer Prometheus from what `kontrast stream` derived. Only the wiring is here."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from cli.config import build, read_flags, read_settings
from cli.options import config_option, settings_options
from cli.output import say
from cli.running import run_until_stopped
from dashboards.config import ServeConfig


@click.command()
@config_option
@settings_options("serve")
def serve(config_file: Path | None, **flags: object) -> int:
    """Serve /metrics for Prometheus.

    It reads what `kontrast stream` derived.
    """
    settings = read_settings(config_file, os.environ)
    config = build(ServeConfig, "serve", settings.sections["serve"], read_flags("serve", flags))

    def run(stop: threading.Event) -> None:
        from dashboards import server  # not for --help

        server.run(config, stop, started=lambda address: say(f"metrics: {address}/metrics"))

    return run_until_stopped({"serve": run})
