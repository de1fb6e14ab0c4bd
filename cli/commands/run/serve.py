"""Serve /metrics for Prometheus, deliver alerts to Alertmanager, compare the view of brokers."""

from __future__ import annotations

import threading
from typing import Final

from cli import checks
from cli.printing.standard_error import say
from cli.running import run_until_stopped
from cli.settings.config import Layer, Settings, serve_config
from cli.settings.options import service_command, settings_options

_EXAMPLES: Final = """
  kontrast serve --from journal:/var/lib/kontrast/outputs
  kontrast serve --config kontrast.toml --check
"""


@service_command(_EXAMPLES)
@settings_options("serve")
@settings_options("serve.alertmanager")
@settings_options("serve.probe")
def serve(settings: Settings, *, check: bool, serve: Layer, alertmanager: Layer, probe: Layer) -> int:
    """Serve /metrics for Prometheus, deliver alerts to Alertmanager, compare the view of brokers.

    It reads what `kontrast stream` derived.
    """
    sections = {"serve": serve, "serve.alertmanager": alertmanager, "serve.probe": probe}
    config = serve_config(settings, sections)

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
