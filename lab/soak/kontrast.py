"""Kontrast's processes in a soak, with their configuration, lives and files on disk.

The processes belong here. `operations` decides on their restarts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cli.embedded.process import ChildProcess, free_port
from lab.soak.clusters import CHANGES, REAL, SYNTHETIC, Clusters
from tests.conformance.recording import SETTINGS

WATCHERS = ("watch-1", "watch-2")
STREAM, SERVE = "stream", "serve"
PARTS = (*WATCHERS, STREAM, SERVE)
SESSION_SECONDS = 6.0
ROOT = Path(__file__).parents[2]
IN_EACH_PROCESS = Path(__file__).with_name("in_each_process")
_CONFIGURATION = """\
[watch]
to = "kafka://{kafka}/{changes}"
election_zookeeper = "{election}/election"
session_timeout_seconds = {session_seconds}
[clusters.{real}]
zookeeper = "{real_zookeeper}"
kafka_version = "3.9.2"
[clusters.{real}.broker_config]
{broker_config}
[clusters.{synthetic}]
zookeeper = "{synthetic_zookeeper}"
kafka_version = "3.9.2"
[stream]
from = "kafka://{kafka}/{changes}"
to = "journal:{outputs}"
checkpoint = "{checkpoint}"
[stream.output_retain_bytes]
{retention}
[serve]
from = "journal:{outputs}"
listen = "{serve}"
past_rows = {past_rows}
[serve.probe]
brokers = true
interval_seconds = 20
"""
# The past of two clusters takes 1.5 MB with it. With 2,000 rows it takes 15 MB, and the quiet cluster's was full only
# after 100 minutes, so that a bounded past looked like a leak.
PAST_ROWS = 200
RETAIN_BYTES = 128 * 1024 * 1024  # of each output
OUTPUTS = ("metadata", "transitions", "requests", "alerts", "gauges", "refused", "job")


class Kontrast:
    """`kontrast watch` twice, `stream` and `serve`, on one configuration file below a directory.

    `short` is a directory whose path is short enough for Spark's sockets. Each process has its own directory for
    temporary files there.
    """

    def __init__(self, directory: Path, short: Path, clusters: Clusters) -> None:
        self.outputs, self.checkpoint = directory / "outputs", directory / "checkpoint"
        self.configuration = directory / "kontrast.toml"
        self._short = short
        self.live_memory = directory / "live"  # a file for each Python process, by its number
        self.live_memory.mkdir(parents=True)
        self._clusters = clusters
        self.pages = {name: f"127.0.0.1:{free_port()}" for name in (*WATCHERS, SERVE)}
        self._write_configuration()
        self.parts: Mapping[str, ChildProcess] = {name: self._part(name, directory) for name in PARTS}

    def temporary_directory(self, name: str) -> Path:
        """Return the directory for temporary files of the process and its children."""
        return self._short / name

    def command(self, *arguments: str) -> list[str]:
        """Return a command of Kontrast with this configuration."""
        return [sys.executable, "-m", "cli", *arguments, "--config", str(self.configuration)]

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a process with this name."""
        temporary = self.temporary_directory(name)
        temporary.mkdir(exist_ok=True)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("KONTRAST_")}
        path = os.pathsep.join(map(str, (IN_EACH_PROCESS, ROOT)))
        own = {"TMPDIR": str(temporary), "PYTHONPATH": path, "SOAK_LIVE_MEMORY": str(self.live_memory)}
        # Java asks for no TMPDIR.
        java = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary}"} if name == STREAM else {}
        return {**inherited, **own, **java}

    def _part(self, name: str, directory: Path) -> ChildProcess:
        page = ("--metrics-listen", self.pages[name]) if name in WATCHERS else ()
        command = self.command(name.partition("-")[0], *page)
        return ChildProcess(name, command, directory / "logs" / f"{name}.log", environment=self.environment(name))

    def _write_configuration(self) -> None:
        clusters = self._clusters
        self.configuration.parent.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(
            _CONFIGURATION.format(
                kafka=clusters.stream_broker.bootstrap_server,
                changes=CHANGES,
                election=clusters.stream_zookeeper.connect_string,
                session_seconds=SESSION_SECONDS,
                real=REAL,
                real_zookeeper=clusters.address_of(REAL),
                broker_config="\n".join(f'"{name}" = "{_text(value)}"' for name, value in SETTINGS.items()),
                synthetic=SYNTHETIC,
                synthetic_zookeeper=clusters.address_of(SYNTHETIC),
                outputs=self.outputs,
                checkpoint=self.checkpoint,
                retention="\n".join(f'{output} = "{RETAIN_BYTES}"' for output in OUTPUTS),
                serve=self.pages[SERVE],
                past_rows=PAST_ROWS,
            )
        )

    def launch(self) -> None:
        """Start all."""
        for part in self.parts.values():
            part.launch()

    def stop(self) -> None:
        """End all processes cleanly."""
        for part in self.parts.values():
            part.ask_to_stop()
        for part in self.parts.values():
            part.stop(timeout_seconds=60)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
