"""Derive metadata, transitions, requests and alerts in a Spark job."""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

import click

from cli import checks
from cli.running import run_until_stopped
from cli.settings.config import Layer, Settings, stream_config, watched_into
from cli.settings.errors import need_extra
from cli.settings.options import service_command, settings_options

# SIGTERM lets the running batch finish within this time. If it does not, the next start repeats the batch.
_FINISH_SECONDS: Final = 30.0

_EXAMPLES: Final = """
  kontrast stream --from journal:/var/lib/kontrast/changes --to journal:/var/lib/kontrast/outputs \\
                  --checkpoint /var/lib/kontrast/checkpoint
  kontrast stream --config kontrast.toml --check
"""


@service_command(
    _EXAMPLES,
    ended="stopped by Ctrl-C or SIGTERM, or done with --available-now",
    more_codes="  4  the job hung while records waited. Start it again\n",
)
@settings_options("stream")
@click.option("--available-now", is_flag=True, help="Process the present records of the stream, then end.")
@click.option(
    "--rebuild",
    is_flag=True,
    help="Discard the checkpoint and begin at the newest complete read in the stream.",
)
def stream(settings: Settings, *, check: bool, available_now: bool, rebuild: bool, stream: Layer) -> int:
    """Derive metadata, transitions, requests and alerts in a Spark job.

    It reads what `kontrast watch` forwarded, and goes on from its checkpoint when it is started again.
    """
    need_extra("job", "stream")
    config = stream_config(settings, stream)

    if check:
        return checks.check(checks.of_stream(config, partial(watched_into, settings)))

    reads = threading.Event()

    def run(stop: threading.Event) -> None:
        from streaming import job  # brings pyspark, which the other commands do without

        job.run(config, stop, available_now=available_now, rebuild=rebuild, started=reads.set)

    return run_until_stopped({"stream": run}, finish_within_seconds=_FINISH_SECONDS, ready={"stream": reads.is_set})
