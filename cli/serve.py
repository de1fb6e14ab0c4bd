"""`kontrast serve`: answer Prometheus from what `kontrast stream` derived. Only the wiring is here."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from cli.config import SECTIONS, read_flags, read_settings, serve_config
from cli.options import config_option, settings_options
from cli.output import say
from cli.running import run_until_stopped


@click.command()
@config_option
@settings_options("serve")
@settings_options("serve.alertmanager")
@settings_options("serve.probe")
def serve(config_file: Path | None, **flags: object) -> int:
    """Serve /metrics for Prometheus, tell Alertmanager of alerts, compare the view of brokers.

    It reads what `kontrast stream` derived.
    """
    settings = read_settings(config_file, os.environ)
    sections = [section for section in SECTIONS if section.split(".")[0] == "serve"]
    config = serve_config(settings, {section: read_flags(section, flags) for section in sections})

    def run(stop: threading.Event) -> None:
        from dashboards import server  # not for --help

        server.run(config, stop, started=lambda address: say(f"metrics: {address}/metrics"))

    return run_until_stopped({"serve": run})
