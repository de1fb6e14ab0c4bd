"""The files around the code that people look for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from trove_classifiers import classifiers, deprecated_classifiers

from lab.release.dist import PACKAGES
from transport.toml_file import read_toml

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"


def test_the_package_is_described_by_known_classifiers_and_keywords():
    project = read_toml(ROOT / "pyproject.toml", 1 << 20)["project"]
    assert set(project["classifiers"]) <= classifiers - deprecated_classifiers.keys()
    assert project["classifiers"] == sorted(project["classifiers"])
    assert project["keywords"] == sorted(project["keywords"])
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in "".join(project["classifiers"])


# Modules that a library does not document, or changes from one minor release to the next.
_INSIDES = {
    "kafka-python": r"kafka\.net",
    "kazoo": r"kazoo\.protocol",
    "prometheus-client": r"prometheus_client\.(exposition|utils)",
    "pure-sasl": r"puresasl\.mechanisms",
    "uvicorn": r"uvicorn\.protocols",
}


@pytest.mark.parametrize("library", _INSIDES)
def test_a_library_whose_insides_are_used_has_an_upper_bound(library):
    project = read_toml(ROOT / "pyproject.toml", 1 << 20)["project"]
    code = "".join(file.read_text() for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    assert re.search(rf"^\s*from {_INSIDES[library]}", code, re.MULTILINE)
    (required,) = [each for each in project["dependencies"] if re.match(rf"{library}\b", each)]
    assert re.search(r"<|==", required), required


def test_hooks_fetch_nothing_and_run_what_the_installation_has():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"repo: (\S+)", hooks)) == {"local"}
    assert set(re.findall(r"language: (\S+)", hooks)) == {"system"}
    programs = re.findall(r"entry: \.venv/bin/(\S+)", hooks)
    assert len(programs) == hooks.count("- id: ")
    for program in programs:
        asked = subprocess.run([Path(sys.executable).parent / program, "--help"], capture_output=True)
        assert asked.returncode == 0, program


def test_a_report_of_a_defect_brings_status_and_a_recording():
    form = (TEMPLATES / "defect.yml").read_text()
    for asked in ("`kontrast status --json`", "`kontrast support-bundle --config kontrast.toml`", "SECURITY.md"):
        assert asked in form
    assert form.count("required: true") == form.count("- type: ") - 1  # all but the first words
    assert "blank_issues_enabled: false" in (TEMPLATES / "config.yml").read_text()


def test_editors_keep_the_line_length_that_ruff_checks():
    width = read_toml(ROOT / "pyproject.toml", 1 << 20)["tool"]["ruff"]["line-length"]
    assert f"max_line_length = {width}" in (ROOT / ".editorconfig").read_text()
