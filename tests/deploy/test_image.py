"""The container image's file, without findings of hadolint, and with its start of a command.

No engine builds it here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Dockerfile"
TEXT = FILE.read_text(encoding="utf-8")


def _words(instruction: str) -> list[str]:
    (value,) = re.findall(rf"^{instruction} (\[.*\])$", TEXT, re.MULTILINE)
    words: list[str] = json.loads(value)
    return words


def test_hadolint_finds_nothing():
    linted = subprocess.run(
        [Path(sys.executable).parent / "hadolint", "--failure-threshold=style", FILE], capture_output=True, text=True
    )
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr


def test_it_starts_a_command_that_there_is_as_a_user_without_rights():
    program, *arguments = [*_words("ENTRYPOINT"), *_words("CMD")]
    assert program == "kontrast"
    helped = subprocess.run([sys.executable, "-m", "cli", *arguments, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0, helped.stderr
    assert re.findall(r"^USER (\S+)$", TEXT, re.MULTILINE)[-1] == "10001:10001"


def test_each_base_may_be_named_by_digest_and_each_file_that_is_copied_exists():
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${BASE}", "build", "${BASE}"]
    assert (ROOT / "deploy" / "install.sh").exists()
    assert "deploy" not in (ROOT / ".dockerignore").read_text().splitlines()


def test_it_has_the_bill_of_materials_and_not_the_tools_that_make_it():
    made, copied = re.split(r"^FROM .*\n", TEXT, flags=re.MULTILINE)[2:]
    (tools,) = re.findall(r"--require-hashes --constraint requirements/dev.txt\s+\\\n\s+(.+?) \\\n", made)
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    assert all(re.search(rf"^{tool}==.* \\\n    --hash=sha256:", pins, re.MULTILINE) for tool in tools.split())
    (program, pins) = re.findall(r"\.venv/bin/python (deploy/\S+) (.+)", made)[0]
    assert (ROOT / program).exists()
    installed = re.findall(r"-r (requirements/\S+)", TEXT)
    assert pins.split() == ["requirements/run.txt", *installed]
    assert re.findall(r"--from=bill (\S+)", copied) == ["/opt/kontrast/dist"]
