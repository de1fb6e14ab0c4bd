"""Checkpoints that outlive their Kontrast. A newer one goes on with them, or begins again by itself with one line."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow
from controller.contract.outputs import decode_row
from controller.restore.stored_context import STATE_VERSION
from lab.release.dist import PACKAGES
from streaming.checkpoint.directory import BEGINS_AGAIN, STATE_FORMAT
from tests.archives import extract
from tests.lanes import in_gate
from tests.streaming.checkpoints import newest_rows
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.earlier_state import earlier_life

_ROOT = Path(__file__).parents[2]
_EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.tar.xz"))
_DEADLINE_SECONDS = 240
STANDING = ("metadata", "alerts")  # outputs whose newest rows tell the state of the cluster


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


@pytest.mark.nightly
def test_a_newer_kontrast_with_one_more_field_goes_on_from_the_checkpoint(streams, work_off, tmp_path):
    life = life_of("east", topics=10)
    third = len(life.lines) // 3
    newer = _newer(tmp_path / "newer")
    streams.append(life.lines[:third])
    work_off(streams.config())
    for lines in (life.lines[third : 2 * third], life.lines[2 * third :]):  # the newer code reads its own state, too
        streams.append(lines)
        _work_off(streams, newer)
    assert streams.read_all() == life.rows()


def _unpack(archive: Path, streams: Streams) -> dict[str, int | str]:
    """Unpack an archive, and return its checkpoint's settings. Kontrast and Spark keep the path of the directory."""
    directory = streams.input.parent
    extract(archive, directory)
    settings = json.loads((streams.checkpoint / "kontrast.json").read_text())
    was = settings["source"].removeprefix("journal:").removesuffix(f"/{streams.input.name}").encode()
    for file in [path for path in streams.checkpoint.rglob("*") if path.is_file() and was in path.read_bytes()]:
        file.write_bytes(file.read_bytes().replace(was, bytes(directory)))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return json.loads((streams.checkpoint / "kontrast.json").read_text())


def _open_alerts(streams: Streams) -> set[str]:
    rows = map(decode_row, newest_rows(streams.read_all()["alerts"]).values())
    return {row.id for row in rows if isinstance(row, AlertRow) and not row.ends_subject}


@pytest.mark.parametrize("versions_older", in_gate(0, of=(0, 1)))
@pytest.mark.parametrize("archive", _EARLIER, ids=lambda archive: archive.name.partition(".")[0])
def test_the_state_of_an_earlier_commit_goes_on_or_begins_again(archive, versions_older, streams, work_off, caplog):
    settings = _unpack(archive, streams)
    assert len(_open_alerts(streams)) >= 3
    settings[STATE_FORMAT] -= versions_older
    (streams.checkpoint / "kontrast.json").write_text(json.dumps(settings))
    life, before = earlier_life()
    streams.append(life.lines[before:])
    with caplog.at_level(logging.INFO, "kontrast"):
        work_off(streams.config())
    begins_again = settings[STATE_FORMAT] < STATE_VERSION
    assert sum(BEGINS_AGAIN in record.getMessage() for record in caplog.records) == begins_again
    written, expected = streams.read_all(), life.rows()
    if begins_again:
        written, expected = (
            {output: [*newest_rows(rows[output]).values()] for output in STANDING} for rows in (written, expected)
        )
    assert {output: list(map(decode_row, rows)) for output, rows in written.items()} == {
        output: list(map(decode_row, rows)) for output, rows in expected.items()
    }
