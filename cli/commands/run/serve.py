"""Command `kontrast serve`, which answers Prometheus from the outputs of `kontrast stream`."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from cli import checks
from cli.printing.standard_error import say
from cli.running import run_until_stopped
from cli.settings.config import SECTIONS, read_flags, read_settings, serve_config
from cli.settings.options import service_command, settings_options

_EXAMPLES: Final = """
  kontrast serve --from journal:/var/lib/kontrast/outputs
  kontrast serve --config kontrast.toml --check
"""


@service_command(_EXAMPLES)
@settings_options("serve")
@settings_options("serve.alertmanager")
@settings_options("serve.probe")
def serve(config_file: Path | None, *, check: bool, **flags: object) -> int:
    """Serve /metrics for Prometheus, deliver alerts to Alertmanager, compare the view of brokers.

    It reads what `kontrast stream` derived.
    """
    settings = read_settings(config_file, os.environ)
    sections = [section for section in SECTIONS if section.split(".")[0] == "serve"]
    config = serve_config(settings, {section: read_flags(section, flags) for section in sections})

    if check:
        return checks.check(checks.of_serve(config))

    answers = threading.Event()

    def started(address: str) -> None:
        say(f"page: {address}/  metrics: {address}/metrics")
        answers.set()

    def run(stop: threading.Event) -> None:
        from dashboards.exporter import server  # not for --help

        server.run(config, stop, started=started)

    return run_until_stopped({"serve": run}, ready={"serve": answers.is_set})
