"""Audit the pins of `requirements/*.txt` against the package index. `make audit` runs it.

A pinned file that was yanked or withdrawn, or that has a known vulnerability, is a failure. The index is the one of
pip's configuration. If it cannot be reached, or does not publish a fact, the audit prints that, but does not fail.
"""

from __future__ import annotations

import ast
import re
import ssl
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI  # pip's default index, which pip publishes nowhere else

_AT_ONCE = 16
_TIMEOUT_SECONDS = 8.0
_MOST_FAILURES = 3  # after so many failures the index counts as out of reach
_SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
_OLDEST_PYTHON = "3.10"
_TOOLS = ("pip", "setuptools")
_REQUIREMENTS = Path(__file__).parents[2] / "requirements"
_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)[^\n]*(?P<hashes>(?:\n +--hash=[^\n]+)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_MEND = "give pyproject.toml or requirements/tools.in another bound, then `make lock`"


class Pin(NamedTuple):
    """A package at one version."""

    name: str
    version: str


class NotOfferedError(Exception):
    """The index does not have the page, or does not answer now."""


class UnknownError(NotOfferedError):
    """The index has no such page."""


class Answer(NamedTuple):
    """The index's facts about a pin. None means that the index did not tell them."""

    files: Sequence[Mapping[str, Any]] | None
    vulnerabilities: Sequence[Mapping[str, Any]] | None


class Index:
    """The package index that pip installs from."""

    def __init__(self) -> None:
        settings = _pip_settings()
        self._pages = (settings.get("index-url") or PyPI.simple_url).rstrip("/")
        certificates = settings.get("cert")
        self._failures = 0
        self._client = httpx.Client(
            follow_redirects=True,
            timeout=_TIMEOUT_SECONDS,
            limits=httpx.Limits(max_connections=_AT_ONCE),
            verify=ssl.create_default_context(cafile=certificates) if certificates else True,
            proxy=settings.get("proxy"),
        )

    def answer(self, pin: Pin) -> Answer:
        """Return the index's answer about a pin."""
        return Answer(self._files(pin), self._vulnerabilities(pin))

    def _files(self, pin: Pin) -> Sequence[Mapping[str, Any]] | None:
        try:
            return list(self._get(f"{self._pages}/{pin.name}/").get("files", []))
        except UnknownError:  # a removed project also has no page, perhaps because it was malicious
            return []
        except NotOfferedError:
            return None

    def _vulnerabilities(self, pin: Pin) -> Sequence[Mapping[str, Any]] | None:
        try:
            said = self._get(f"{self._pages.removesuffix('/simple')}/pypi/{pin.name}/{pin.version}/json")
        except NotOfferedError:
            return None
        return said.get("vulnerabilities")

    def _get(self, url: str) -> dict[str, Any]:
        if self._failures >= _MOST_FAILURES:
            raise NotOfferedError
        try:
            response = self._client.get(url, headers={"Accept": f"{_SIMPLE_JSON}, application/json;q=0.5"})
            if response.status_code == httpx.codes.NOT_FOUND:
                raise UnknownError
            said = response.raise_for_status().json()
        except httpx.TransportError as error:
            self._failures += 1
            raise NotOfferedError from error
        except (httpx.HTTPError, ValueError) as error:
            raise NotOfferedError from error
        if not isinstance(said, dict):
            raise NotOfferedError
        return said


def _pip_settings() -> dict[str, str]:
    """Return the settings of `pip install` by name. A later source replaces an earlier one."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                settings[name.removeprefix(f"{section}.")] = ast.literal_eval(value)
    return settings


def hashes() -> dict[Pin, frozenset[str]]:
    """Return the SHA-256 digests of the files that each pin may be installed from."""
    found: dict[Pin, frozenset[str]] = {}
    for file in sorted(_REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = found.get(pin, frozenset()) | set(_HASH.findall(match["hashes"]))
    return found


def problems(pin: Pin, pinned: frozenset[str], answer: Answer) -> list[str]:
    """Return the faults of a pin according to the index."""
    found = []
    name = "==".join(pin)
    if answer.files is not None:
        files = [file for file in answer.files if file.get("hashes", {}).get("sha256") in pinned]
        if not files:
            found.append(f"{name} is no longer in the index: {_MEND}")
        for reason in sorted({str(file["yanked"]) for file in files if file.get("yanked")}):
            found.append(f"{name} was yanked ({reason}): {_MEND}")
    for vulnerability in answer.vulnerabilities or ():
        if not vulnerability.get("withdrawn"):
            mended = ", ".join(vulnerability.get("fixed_in") or ()) or "no release yet"
            found.append(f"{name} has {vulnerability.get('id')}, fixed in {mended}: {_MEND}")
    return found


def outdated(pin: Pin, answer: Answer) -> str | None:
    """Return the reason why a tool of the environment is not current, None if it is."""
    newest = max(filter(None, map(_release, answer.files or ())), default=Version(pin.version))
    if newest > Version(pin.version):
        return f"{pin.name} {newest} is out and {pin.version} is pinned: `make lock` takes it"
    if installed_version(pin.name) != pin.version:
        return f"{pin.name} {installed_version(pin.name)} is installed and {pin.version} is pinned: make install-dev"
    return None


def _release(file: Mapping[str, Any]) -> Version | None:
    """Return the version of a wheel, None for a pre-release or a wheel that the oldest Python cannot install."""
    try:
        version = parse_wheel_filename(str(file["filename"]))[1]
    except InvalidWheelFilename:
        return None
    suits = _OLDEST_PYTHON in SpecifierSet(file.get("requires-python") or "")
    return version if suits and not version.is_prerelease and not file.get("yanked") else None


def main() -> int:
    """Print faults, and how many pins were audited. Return 1 if a pin has a fault."""
    pinned, index = hashes(), Index()
    with ThreadPoolExecutor(_AT_ONCE) as together:
        answers = dict(zip(pinned, together.map(index.answer, pinned), strict=True))
    if not any(answer.files for answer in answers.values()):
        _say("pip's index cannot be reached or has no JSON (PEP 691): NO pin was audited")
        return 0
    wrong = [problem for pin, answer in answers.items() for problem in problems(pin, pinned[pin], answer)]
    for line in (*wrong, *_unsaid(answers), *_old_tools(answers)):
        _say(line)
    return 1 if wrong else 0


def _say(line: str) -> None:
    sys.stdout.write(f"audit: {line}\n")


def _unsaid(answers: Mapping[Pin, Answer]) -> Iterable[str]:
    without_files = [pin.name for pin, answer in answers.items() if answer.files is None]
    without_vulnerabilities = [pin.name for pin, answer in answers.items() if answer.vulnerabilities is None]
    yield f"{len(answers) - len(without_files)} of {len(answers)} pins were looked up in the index"
    if without_files:
        yield f"the index did not answer for {', '.join(without_files)}: not audited"
    if len(without_vulnerabilities) == len(answers):
        yield "the index publishes no vulnerabilities: none was looked up"
    elif without_vulnerabilities:
        yield f"vulnerabilities of {', '.join(without_vulnerabilities)} were not looked up: the index has none of them"


def _old_tools(answers: Mapping[Pin, Answer]) -> Iterable[str]:
    for pin, answer in answers.items():
        if pin.name in _TOOLS and (why := outdated(pin, answer)):
            yield why


if __name__ == "__main__":
    sys.exit(main())
