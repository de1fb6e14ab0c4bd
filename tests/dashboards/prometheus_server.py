"""A real Prometheus for tests, over a target that it scrapes or over prepared data.

Starting and stopping belong here. `tests.prometheus` asks the questions.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.embedded.process import ChildProcess, free_port
from tests.programs import program
from tests.prometheus import Prometheus

_START_SECONDS = 60


@contextmanager
def running_prometheus(directory: Path, config: str, *options: str) -> Iterator[Prometheus]:
    """Run a Prometheus with this configuration and its data in `directory/data`. Yield it once it answers."""
    (directory / "prometheus.yml").write_text(config)
    address = f"127.0.0.1:{free_port()}"
    command = [
        program("prometheus"),
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address={address}",
        *options,
    ]
    process = ChildProcess("Prometheus", command, directory / "prometheus.log")
    prometheus = Prometheus(f"http://{address}")
    try:
        process.launch()
        process.wait_until(prometheus.is_ready, timeout_seconds=_START_SECONDS)
        yield prometheus
    finally:
        process.stop()


@contextmanager
def prometheus_over(directory: Path, lines: Iterable[str], scrape_seconds: int) -> Iterator[Prometheus]:
    """Run a Prometheus over these samples, which are OpenMetrics lines with times, scraped at this interval.

    Files do not mark the end of a series, so a sample counts for half the interval and no longer.
    """
    samples = directory / "samples.txt"
    with samples.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
        file.write("# EOF\n")
    data = directory / "data"
    data.mkdir()
    command = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(samples), str(data)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    lookback = f"--query.lookback-delta={scrape_seconds * 500}ms"
    with running_prometheus(directory, "global: {}\n", lookback, "--storage.tsdb.retention.time=100y") as prometheus:
        yield prometheus
