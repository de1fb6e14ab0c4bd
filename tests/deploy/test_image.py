"""The container image's file, without findings of hadolint, and with its start of a command.

No engine builds it here. `python -m tests.deploy.image_root` follows its steps in chroots.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certificates import make_self_signed
from tests.deploy.image_root import DOCKERFILE, ROOT, stages, value_of

TEXT = DOCKERFILE.read_text(encoding="utf-8")
STAGES = {stage.name: stage for stage in stages(TEXT)}


def _steps(stage: str, word: str) -> list[str]:
    """Return what follows this word in the stage and the stages below it, the lowest first."""
    found = STAGES[stage]
    below = _steps(found.base, word) if found.base in STAGES else []
    return below + [rest for each, rest in found.steps if each == word]


def _packages(stage: str) -> set[str]:
    """Return Debian's packages of a stage."""
    lists = [re.search(r"--no-install-recommends\s+(.*?)\s+&&", script) for script in _steps(stage, "RUN")]
    return {package for each in lists if each for package in each[1].split()}


def test_hadolint_finds_nothing():
    linted = subprocess.run(
        [Path(sys.executable).parent / "hadolint", "--failure-threshold=style", DOCKERFILE],
        capture_output=True,
        text=True,
    )
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr


@pytest.mark.parametrize("stage", ["image", "light"])
def test_it_starts_a_command_that_there_is_as_a_user_without_rights(stage):
    init, end_of_options, python, program = value_of("ENTRYPOINT", TEXT)
    assert (init, end_of_options, python) == ("tini", "--", "python")
    assert (ROOT / Path(program).relative_to("/opt/kontrast")).exists()
    (command,) = re.findall(r'\["(\w+)"\]', _steps(stage, "CMD")[-1])
    helped = subprocess.run([sys.executable, "-m", "cli", command, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0, helped.stderr
    assert _steps(stage, "USER")[-1] == "10001:10001"


@pytest.mark.parametrize("stage", ["image", "light"])
def test_an_init_reaps_orphans_and_a_program_of_the_image_checks_health(stage):
    assert "tini" in _packages(stage)
    (check,) = _steps(stage, "HEALTHCHECK")
    (program,) = re.findall(r'"/opt/kontrast/(\S+)"', check)
    assert (ROOT / program).exists()


def test_the_light_image_has_neither_java_nor_spark():
    assert not [package for package in _packages("light") | _packages("build-light") if "jdk" in package]
    (installing,) = [script for script in _steps("build-light", "RUN") if ".venv/bin/pip" in script]
    installed = re.findall(r"-r (requirements/\S+)", installing)
    assert installed == ["requirements/tools.txt", "requirements/base.txt", "requirements/kerberos.txt"]
    assert "pyspark" not in (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8")
    assert _steps("light", "COPY") == ["--from=build-light /opt/kontrast /opt/kontrast"]


def test_each_base_may_be_named_by_digest_and_is_debians_stable_by_default():
    assert {stage.base for stage in STAGES.values()} - set(STAGES) == {"${BASE}"}
    assert re.findall(r"^ARG BASE=(.*)", TEXT, re.MULTILINE) == ["debian:13-slim"]
    assert "deploy" not in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.parametrize("stage", ["image", "light"])
def test_it_has_no_maker_of_the_project_and_no_setuid_program(stage):
    (origin,) = {origin for origin in re.findall(r"--from=(\S+) /opt/kontrast ", " ".join(_steps(stage, "COPY")))}
    assert _steps(origin, "COPY") == [". ."]
    assert _steps(origin, "RUN")[1].startswith("rm -r lab && ")
    assert {"tests", "lab"} <= set((ROOT / ".dockerignore").read_text().split())
    programs = {str(file.relative_to(ROOT / "deploy")) for file in (ROOT / "deploy").rglob("*.py")}
    assert programs == {"entrypoint.py", "health.py", "spark/kontrast-stream.py"}
    assert " && find / -xdev -type f -perm /6000 -exec chmod a-s {} + " in " ".join(_steps("runtime", "RUN")[0].split())


@pytest.mark.parametrize("stage", ["build", "build-light", "bill"])
def test_each_stage_that_fetches_knows_the_authority_and_the_mirrors(stage):
    assert {"CA_FILE", "PIP_INDEX_URL", "DEFAULT_ARTIFACT_REPOSITORY"} <= set(" ".join(_steps(stage, "ARG")).split())
    trusting = [script for script in _steps(stage, "RUN") if "CA_FILE" in script]
    assert [script for script in trusting if "update-ca-certificates" in script] == trusting != []
    assert "PIP_CERT=/etc/ssl/certs/ca-certificates.crt" in " ".join(_steps(stage, "ENV"))


def test_each_certificate_of_a_file_is_an_authority_of_its_own(tmp_path):
    (script,) = [script for script in _steps("tools", "RUN") if "CA_FILE" in script]
    shown = [tmp_path / name for name in ("one.pem", "two.pem")]
    for file in shown:
        make_self_signed(file, tmp_path / "key.pem", file.stem)
    (tmp_path / "ca.crt").write_text("of our proxy\n" + "".join(file.read_text() for file in shown))
    (tmp_path / "lab").mkdir()
    authorities = tmp_path / "authorities"
    authorities.mkdir()
    script = script.replace("update-ca-certificates", "true")
    here = script.replace("/usr/local/share/ca-certificates", str(authorities))
    subprocess.run(["sh", "-c", here], cwd=tmp_path, env={**os.environ, "CA_FILE": "ca.crt"}, check=True)
    found = [text for file in sorted(authorities.iterdir()) if "BEGIN" in (text := file.read_text())]
    assert found == [file.read_text() for file in shown]


def test_it_has_the_bill_of_materials_and_not_the_tools_that_make_it():
    (making,) = [rest for word, rest in STAGES["bill"].steps if word == "RUN"]
    (tools,) = re.findall(r"--require-hashes --constraint requirements/dev.txt\s+(.+?)\s+&&", making)
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    assert all(re.search(rf"^{tool}==.* \\\n    --hash=sha256:", pins, re.MULTILINE) for tool in tools.split())
    ((program, of_bill),) = re.findall(r"\.venv/bin/python (lab/\S+) (.+)", making)
    assert (ROOT / program).exists()
    assert f"!{program}" in (ROOT / ".dockerignore").read_text().splitlines()
    assert [rest for word, rest in STAGES["bill"].steps if word == "COPY"] == ["lab lab"]
    installed = re.findall(r"-r (requirements/\S+)", " ".join(_steps("build", "RUN")))
    assert of_bill.split() == ["requirements/run.txt", *installed]
    copied = [rest for rest in _steps("image", "COPY") if rest.startswith("--from=bill ")]
    assert copied == ["--from=bill /opt/kontrast/dist /opt/kontrast/dist"]
