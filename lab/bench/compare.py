"""Run benchmarks on two checkouts in turn, in one run, and print their ratios: `make bench BASE=REV`.

A single figure depends on the machine and on its other work. Two checkouts that take turns meet the same machine, so
their ratio is meaningful, and its spread over the rounds shows its reliability. Each checkout runs its own benchmark,
because today's modules may call functions that an older checkout lacks. Figures are compared by their names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from lab.bench.figures import machine

ROOT: Final = Path(__file__).parents[2]
BENCHMARKS: Final = ("core", "questions", "streaming", "beside_controller", "page")
ROUNDS: Final = 3

Figures = dict[str, float]


def checked_out(revision: str) -> Path:
    """Make a work tree of this revision in build/."""
    commit = commit_of(revision)
    directory = ROOT / "build" / f"base-{commit}"
    if not directory.is_dir():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(directory), commit)
    return directory


def commit_of(revision: str) -> str:
    """Return the short name of a revision's commit."""
    return _git("rev-parse", "--short", f"{revision}^{{commit}}")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def run(benchmark: str, checkout: Path, options: Sequence[str]) -> Figures:
    """Return the figures of one benchmark on one checkout. Raise RuntimeError if the checkout cannot run it."""
    done = _of_benchmark(benchmark, checkout, "--json", *options)
    if done.returncode:
        raise RuntimeError(f"{benchmark} does not run on {checkout.name}: {done.stderr.strip() or done.returncode}")
    return dict(_flat(json.loads(done.stdout)))


def _of_benchmark(benchmark: str, checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    room = "lab" if (checkout / "lab").is_dir() else "tests"  # where older commits have their benchmarks
    command = [sys.executable, "-m", f"{room}.bench.{benchmark}", *words]
    path = {"PYTHONPATH": str(checkout)}  # before the installed code, in Spark's Python processes, too
    return subprocess.run(command, cwd=checkout, env={**os.environ, **path}, capture_output=True, text=True)


def understood(benchmark: str, checkout: Path, options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options, with their values, that this checkout's benchmark knows, and the names of the others."""
    known = set(re.findall(r"--[a-z-]+", _of_benchmark(benchmark, checkout, "--help").stdout))
    kept: list[str] = []
    unknown: list[str] = []
    keeps = True
    for word in options:
        if word.startswith("--"):
            keeps = word in known
            if not keeps:
                unknown.append(word)
        if keeps:
            kept.append(word)
    return kept, unknown


def _flat(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield figures with their whole names. If a name has several values, yield the first, which is the wall time."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}: ")
        elif isinstance(value, list):
            yield f"{prefix}{name}", value[0]
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value


def in_turn(benchmark: str, base: Path, rounds: int, options: Sequence[str]) -> list[tuple[Figures, Figures]]:
    """Return the figures of both checkouts, round by round. The order alternates."""
    of_base, _ = understood(benchmark, base, options)
    found: list[tuple[Figures, Figures]] = []
    for number in range(rounds):
        if number % 2:
            now = run(benchmark, ROOT, options)
            found.append((run(benchmark, base, of_base), now))
        else:
            then = run(benchmark, base, of_base)
            found.append((then, run(benchmark, ROOT, options)))
    return found


def table(benchmark: str, base: str, rounds: list[tuple[Figures, Figures]]) -> Table:
    """Return the medians, and the median, minimum and maximum of the rounds' ratios."""
    shown = Table(title=f"{benchmark}, {len(rounds)} rounds in turn", title_justify="left")
    for heading in ("", base, "now", f"{base} / now", "spread"):
        shown.add_column(heading, justify="right" if heading else "left")
    for name in rounds[0][0]:
        pairs = [(then[name], now[name]) for then, now in rounds if name in then and name in now]
        ratios = [then / now for then, now in pairs if now]
        if not ratios:
            continue
        medians = [
            f"{median(side):,.3g}" if median(side) < 1_000 else f"{median(side):,.0f}"
            for side in zip(*pairs, strict=True)
        ]
        shown.add_row(name, *medians, f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}")
    return shown


def main() -> None:
    """Compare, and print a table a benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Other options go to the benchmarks.")
    parser.add_argument("base", help="the revision to compare with")
    parser.add_argument("--benchmark", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--partitions", default="200000", metavar="N")
    asked, of_benchmarks = parser.parse_known_args()
    base = checked_out(asked.base)
    screen = Console(width=140)
    screen.print(machine())
    options = ["--partitions", asked.partitions, *of_benchmarks]
    for benchmark in asked.benchmark:
        if unknown := understood(benchmark, base, options)[1]:
            screen.print(
                f"{benchmark} of {asked.base} has no {', '.join(unknown)}, so the two may measure other things"
            )
        try:
            rounds = in_turn(benchmark, base, asked.rounds, options)
        except RuntimeError as error:
            screen.print(str(error))
            continue
        screen.print(table(" ".join((benchmark, *options[2:])), asked.base, rounds))


if __name__ == "__main__":
    main()
