"""Outputs and checkpoint on their own full disk. The job reports it, waits, and loses no row."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess
from controller.contract.outputs import OUTPUTS
from tests.programs import program
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal_reading import end_offset, read_journal

# Only the process sees the disk, in its own namespaces, which needs no rights.
_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=6m small "$0" && exec "$@"'


@pytest.mark.nightly
def test_the_job_waits_for_room_and_no_row_is_lost(java: Path, tmp_path: Path) -> None:
    life = life_of("east", topics=10, losses=6)
    streams = Streams(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    third = len(life.lines) // 3
    streams.append(life.lines[:third])
    command = [
        *(program("unshare"), "--user", "--map-root-user", "--mount", "sh", "-c", _ON_A_SMALL_DISK, disk),
        *(sys.executable, "-m", "cli", "stream", "--from", f"journal:{streams.input}", "--master", "local[2]"),
        *("--to", f"journal:{disk / 'outputs'}", "--checkpoint", disk / "checkpoint"),
    ]
    job = ChildProcess("kontrast stream", command, tmp_path / "log")
    job.launch()
    try:
        seen = Path(f"/proc/{job.pid}/root") / disk.relative_to("/")

        def rows() -> dict[str, list[bytes]]:
            return {output: list(read_journal(seen / "outputs" / output, 0, 1 << 30).lines) for output in OUTPUTS}

        eventually(lambda: end_offset(seen / "outputs" / "gauges") > 0)
        filler = seen / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False, capture_output=True)
        streams.append(life.lines[third : 2 * third])
        eventually(lambda: "The job waits for room" in job.log.read_text())
        assert f"{disk}" in job.log.read_text()
        assert "of its disk's 6 MiB are free" in job.log.read_text()
        before = rows()
        time.sleep(5)  # the batch is tried again, three times by then
        filler.unlink()
        streams.append(life.lines[2 * third :])
        expected = life.rows()
        eventually(lambda: {output: list(dict.fromkeys(lines)) for output, lines in rows().items()} == expected)
        assert all(now[: len(before[output])] == before[output] for output, now in rows().items())
        job.stop()
        assert "Traceback" not in job.log.read_text()
        assert job.log.read_text().count("The job waits for room") == 1, "once, and then each ten minutes"
        assert job.log.read_text().count("reading journal:") == 1
    finally:
        job.kill()


@pytest.mark.nightly
def test_a_job_that_starts_on_a_full_disk_waits_for_room(java: Path, tmp_path: Path) -> None:
    """A process that may write no byte into files fails as on a full disk. The limit can be raised while it runs."""
    streams = Streams(tmp_path)
    streams.append(life_of("east", topics=1).lines)
    command = [sys.executable, "-m", "cli", "stream", "--from", f"journal:{streams.input}", "--master", "local[1]"]
    command += ["--to", f"journal:{streams.outputs}", "--checkpoint", str(streams.checkpoint), "--available-now"]
    without_room = (0, resource.RLIM_INFINITY)
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, without_room),
    ) as job:
        assert job.stderr is not None
        assert next((line for line in job.stderr if "The job waits for room" in line), "") != ""
        resource.prlimit(job.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert "Traceback" not in job.stderr.read()
    assert job.returncode == 0
    assert end_offset(streams.outputs / "gauges") > 0
