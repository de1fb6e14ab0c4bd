"""Commands that look at a cluster work without Spark, and the others name what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorded_moment import zk_data

# Runs before every other import of a Python, and hides the packages of an extra that is not installed.
_SITE = """
import sys
from importlib.machinery import PathFinder
HIDDEN = {hidden!r}
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else PathFinder.find_spec(name, path, target)
sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""
_OF_THE_JOB = ("pyspark", "py4j", "pandas", "numpy", "pyarrow", "grpc", "grpc_status", "google")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zk_data(tmp_path_factory.mktemp("recorded"))


def _kontrast(tmp_path: Path, hidden: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(_SITE.format(hidden=hidden))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "question",
    [("check",), ("explain", "controller"), ("lint",), ("whatif", "--each"), ("restartable", "--broker", "1")],
    ids=" ".join,
)
def test_a_question_needs_no_spark(tmp_path, recorded, question):
    answered = _kontrast(tmp_path, _OF_THE_JOB, *question, "--zk-data", str(recorded))
    assert answered.returncode in (0, 1), answered.stderr
    assert answered.stdout
    assert "Traceback" not in answered.stderr


@pytest.mark.parametrize(("command", "extra"), [("stream", "job"), ("up", "job"), ("demo", "job"), ("mcp", "mcp")])
def test_a_command_without_its_packages_names_the_extra(tmp_path, command, extra):
    ended = _kontrast(tmp_path, (*_OF_THE_JOB, "mcp"), command, *(("--zookeeper", "h:1") if command == "mcp" else ()))
    assert ended.returncode == 2
    assert f"pip install 'kontrast[{extra}]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
