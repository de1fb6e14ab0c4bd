"""Builder of a release in `dist/kontrast-VERSION/`, from the newest commit. Run it by `make release`.

The version and the changelog's section are written into an export of the commit, so the checkout does not change. Equal
commits give equal files, byte for byte.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]

_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_URL = re.compile(r"https://[\w.:/~-]+")
_UNRELEASED = re.compile(r"^## Unreleased\n\n(?P<changes>.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_WITH_VERSION = {"pyproject.toml": 'version = "{}"', "deploy/helm/kontrast/Chart.yaml": "ersion: {}"}
# Git forges show files and issues below the address of a repository.
_URLS = """
[project.urls]
Homepage = "{0}"
Documentation = "{0}/blob/HEAD/docs/index.md"
Source = "{0}"
Changelog = "{0}/blob/HEAD/CHANGELOG.md"
Issues = "{0}/issues"
"""
_UNIT = "deploy/systemd/kontrast@.service"
_CHART = "deploy/helm/kontrast"
_PINNED = ("requirements/run.txt", "requirements/mcp.txt", "requirements/kerberos.txt")
_PIN = re.compile(r"^([\w.-]+==\S+(?: ; .+?)?)(?: \\)?$", re.MULTILINE)
_STEPS = (
    ("lab/release/dist.py",),
    ("lab/release/bill_of_materials.py",),
    ("-m", "hatchling", "build", "--directory", "dist"),
)


def make(version: str, directory: Path, home_url: str = "") -> Iterable[Path]:
    """Make the release of the newest commit in this directory, which is emptied before. Raise CalledProcessError.

    The release's metadata names `home_url`, the public address of the repository, if one is given.
    """
    committed_seconds = int(_git("log", "-1", "--format=%ct"))
    with TemporaryDirectory() as scratch:
        export = Path(scratch)
        subprocess.run(["tar", "-xp"], cwd=export, input=_git("archive", "HEAD"), check=True)
        changes = _write_version(export, version, datetime.fromtimestamp(committed_seconds, timezone.utc))
        if home_url:
            with (export / "pyproject.toml").open("a", encoding="utf-8") as project:
                project.write(_URLS.format(home_url.rstrip("/")))
        for step in _STEPS:
            environment = {**os.environ, "SOURCE_DATE_EPOCH": str(committed_seconds), "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run([sys.executable, *step], cwd=export, env=environment, stdout=subprocess.PIPE, check=True)
        shutil.copy(export / _UNIT, export / "dist")
        _write_constraints(export)
        day = f"{datetime.fromtimestamp(committed_seconds, timezone.utc):%Y-%m-%d}"
        subprocess.run([sys.executable, "lab/release/man_pages.py", "man", version, day], cwd=export, check=True)
        dist = export / "dist"
        man_pages = {path: f"man1/{path.name}" for path in (export / "man").iterdir()}
        _pack(dist / f"kontrast-man-{version}.tgz", man_pages, committed_seconds)
        # Pack the chart as `helm package` would, with the files that its links point to.
        chart = {path: path.relative_to(export / _CHART) for path in _files_below(export / _CHART)}
        packed = {path: f"kontrast/{name}" for path, name in chart.items() if name.parts[0] != "tests"}
        _pack(dist / f"kontrast-chart-{version}.tgz", packed, committed_seconds)
        (export / "dist" / "CHANGES.md").write_text(changes, encoding="utf-8")
        made = sorted(path for path in (export / "dist").iterdir())
        sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
        (export / "dist" / "SHA256SUMS").write_text("".join(sums), encoding="ascii")
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(export / "dist", directory)
    return sorted(directory.iterdir())


def _write_version(export: Path, version: str, day: datetime) -> str:
    """Write the version into each file that has it and into the changelog. Return the changelog's section."""
    (current,) = re.findall(r'^version = "(.+)"$', (export / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    for name, place in _WITH_VERSION.items():
        text = (export / name).read_text(encoding="utf-8")
        (export / name).write_text(text.replace(place.format(current), place.format(version)), encoding="utf-8")
    changelog = export / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    section = _UNRELEASED.search(text)
    if section is None:
        raise SystemExit("CHANGELOG.md has nothing under Unreleased. Describe the release there first.")
    title = f"## {version} ({day:%Y-%m-%d})\n\n"
    changelog.write_text(_UNRELEASED.sub(lambda found: title + found["changes"], text), encoding="utf-8")
    return title + section["changes"]


def _write_constraints(export: Path) -> None:
    """Write the tested versions for `pip --constraint`, without the hashes, which pip takes in requirements alone."""
    pins = {pin for name in _PINNED for pin in _PIN.findall((export / name).read_text(encoding="utf-8"))}
    lines = "".join(f"{pin}\n" for pin in sorted(pins))
    (export / "dist" / "constraints.txt").write_text(lines, encoding="utf-8")


def _pack(archive: Path, files: Mapping[Path, str], seconds: int) -> None:
    """Pack the files under their names, with one time and owner for all, so that the archive is always the same."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.mode, member.uid, member.gid = seconds, 0o644, 0, 0
        member.uname = member.gname = ""
        return member

    with (
        archive.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", dereference=True) as tar,
    ):
        for path, name in sorted(files.items()):
            tar.add(path, name, filter=plain)


def _files_below(directory: Path) -> Iterable[Path]:
    for path in directory.iterdir():  # because rglob does not follow the link to the boards
        yield from _files_below(path) if path.is_dir() else (path,)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def main(version: str, home_url: str = "") -> None:
    """Make the release in `dist/`, from a checkout without changes."""
    if not _VERSION.fullmatch(version):
        raise SystemExit(f"{version} is no version. Give one like VERSION=1.0.0.")
    if not home_url:
        sys.stdout.write(
            "The metadata names no address. Give the repository's like HOME_URL=https://example.org/kontrast.\n"
        )
    elif not _URL.fullmatch(home_url):
        raise SystemExit(f"{home_url} is no address. Give one like HOME_URL=https://example.org/kontrast.")
    if _git("status", "--porcelain"):
        raise SystemExit("The checkout has changes. Commit them first: a release is made from the newest commit.")
    for made in make(version, ROOT / "dist" / f"kontrast-{version}", home_url):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
