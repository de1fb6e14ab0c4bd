"""A real Prometheus for tests and previews: over a target that it scrapes, or over data that was made before.

Here belong starting and stopping. Questions are `dashboards.preview.prometheus`'.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboards.preview.prometheus import Prometheus

_START_SECONDS = 60


class NoPrometheusError(Exception):
    """There is no Prometheus to run."""


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NoPrometheusError(f"{name} is not in PATH: `make install-dev` fetches it")
    return path


@contextmanager
def running_prometheus(directory: Path, config: str, *options: str) -> Iterator[Prometheus]:
    """A Prometheus with this configuration that keeps its data in `directory/data`, once it answers."""
    (directory / "prometheus.yml").write_text(config)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        _program("prometheus"),
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address={address}",
        *options,
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        prometheus = Prometheus(f"http://{address}")
        give_up_at = time.monotonic() + _START_SECONDS
        while not prometheus.is_ready():
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < give_up_at, "Prometheus does not become ready"
            time.sleep(0.05)
        yield prometheus
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


@contextmanager
def prometheus_over(directory: Path, lines: Iterable[str], scrape_seconds: int) -> Iterator[Prometheus]:
    """A Prometheus that knows these samples: OpenMetrics lines with times, scraped at this interval.

    Files have no marks where a series ended, so a sample counts for half the interval and no longer.
    """
    samples = directory / "samples.txt"
    with samples.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
        file.write("# EOF\n")
    data = directory / "data"
    data.mkdir()
    command = [_program("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(samples), str(data)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    lookback = f"--query.lookback-delta={scrape_seconds * 500}ms"
    with running_prometheus(directory, "global: {}\n", lookback, "--storage.tsdb.retention.time=100y") as prometheus:
        yield prometheus
