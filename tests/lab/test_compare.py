"""Comparison of two checkouts, each of which runs its own benchmark."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rich.console import Console

from lab.bench.compare import ROOT, table

# A commit whose modules differ from today's, so that today's benchmark cannot run on them.
OLDER = "cb0104dd"


def has_history() -> bool:
    found = subprocess.run(["git", "cat-file", "-e", f"{OLDER}^{{commit}}"], cwd=ROOT, capture_output=True, check=False)
    return found.returncode == 0


@pytest.mark.nightly
@pytest.mark.skipif(not has_history(), reason=f"this clone has no history back to {OLDER}")
def test_an_older_checkout_runs_its_own_benchmark():
    options = ["--benchmark", "core", "--rounds", "1", "--partitions", "500", "--no-takeovers"]
    done = subprocess.run(
        [sys.executable, "-m", "lab.bench.compare", OLDER, *options], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{OLDER} / now" in done.stdout
    assert "500: stored, a partition" in done.stdout


def test_figures_meet_by_name_although_their_order_and_number_differ():
    rounds = [({"gone": 1.0, "slow": 4.0, "equal": 3.0}, {"new": 9.0, "equal": 3.0, "slow": 2.0})] * 2
    screen = Console(width=100, record=True)
    screen.print(table("core", "old", rounds))
    shown = [line.strip("│ ").split(" │ ") for line in screen.export_text().splitlines() if line.startswith("│")]
    found = [[cell.strip() for cell in line] for line in shown]
    assert found == [["slow", "4", "2", "2.00", "2.00 to 2.00"], ["equal", "3", "3", "1.00", "1.00 to 1.00"]]
