"""Run everything for hours under random operations, and measure whether anything grows: `make soak HOURS=1`.

The command line and the course of a soak belong here. Processes, operations, measurements and the verdict have a file
each.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from lab.record.steps import Steps
from lab.soak import report
from lab.soak.clusters import REAL, SYNTHETIC, Clusters
from lab.soak.kontrast import SERVE, Kontrast
from lab.soak.measurements import Meter
from lab.soak.operations import Operations
from lab.soak.truth import Truth
from lab.soak.verdict import judge
from lab.soak.visitors import Visitor
from tests.dashboards.prometheus_server import running_prometheus
from tests.prometheus import Prometheus

_ACT_SECONDS = 35
_RESTARTS_SHARE = 0.35  # share of the time in which processes are restarted. Afterwards most live to the end
_VISITORS = 2
# Share of the real controller's writes that must be explained, as in recordings of random actions.
_LEAST_AGREEMENT = 0.98
_PROMETHEUS = """\
global: {{scrape_interval: 5s}}
scrape_configs:
- job_name: kontrast
  static_configs: [{{targets: [{targets}]}}]
"""


class Soak:
    """One soak, in a directory that keeps its result."""

    def __init__(self, options: argparse.Namespace, scratch: Path, short: Path) -> None:
        self._options = options
        self._out: Path = options.out
        self._began = time.monotonic()
        self._seconds = options.hours * 3600
        self._steps = Steps(self._out / "steps.jsonl")
        self._clusters = Clusters(scratch, options.seed, options.partitions)
        self._scratch = scratch
        self._short = short
        self._violations: list[str] = []
        self._rounds = self._equal = 0
        self._lives_are_long = False

    def run(self) -> list[str]:
        """Start, act and measure until the time is over, and end. Return the violations."""
        with ExitStack() as ending:
            ending.enter_context(self._clusters)
            kontrast = Kontrast(self._out, self._short, self._clusters)
            ending.callback(kontrast.stop)
            kontrast.launch()
            prometheus = ending.enter_context(self._prometheus(kontrast))
            visitors = [Visitor(kontrast.pages[SERVE], self._options.seed + n) for n in range(_VISITORS)]
            for visitor in visitors:
                ending.callback(visitor.close)
            operations = Operations(self._options.seed, self._clusters, kontrast, self._steps)
            meter = Meter(kontrast, self._out / "samples.jsonl")
            truth = Truth(kontrast)
            while self._at() < self._seconds:
                self._round(operations, meter, truth, visitors)
            self._ask_prometheus(prometheus, kontrast)
        judged = judge(meter.samples)
        self._violations += [each.sentence() for each in judged if each.grew]
        self._violations += self._tracebacks()
        report.write(self._out, self._head(visitors), meter.samples, judged, self._violations)
        return self._violations

    def _round(self, operations: Operations, meter: Meter, truth: Truth, visitors: list[Visitor]) -> None:
        if not self._lives_are_long and self._at() > _RESTARTS_SHARE * self._seconds:
            operations.let_live()
            self._lives_are_long = True
        operations.run(_ACT_SECONDS)
        operations.settle()
        operations.watch_processes()
        self._rounds += 1
        found = [f"{cluster}: {each}" for cluster in (REAL, SYNTHETIC) for each in truth.differences(cluster)]
        self._equal += not found
        samples = meter.take()
        gauges = truth.gauges(REAL)
        agreement = None if gauges is None else gauges.agreement
        if agreement is not None and agreement < _LEAST_AGREEMENT:
            found.append(f"agreement is {agreement:.4f}, less than {_LEAST_AGREEMENT}: {gauges and gauges.writes}")
        found += operations.violations + [error for visitor in visitors for error in visitor.errors]
        operations.violations.clear()
        for visitor in visitors:
            visitor.errors.clear()
        at = f"minute {self._at() / 60:.1f}"
        self._violations += [f"{at}: {each}" for each in found]
        memory = ", ".join(
            f"{each.subject} {each.values['rss_bytes'] >> 20} MB" for each in samples if "rss_bytes" in each.values
        )
        state = "metadata equals ZooKeeper" if not found else f"{len(found)} violations: {found[0]:.300}"
        agreed = "no write yet" if agreement is None else f"agreement {100 * agreement:.2f} %"
        print(f"{at}: {state}, {agreed}, {memory}", flush=True)

    @contextmanager
    def _prometheus(self, kontrast: Kontrast) -> Iterator[Prometheus]:
        directory = self._scratch / "prometheus"
        directory.mkdir()
        targets = ", ".join(f'"{address}"' for address in kontrast.pages.values())
        with running_prometheus(directory, _PROMETHEUS.format(targets=targets)) as running:
            yield running

    def _ask_prometheus(self, prometheus: Prometheus, kontrast: Kontrast) -> None:
        """Check that every page is scraped at the end, and that each scrape was whole."""
        pages = prometheus.query("up")
        down = [page.labels["instance"] for page in pages if not page.value]
        self._violations += [f"Prometheus cannot scrape {instance} at the end" for instance in down]
        if len(pages) != len(kontrast.pages):
            self._violations.append("Prometheus does not know every page")

    def _tracebacks(self) -> list[str]:
        logs = sorted((self._out / "logs").glob("*.log"))
        return [f"{log.name} has a traceback" for log in logs if "Traceback" in log.read_text(errors="replace")]

    def _head(self, visitors: list[Visitor]) -> list[str]:
        steps = sum(1 for _ in (self._out / "steps.jsonl").open())
        answers = {
            status: sum(visitor.answers[status] for visitor in visitors)
            for status in sorted({s for v in visitors for s in v.answers})
        }
        memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        return [
            f"`make soak HOURS={self._options.hours:g} SEED={self._options.seed}`, ended "
            f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC after {self._at() / 60:.0f} minutes, on "
            f"{os.cpu_count()} cores, {memory_gb:.0f} GB, Python {platform.python_version()}.",
            "",
            f"{steps} steps in {self._rounds} rounds; after {self._equal} of them metadata equalled ZooKeeper. "
            f"Visitors' answers by status: {answers}.",
        ]

    def _at(self) -> float:
        return time.monotonic() - self._began


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="how long, like 0.1 or 24")
    parser.add_argument("--seed", type=int, default=1, help="chooses the operations")
    parser.add_argument("--partitions", type=int, default=10_000, help="of the made-up cluster")
    parser.add_argument("--out", type=Path, metavar="DIR", help="for the result; it must be new")
    options = parser.parse_args()
    if options.hours <= 0 or options.partitions <= 0:
        parser.error("--hours and --partitions must be above 0")
    options.out = (
        options.out or Path("build", f"soak-seed{options.seed}-{datetime.now(timezone.utc):%m%d-%H%M%S}")
    ).absolute()
    options.out.mkdir(parents=True)
    return options


def main() -> int:
    """Run a soak. Return 1 after a violation, each printed as a sentence."""
    options = read_options()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # its servers come and go on purpose
    print(f"result in {options.out}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="soak-servers-") as scratch,
        tempfile.TemporaryDirectory(prefix="ks-", dir="/tmp") as short,
    ):
        violations = Soak(options, Path(scratch), Path(short)).run()
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations" if violations else "passed: no violation")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
