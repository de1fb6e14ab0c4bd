"""A checkpoint that outlives its Kontrast. A newer one, whose state has one more field, goes on with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.dist import PACKAGES
from tests.streaming.cluster_records import Streams, life_of

_ROOT = Path(__file__).parents[2]
_DEADLINE_SECONDS = 240

pytestmark = pytest.mark.timeout(600)


def _newer(directory: Path) -> Path:
    """Copy the code, with one more header field in Spark's state and in the core's."""
    for package in PACKAGES:
        shutil.copytree(_ROOT / package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    replica = directory / "streaming" / "replica.py"
    _change(
        replica,
        '        StructField("kept", BinaryType()),\n    ]\n)\n_CHUNK_KEY',
        '        StructField("kept", BinaryType()),\n        StructField("added", BinaryType()),\n    ]\n)\n_CHUNK_KEY',
    )
    _change(
        replica,
        "self._header_state.update(tuple(known.header))",
        'self._header_state.update((*known.header, b"newer"))',
    )
    context = directory / "controller" / "model" / "context.py"
    behind_the_fields = "\n    def copy(self) -> Header:"
    _change(context, behind_the_fields, f"    added: int = 7\n{behind_the_fields}")
    return directory


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} no longer has {old!r}"
    file.write_text(text.replace(old, new), encoding="utf-8")


def _work_off(streams: Streams, code: Path) -> None:
    command = [sys.executable, "-m", "cli", "stream", "--available-now", "--checkpoint", str(streams.checkpoint)]
    command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}", "--master", "local[2]"]
    ended = subprocess.run(command, cwd=code, capture_output=True, timeout=_DEADLINE_SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-4000:]


def test_a_newer_kontrast_with_one_more_field_goes_on_from_the_checkpoint(streams, work_off, tmp_path):
    life = life_of("east", topics=10)
    third = len(life.lines) // 3
    newer = _newer(tmp_path / "newer")
    streams.append(life.lines[:third])
    work_off(streams.config())
    for lines in (life.lines[third : 2 * third], life.lines[2 * third :]):  # the second reads its own earlier state
        streams.append(lines)
        _work_off(streams, newer)
    assert streams.read_all() == life.rows()
