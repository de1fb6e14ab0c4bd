from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "install.sh"


@pytest.fixture
def checkout(tmp_path):
    """Make a checkout that has the script alone, in a path with a space."""
    root = tmp_path / "a checkout"
    (root / "deploy").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "deploy")
    return root


def install(checkout, *arguments, **environment):
    return subprocess.run(
        ["sh", checkout / "deploy" / "install.sh", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_unknown_argument_is_refused_by_name(checkout):
    ended = install(checkout, "--fast")
    assert ended.returncode == 1
    assert ended.stderr == "install: unknown argument --fast: the only one is --dev\n"


def test_a_python_that_cannot_be_used_is_refused_by_name_and_nothing_is_made(checkout):
    ended = install(checkout, PYTHON="false")
    assert ended.returncode == 1
    assert ended.stderr == "install: PYTHON is false, which is no Python 3.10 or newer: name another or unset it\n"
    assert not (checkout / ".venv").exists()


def test_a_machine_without_a_python_gets_the_command_that_installs_one(checkout, tmp_path):
    for tool in ("sh", "dirname", "env"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    ended = install(checkout, PATH=str(tmp_path), PYTHON="")
    assert ended.returncode == 1
    assert ended.stderr == "install: no Python 3.10 or newer in PATH: install one, or set PYTHON to it\n"


def test_all_that_builds_is_pinned_by_hash_and_installed_before_all_else():
    root = SCRIPT.parents[1]
    pinned = (root / "requirements" / "tools.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", pinned, re.MULTILINE))
    assert pins.keys() >= {"pip", "setuptools", "hatchling", "editables"}
    assert pinned.count("--hash=sha256:") >= len(pins)
    assert f'requires = ["hatchling=={pins["hatchling"]}"]' in (root / "pyproject.toml").read_text(encoding="utf-8")
    script = SCRIPT.read_text(encoding="utf-8")
    assert script.index("-r requirements/tools.txt") < script.index('-r "requirements/$profile.txt"')


def test_no_package_is_built_with_tools_that_pip_fetches_by_itself():
    installs = re.findall(r"^ +pip_install (.+)$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(installs) == 3
    for arguments in installs:
        assert "--require-hashes" in arguments or "--no-deps" in arguments
        assert "--no-build-isolation" in arguments or "-r requirements/tools.txt" in arguments
