"""Command lines that are refused, each with its exit code and its one sentence, in `refusals.txt`.

`REWRITE=1 pytest tests/cli/test_refusals.py` writes the current sentences. FILES stands for the options of a recorded
cluster's files, ZK for these files, and DIR for an empty directory.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from tests.kept_texts import assert_as_before
from tests.recorded_moment import MOMENT_MS

PAGE = Path(__file__).with_name("refusals.txt")
COMMANDS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(("$", "#"))]


@pytest.fixture
def refused(recorded_files: Path, tmp_path: Path):
    """Return a function that runs a command line, and returns its exit code and its sentence."""
    places = {
        "FILES": ["--zk-data", str(recorded_files), "--until", str(MOMENT_MS), "--cluster", "shop"],
        "ZK": [str(recorded_files)],
    }

    def run(line: str) -> str:
        arguments = [
            part.replace("DIR", str(tmp_path)) for word in shlex.split(line) for part in places.get(word, [word])
        ]
        done = CliRunner().invoke(main, arguments, prog_name="kontrast")
        assert done.stdout == "", line
        assert len(done.stderr.splitlines()) == 1, (line, done.stderr)
        return f"{done.exit_code}  {done.stderr}".replace(str(tmp_path), "DIR").replace(str(recorded_files), "ZK")

    return run


def test_each_mistake_is_one_sentence(refused, tmp_path):
    said = [
        f"{line}\n" if line.startswith("#") else f"{line}\n{refused(line.removeprefix('$ kontrast'))}"
        for line in COMMANDS
    ]
    assert_as_before("".join(said), PAGE)
    assert not list(tmp_path.iterdir())
