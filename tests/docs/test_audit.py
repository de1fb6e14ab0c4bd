"""The audit of the pins, run as `make audit` runs it, against an index with the answers of a test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.scripts import script
from tests.http_server import HttpServer, say

ROOT = Path(__file__).parents[2]
JSON = "application/vnd.pypi.simple.v1+json"
PINNED = script("pins").hashes()


class PackageIndex:
    """An index without complaints about any pin, until a test changes it."""

    def __init__(self) -> None:
        self.files = {}  # by name
        self.vulnerabilities = {}  # by name and version. A pin that is missing here has no published one
        self.html_only = False
        for pin, hashes in PINNED.items():
            wheel = f"{pin.name.replace('-', '_')}-{pin.version}-py3-none-any.whl"
            files = [{"filename": wheel, "hashes": {"sha256": one}, "yanked": False} for one in sorted(hashes)]
            self.files.setdefault(pin.name, []).extend(files)
            self.vulnerabilities[pin] = []

    def page(self, path: str) -> tuple[int, str, bytes]:
        parts = path.strip("/").split("/")
        if self.html_only:
            return 200, "text/html", b"<!DOCTYPE html><a href='x'>x</a>"
        if parts[0] == "simple" and parts[1] in self.files:
            return 200, JSON, json.dumps({"name": parts[1], "files": self.files[parts[1]]}).encode()
        if parts[0] == "pypi" and (parts[1], parts[2]) in self.vulnerabilities:
            found = {"vulnerabilities": self.vulnerabilities[parts[1], parts[2]]}
            return 200, "application/json", json.dumps(found).encode()
        return 404, "text/plain", b"none"


@pytest.fixture
def index():
    served = PackageIndex()

    def answer(request):
        status, kind, body = served.page(request.path)
        say(status, body, **{"Content-Type": kind})(request)

    with HttpServer(answer) as server:
        served.url = f"http://{server.address}/simple"
        yield served


@pytest.fixture
def checkout(tmp_path):
    for folder in ("docs", "requirements"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def audit(checkout, url, *arguments):
    return subprocess.run(
        [sys.executable, checkout / "docs" / "audit.py", *arguments],
        env={**os.environ, "PIP_INDEX_URL": url, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def the_pin(name):
    return next(pin for pin in PINNED if pin.name == name)


def test_pins_of_which_nothing_is_known_pass_and_their_days_are_written(index, checkout):
    ended = audit(checkout, index.url, "--write-days")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"{len(PINNED)} of {len(PINNED)} pins were looked up" in ended.stdout
    rows = [
        line for line in (checkout / "docs" / "reference" / "pins.md").read_text().splitlines() if line.startswith("| ")
    ][2:]
    assert len(rows) == len(PINNED)
    assert not [row for row in rows if "never" in row]


def test_a_yanked_pin_fails_and_no_day_is_written(index, checkout):
    for file in index.files["httpx"]:
        file["yanked"] = "breaks redirects"
    page = (checkout / "docs" / "reference" / "pins.md").read_bytes()
    ended = audit(checkout, index.url, "--write-days")
    assert ended.returncode == 1
    pin = "==".join(the_pin("httpx"))
    assert f"audit: {pin} was yanked (breaks redirects): give pyproject.toml" in ended.stdout
    assert (checkout / "docs" / "reference" / "pins.md").read_bytes() == page


def test_a_vulnerable_pin_fails_unless_the_advisory_was_withdrawn(index, checkout):
    pin = the_pin("starlette")
    index.vulnerabilities[pin] = [
        {"id": "PYSEC-1", "fixed_in": ["99.1"], "withdrawn": None},
        {"id": "PYSEC-2", "fixed_in": [], "withdrawn": "2026-01-01T00:00:00Z"},
    ]
    ended = audit(checkout, index.url)
    assert ended.returncode == 1
    assert f"{'=='.join(pin)} has PYSEC-1, fixed in 99.1: " in ended.stdout
    assert "PYSEC-2" not in ended.stdout


@pytest.mark.parametrize("what", ["project", "release"])
def test_a_pin_that_the_index_no_longer_has_fails(index, checkout, what):
    if what == "project":
        del index.files["six"]
    else:
        index.files["six"] = [{"filename": "six-0.1.tar.gz", "hashes": {"sha256": "00"}, "yanked": False}]
    ended = audit(checkout, index.url)
    assert ended.returncode == 1
    assert f"{'=='.join(the_pin('six'))} is no longer in the index" in ended.stdout


def test_an_index_without_vulnerabilities_is_said_and_their_day_stays(index, checkout):
    index.vulnerabilities.clear()
    ended = audit(checkout, index.url, "--write-days")
    assert ended.returncode == 0
    assert "the index publishes no vulnerabilities: none was looked up" in ended.stdout
    kazoo = next(
        row
        for row in (checkout / "docs" / "reference" / "pins.md").read_text().splitlines()
        if row.startswith("| kazoo ")
    )
    assert kazoo.endswith(" | never |")
    assert not kazoo.endswith("| never | never |")


@pytest.mark.parametrize("trouble", ["out of reach", "html only"])
def test_an_index_that_gives_nothing_is_one_line_and_no_failure(index, checkout, trouble):
    index.html_only = trouble == "html only"
    ended = audit(checkout, index.url if index.html_only else "http://127.0.0.1:9/simple", "--write-days")
    assert ended.returncode == 0
    expected = "audit: pip's index cannot be reached or has no JSON (PEP 691): NO pin was audited\n"
    assert (ended.stdout, ended.stderr) == (expected, "")


def test_a_tool_that_is_not_the_newest_is_named(index, checkout):
    for version, python in (("999.1", ">=3.9"), ("999.2rc1", ">=3.9"), ("999.3", ">=3.99")):
        wheel = {"filename": f"pip-{version}-py3-none-any.whl", "hashes": {}, "requires-python": python}
        index.files["pip"].append(wheel)
    ended = audit(checkout, index.url)
    assert ended.returncode == 0
    assert f"audit: pip 999.1 is out and {the_pin('pip').version} is pinned: `make lock` takes it" in ended.stdout
