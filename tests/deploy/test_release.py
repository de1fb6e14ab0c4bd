"""A release is the same, byte for byte, however often it is made, and its wheel needs no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from lab.release import release
from tests.programs import program

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1200)]

VERSION = "7.0.1"
HOME_URL = "https://git.example/kafka/kontrast/"


@pytest.fixture(scope="module")
def released(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make a release of the newest commit. Return its files by name."""
    made = release.make(VERSION, tmp_path_factory.mktemp("release"), HOME_URL)
    return {path.name: path for path in made}


def test_a_release_has_everything_that_people_receive(released):
    wheel, source = f"kontrast-{VERSION}-py3-none-any.whl", f"kontrast-{VERSION}.tar.gz"
    for_spark = {"kontrast.zip", "kontrast-stream.py", "jars.txt"}
    around = {"constraints.txt", f"kontrast-chart-{VERSION}.tgz", f"kontrast-man-{VERSION}.tgz", "kontrast@.service"}
    about = {"kontrast.cdx.json", "NOTICE", "CHANGES.md", "SHA256SUMS"}
    assert released.keys() == {wheel, source, *for_spark, *around, *about}
    sums = dict(reversed(line.split("  ")) for line in released["SHA256SUMS"].read_text().splitlines())
    files = {name: path for name, path in released.items() if name != "SHA256SUMS"}
    assert sums == {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    changes = released["CHANGES.md"].read_text()
    assert re.match(rf"## {VERSION} \(\d{{4}}-\d\d-\d\d\)\n\n### ", changes)
    with tarfile.open(released[source]) as archive:
        of_source = {name: archive.extractfile(f"kontrast-{VERSION}/{name}") for name in _WITH_VERSION}
        for name, place in _WITH_VERSION.items():
            assert place in of_source[name].read().decode(), name
    assert f'"version": "{VERSION}"' in released["kontrast.cdx.json"].read_text()


_WITH_VERSION = {
    "pyproject.toml": f'version = "{VERSION}"',
    "deploy/helm/kontrast/Chart.yaml": f"appVersion: {VERSION}",
    "CHANGELOG.md": f"## {VERSION} (",
}


def test_the_same_commit_gives_the_same_bytes(released, tmp_path):
    umask = os.umask(0o077)
    try:
        again = release.make(VERSION, tmp_path, HOME_URL)
    finally:
        os.umask(umask)
    assert {path.name: path.read_bytes() for path in again} == {
        name: path.read_bytes() for name, path in released.items()
    }


def test_the_chart_is_one_that_helm_installs_with_its_rules_and_boards(released):
    archive = released[f"kontrast-chart-{VERSION}.tgz"]
    values = "--set=prometheusRules.enabled=true,boards.enabled=true"
    made = subprocess.run(
        [program("helm"), "template", "prod", archive, "--kube-version=1.30", values], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert f'image: "kontrast:{VERSION}"' in made.stdout
    assert made.stdout.count("kind: PrometheusRule") == 2
    assert made.stdout.count("-board\n") == len(list(release.ROOT.glob("deploy/helm/kontrast/boards/*.json")))


def test_each_command_has_a_man_page_with_its_exit_codes(released):
    with tarfile.open(released[f"kontrast-man-{VERSION}.tgz"]) as archive:
        pages = {name: archive.extractfile(name).read().decode() for name in archive.getnames()}
    assert {"man1/kontrast.1", "man1/kontrast-check.1", "man1/kontrast-migration-check.1"} <= pages.keys()
    assert f'"{VERSION}"' in pages["man1/kontrast-check.1"].splitlines()[0]
    assert "\\&  0  every cluster is well, perhaps with notes" in pages["man1/kontrast-check.1"]


def test_the_constraints_are_the_versions_that_are_tested(released):
    constraints = set(released["constraints.txt"].read_text().splitlines())
    for name in ("run", "mcp", "kerberos"):
        pins = (release.ROOT / "requirements" / f"{name}.txt").read_text()
        assert {line.removesuffix(" \\") for line in pins.splitlines() if re.match(r"[\w.-]+==", line)} <= constraints


def test_the_metadata_names_every_address(released):
    home = HOME_URL.rstrip("/")
    with zipfile.ZipFile(released[f"kontrast-{VERSION}-py3-none-any.whl"]) as wheel:
        metadata = wheel.read(f"kontrast-{VERSION}.dist-info/METADATA").decode()
    urls = dict(line.split(", ") for line in re.findall(r"^Project-URL: (.+)$", metadata, re.MULTILINE))
    files = {name: urls[name].removeprefix(f"{home}/blob/HEAD/") for name in ("Documentation", "Changelog")}
    assert all((release.ROOT / file).is_file() for file in files.values()), files
    assert urls == {
        "Homepage": home,
        "Source": home,
        "Issues": f"{home}/issues",
        **{name: f"{home}/blob/HEAD/{file}" for name, file in files.items()},
    }


def test_without_an_address_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(release, "_git", lambda *_: b"")
    monkeypatch.setattr(release, "make", lambda *_: ())
    release.main(VERSION)
    assert capsys.readouterr().out.startswith("The metadata names no address. ")
    with pytest.raises(SystemExit, match=r"^kontrast.example is no address\. "):
        release.main(VERSION, "kontrast.example")


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "one"])
def test_a_version_that_is_none_is_refused(version):
    made = subprocess.run([sys.executable, release.__file__, version], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (1, f"{version} is no version. Give one like VERSION=1.0.0.\n")


def test_the_wheel_has_the_runbooks_and_nothing_of_the_checkout(released):
    with zipfile.ZipFile(released[f"kontrast-{VERSION}-py3-none-any.whl"]) as wheel:
        names = wheel.namelist()
    assert "cli/mcp_server/runbooks/KontrastNoController.md" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "deploy/"))]


@pytest.mark.parametrize(
    ("installer", "homes"),
    [
        (("pipx", "install", "--python", sys.executable, "--pip-args=--constraint={}"), ("PIPX_HOME", "PIPX_BIN_DIR")),
        (("uv", "tool", "install", "--python", sys.executable, "--constraints={}"), ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR")),
    ],
    ids=("pipx", "uv"),
)
def test_an_installed_wheel_plays_the_demo_without_a_checkout(installer, homes, released, tmp_path):
    environment = {**os.environ, **dict(zip(homes, (f"{tmp_path}/home", f"{tmp_path}/bin"), strict=True))}
    environment.pop("PYTHONPATH", None)
    command, *arguments = installer
    arguments[-1] = arguments[-1].format(released["constraints.txt"])
    wheel = f"{released[f'kontrast-{VERSION}-py3-none-any.whl']}[job]"
    installing = Path(sys.executable).parent / command

    def run(*words: object) -> str:
        ended = subprocess.run(list(map(str, words)), cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
        return ended.stdout

    run(installing, *arguments, wheel)
    assert run(tmp_path / "bin" / "kontrast", "--version") == f"kontrast {VERSION}\n"
    played = run(tmp_path / "bin" / "kontrast", "demo", "--once")
    assert "page: 1 partition offline" in played
