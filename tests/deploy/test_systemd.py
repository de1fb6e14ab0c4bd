"""The unit files are what systemd accepts, and start the command as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import program

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))


def _setting(unit: Path, name: str) -> str:
    (value,) = [line.partition("=")[2] for line in unit.read_text().splitlines() if line.startswith(f"{name}=")]
    return value


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit, tmp_path):
    # The program is looked for where the unit says; here it is one that exists.
    started = _setting(unit, "ExecStart").split()[0]
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(started, sys.executable))
    command = [program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", copy]
    verified = subprocess.run(command, capture_output=True, text=True)
    about_it = [line for line in verified.stderr.splitlines() if unit.name in line]
    assert (verified.returncode, about_it) == (0, []), verified.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_it_starts_a_command_that_there_is_and_waits_for_its_orderly_end(unit):
    started, *arguments = _setting(unit, "ExecStart").split()
    assert started.endswith("/.venv/bin/kontrast")
    helped = subprocess.run([sys.executable, "-m", "cli", *arguments, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0, helped.stderr
    assert _setting(unit, "KillMode") == "mixed"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_it_writes_is_not_for_everybody(unit):
    assert int(_setting(unit, "UMask"), 8) & 0o007 == 0o007
