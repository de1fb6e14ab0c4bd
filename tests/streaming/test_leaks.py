"""Six hundred fast batches, without more files or threads in any process of the job, and without temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from controller.contract.job_row import ProcessUse
from streaming.checkpoint.files import numbered
from streaming.processes import descendants, uses_of
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

_ROOT = Path(__file__).parents[2]
_WARM, _BETWEEN = 100, 10
_BATCHES = int(os.environ.get("KONTRAST_FAULTS_BATCHES", "600"))
# pyspark 4.2.0 gains a socket each batch, so 250 between the halves. Files and threads that come and go are far fewer.
_GROWTH = 50
# Spark removes old files of the state every 3 s, not once a minute, so each half of the run has many low points.
_OFTEN = "-Dspark.sql.streaming.stateStore.maintenanceInterval=3s"


def test_600_batches_leave_no_files_and_no_threads_behind(streams):
    # A batch takes about six records.
    streams.append(life_of("east", topics=12, losses=200).lines)
    with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as temporary:
        process = _job(streams, temporary)
        try:
            samples = [
                _sample(streams, process, batch, Path(temporary)) for batch in range(_WARM, _BATCHES + 1, _BETWEEN)
            ]
        finally:
            process.terminate()
            process.wait(60)
    # Files of the state come with each batch and go in turns, so the lowest figures show growth.
    middle = len(samples) // 2
    growth = {
        name: min(sample[name] for sample in samples[middle:]) - min(sample[name] for sample in samples[:middle])
        for name in samples[0]
    }
    print(f"\n{[sample['temporary files'] for sample in samples]}")
    print(f"after {_WARM} batches {samples[0]}, after {_BATCHES} {samples[-1]}, growth {growth}")
    assert {name: more for name, more in growth.items() if more >= _GROWTH} == {}


def _job(streams: Streams, temporary: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}", "--max-batch-bytes", "1024"]
    # Spark's defaults come through JAVA_TOOL_OPTIONS, because the job starts Java itself, without spark-submit.
    environment = {**os.environ, "TMPDIR": temporary, "JAVA_TOOL_OPTIONS": _OFTEN}
    return subprocess.Popen(command, cwd=_ROOT, env=environment)


def _sample(streams: Streams, process: subprocess.Popen[bytes], batch: int, temporary: Path) -> dict[str, int]:
    """Open files and threads by role, and temporary files, once this batch has finished."""

    def is_running() -> None:
        assert process.poll() is None, "the job ended by itself"

    commits = streams.checkpoint / "spark" / "commits"
    eventually(lambda: max(numbered(commits), default=-1) >= batch, meanwhile=is_running)
    uses: Mapping[str, ProcessUse] = uses_of(descendants(process.pid)[0])
    return {
        "driver files": len(list(Path(f"/proc/{process.pid}/fd").iterdir())),
        "driver threads": len(list(Path(f"/proc/{process.pid}/task").iterdir())),
        **{f"{role} files": uses[role].open_files for role in ("java", "worker")},
        **{f"{role} threads": uses[role].threads for role in ("java", "worker")},
        "temporary files": sum(each.is_file() for each in temporary.rglob("*")),
    }
