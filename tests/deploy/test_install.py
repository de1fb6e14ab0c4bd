from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import zookeeper_client
from transport.toml_file import read_toml

SCRIPT = Path(__file__).parents[2] / "deploy" / "install.sh"


def project():
    return read_toml(SCRIPT.parents[1] / "pyproject.toml", most_bytes=2**20)


def needed_to_build():
    return project()["build-system"]["requires"]


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
    assert ended.stderr == "install: unknown argument --fast: there is none\n"


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
    assert f"hatchling=={pins['hatchling']}; python_version >= '3.10'" in needed_to_build()[0]
    script = SCRIPT.read_text(encoding="utf-8")
    assert script.index("-r requirements/tools.txt") < script.index('-r "requirements/$profile.txt"')


def test_no_package_is_built_with_tools_that_pip_fetches_by_itself():
    installs = re.findall(r"^ +pip_install (.+)$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(installs) == 3
    for arguments in installs:
        assert "--require-hashes" in arguments or "--no-deps" in arguments
        assert "--no-build-isolation" in arguments or "-r requirements/tools.txt" in arguments


def executable(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_a_long_installation_reports_what_it_has_got(checkout, tmp_path):
    executable(checkout / ".venv" / "bin" / "python", 'case "$*" in *"-m pip install"*) /bin/sleep 0.5 ;; esac')
    executable(tmp_path / "sleep", "/bin/sleep 0.1")
    (checkout / "requirements").mkdir()
    for file in ("requirements/tools.txt", "requirements/run.txt", "pyproject.toml"):
        (checkout / file).touch()
    ended = install(checkout, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"install: still installing after 20 s: \.venv has \d+ MB\n", ended.stderr)


def test_every_package_of_the_product_is_compiled():
    compiled = re.search(r"-m compileall -q (.+)$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert compiled is not None
    assert compiled[1].split() == project()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_a_python_that_is_too_old_can_read_which_one_is_needed():
    """Pip builds a source before it looks at requires-python, so an old Python needs a hatchling that it can run."""
    assert [requirement for requirement in needed_to_build() if "< '3.10'" in requirement]


@pytest.mark.nightly
def test_the_small_install_of_the_readme_needs_no_java(tmp_path, zookeeper):
    root = SCRIPT.parents[1]
    _, block = re.findall(r"```sh\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)[:2]
    tracked = subprocess.run(["git", "archive", "HEAD"], cwd=root, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", tmp_path], input=tracked.stdout, check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(shutil.which("python3", path="/usr/bin:/usr/local/bin"))
    with zookeeper_client(zookeeper.connect_string) as client:
        client.create("/controller_epoch", b"1")
    ended = subprocess.run(
        ["/bin/sh", "-e", "-c", block.replace("zk1:2181/kafka", zookeeper.connect_string)],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "cluster: " in ended.stdout, ended.stderr
    installed = {path.name.lower() for path in (tmp_path / ".venv").glob("lib/*/site-packages/*")}
    assert not any(name.startswith(("pyspark", "py4j")) for name in installed)
