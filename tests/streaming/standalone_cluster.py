"""A real Spark cluster on loopback, of pyspark's own programs, with a master, its workers, and submitted jobs.

The needs of several tests belong here. The code is shipped as an archive, as on machines without this checkout.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyspark

from lab.release import dist
from tests.processes import command_line_of, descendants
from tests.streaming.cluster_records import Streams
from tests.waiting import eventually

_SPARK = Path(pyspark.__file__).parent
_DRIVER_HOST = "spark.driver.host=127.0.0.1"
_PORTS = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


def environment(directory: Path) -> dict[str, str]:
    """Return an environment without a path to this checkout, so that the code must come with the job."""
    python = directory / "python"
    if not python.exists():
        # Without the .pth files that an installation for development leaves beside the packages.
        packages = f"{_SPARK.parent}${{PYTHONPATH:+:$PYTHONPATH}}"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short lives, so compile quickly, not well
        **kept,
        "SPARK_HOME": str(_SPARK),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(directory / "work"),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


class Daemon:
    """A master or a worker with all processes that it starts."""

    def __init__(self, directory: Path, kind: str, name: str, *arguments: str) -> None:
        self.log = directory / f"{name}.log"
        program = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        with self.log.open("wb") as written:
            self._process = subprocess.Popen(
                [str(_SPARK / "bin" / "spark-class"), program, *_PORTS, *arguments],
                cwd=directory,
                env=environment(directory),
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return its process id. Its executors are its children."""
        return self._process.pid

    def kill(self) -> None:
        """End it and its executors at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def said(self, pattern: str) -> list[str]:
        """Return the matches of the pattern in its log."""
        return re.findall(pattern, self.log.read_text(errors="replace"))


class SparkCluster:
    """A master and workers with these cores each. The end of the `with` stops them."""

    def __init__(self, directory: Path, *, workers: int = 1, cores: int = 2, memory: str = "1g") -> None:
        self.workers: list[Daemon] = []
        self._master = Daemon(directory, "Master", "Master")
        try:
            self.master = eventually(lambda: self._master.said(r"spark://127\.0\.0\.1:[1-9][0-9]*"))[0]
            options = ("--cores", str(cores), "--memory", memory, self.master)
            self.workers = [Daemon(directory, "Worker", f"Worker-{number}", *options) for number in range(workers)]
            eventually(lambda: len(self._master.said("Registering worker")) == workers)
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Return the workers and the master."""
        return (*self.workers, self._master)

    def workers_with_tasks(self) -> list[Daemon]:
        """Return the workers below which Python runs tasks."""
        return [
            each for each in self.workers if any("pyspark" in command_line_of(pid) for pid in descendants(each.pid))
        ]

    def kill(self) -> None:
        """Kill all daemons at once."""
        for daemon in self.daemons:
            daemon.kill()


def submit_command(master: str, code: Path, settings: Iterable[str]) -> list[str]:
    """Return the command of spark-submit with the code's archive, but for the program and its options."""
    command = [str(_SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(code)]
    return command + [part for each in (_DRIVER_HOST, *settings) for part in ("--conf", each)]


# A defect at the beginning of the job's program. No known input causes one.
DEFECT = "import streaming.job\nstreaming.job.run = lambda *_, **__: 1 / 0\n"


class Submitted:
    """The artifacts of `make dist`, for spark-submit with the streams of a job."""

    def __init__(self, directory: Path, streams: Streams) -> None:
        self._directory = directory
        self._code, self.program, _jars = dist.make(directory / "dist")
        addresses = ("--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}")
        self._options = ("--checkpoint", str(streams.checkpoint), *addresses)
        self.log = directory / "submit.log"

    def start(self, master: str, *options: str, conf: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start spark-submit in a group of its own."""
        settings = ("spark.executor.memory=512m", *conf)
        command = [*submit_command(master, self._code, settings), str(self.program), *self._options, *options]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command,
                cwd=self._directory,
                env=environment(self._directory),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
