"""The audit of the pins, run as `make audit` runs it, against an index with the answers of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.release import audit as auditing
from tests.http_server import HttpServer, say

ROOT = Path(__file__).parents[2]
JSON = "application/vnd.pypi.simple.v1+json"
PINNED = auditing.hashes()


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


def audit(url):
    return subprocess.run(
        [sys.executable, ROOT / "lab" / "release" / "audit.py"],
        env={**os.environ, "PIP_INDEX_URL": url, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def the_pin(name):
    return next(pin for pin in PINNED if pin.name == name)


def named(name):
    return "==".join(the_pin(name))


def test_pins_of_which_nothing_is_known_pass_and_an_old_tool_is_named(index):
    for version, python in (("999.1", ">=3.9"), ("999.2rc1", ">=3.9"), ("999.3", ">=3.99")):
        wheel = {"filename": f"pip-{version}-py3-none-any.whl", "hashes": {}, "requires-python": python}
        index.files["pip"].append(wheel)
    index.vulnerabilities.clear()
    ended = audit(index.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"{len(PINNED)} of {len(PINNED)} pins were looked up" in ended.stdout
    assert "the index publishes no vulnerabilities: none was looked up" in ended.stdout
    assert f"audit: pip 999.1 is out and {the_pin('pip').version} is pinned: `make lock` takes it" in ended.stdout


def test_a_pin_that_is_yanked_or_vulnerable_or_no_longer_in_the_index_fails(index):
    for file in index.files["httpx"]:
        file["yanked"] = "breaks redirects"
    index.vulnerabilities[the_pin("starlette")] = [
        {"id": "PYSEC-1", "fixed_in": ["99.1"], "withdrawn": None},
        {"id": "PYSEC-2", "fixed_in": [], "withdrawn": "2026-01-01T00:00:00Z"},
    ]
    del index.files["six"]
    index.files["kazoo"] = [{"filename": "kazoo-0.1.tar.gz", "hashes": {"sha256": "00"}, "yanked": False}]
    ended = audit(index.url)
    assert ended.returncode == 1
    assert f"audit: {named('httpx')} was yanked (breaks redirects): give pyproject.toml" in ended.stdout
    assert f"{named('starlette')} has PYSEC-1, fixed in 99.1: " in ended.stdout
    assert "PYSEC-2" not in ended.stdout
    for name in ("six", "kazoo"):
        assert f"{named(name)} is no longer in the index" in ended.stdout


@pytest.mark.parametrize("trouble", ["out of reach", "html only"])
def test_an_index_that_gives_nothing_is_one_line_and_no_failure(index, trouble):
    index.html_only = trouble == "html only"
    ended = audit(index.url if index.html_only else "http://127.0.0.1:9/simple")
    assert ended.returncode == 0
    expected = "audit: pip's index cannot be reached or has no JSON (PEP 691): NO pin was audited\n"
    assert (ended.stdout, ended.stderr) == (expected, "")
