"""The unit file, which systemd accepts, which confines Kontrast, and which starts the real commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands.run.init import Needs
from cli.commands.run.up import _END_SECONDS, _SILENT_SECONDS
from dashboards.serving.connections import MOST_CONNECTIONS
from tests.programs import program

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "kontrast@.service"
COMMANDS = ("up", "watch", "stream", "serve")
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
(_DROP_IN,) = re.findall(r"```ini\n(.*?)```", GUIDE.read_text(encoding="utf-8").replace("\n   ", "\n"), re.DOTALL)
MOST_EXPOSED = 15  # tenths, of systemd's own figure from 0 to 10


def _setting(name: str) -> str:
    (value,) = [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]
    return value


def _analyze(tmp_path: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask systemd about a command's unit with the guide's drop-in, and with a program that exists here."""
    copy = tmp_path / f"kontrast@{command}.service"
    (tmp_path / f"{copy.name}.d").mkdir()
    (tmp_path / f"{copy.name}.d" / "memory.conf").write_text(_DROP_IN)
    copy.write_text(UNIT.read_text().replace(_setting("ExecStart").split()[0], sys.executable))
    analyze = [program("systemd-analyze"), *arguments, "--no-pager", copy]
    return subprocess.run(analyze, capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_systemd_finds_nothing_wrong(command, tmp_path):
    verified = _analyze(tmp_path, command, "verify", "--man=no", "--recursive-errors=no")
    about_it = [line for line in verified.stderr.splitlines() if "kontrast@" in line]
    assert (verified.returncode, about_it) == (0, []), verified.stderr


def test_it_is_shut_in(tmp_path):
    judged = _analyze(tmp_path, "up", "security", "--offline=true", f"--threshold={MOST_EXPOSED}")
    assert judged.returncode == 0, judged.stdout
    assert "Overall exposure level for kontrast@up.service" in judged.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_it_starts_a_command_that_there_is_and_waits_for_its_orderly_end(command):
    started, *arguments = _setting("ExecStart").replace("%i", command).split()
    assert started.endswith("/.venv/bin/kontrast")
    helped = subprocess.run([sys.executable, "-m", "cli", *arguments, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0, helped.stderr
    assert _setting("KillMode") == "mixed"


def test_its_times_are_those_of_kontrast_up():
    assert int(_setting("TimeoutStopSec")) > _END_SECONDS
    assert int(_setting("WatchdogSec")) == _SILENT_SECONDS


def test_what_it_writes_is_not_for_everybody():
    assert int(_setting("UMask"), 8) & 0o007 == 0o007
    assert _setting("StateDirectoryMode") == "0750"  # as the guide makes it


def test_its_limit_on_files_leaves_serve_all_its_connections():
    assert int(_setting("LimitNOFILE")) >= 2 * MOST_CONNECTIONS  # serve takes half of the limit


def test_the_drop_in_of_the_guide_has_the_limit_of_its_partitions():
    partitions, shown_mb = re.search(
        r"For ([\d,]+) partitions.*?MemoryMax=(\d+)M", GUIDE.read_text(), re.DOTALL
    ).groups()
    assert int(shown_mb) == Needs(int(partitions.replace(",", ""))).memory_limits_mb["up"]
