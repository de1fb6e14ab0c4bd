"""The live memory of each Python process of a soak, also of one that forks from another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from lab.soak.kontrast import IN_EACH_PROCESS, ROOT
from lab.soak.measurements import HEAP_BYTES, SMALL_OBJECTS
from tests.waiting import eventually

_FORKED_PROCESS = """\
import os, time
held = None if os.fork() else [*(bytearray(100_000) for _ in range(200)), *([n] for n in range(100_000))]
time.sleep(60)
"""


def test_a_process_and_the_one_that_forks_from_it_tell_what_each_holds(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (IN_EACH_PROCESS, ROOT))),
        "SOAK_LIVE_MEMORY": str(tmp_path),
    }
    with subprocess.Popen([sys.executable, "-c", _FORKED_PROCESS], env=environment, start_new_session=True) as process:
        try:
            readings = eventually(
                lambda: told(tmp_path), lambda files: len(files) == 2 and most_heap(files) > 20_000_000
            )
            of_first = readings.pop(process.pid)
            (of_second,) = readings.values()
            assert 0 < of_first[HEAP_BYTES] < of_second[HEAP_BYTES] - 19_000_000
            assert 0 < of_first[SMALL_OBJECTS] < of_second[SMALL_OBJECTS] - 90_000
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def most_heap(files):
    return max(each[HEAP_BYTES] for each in files.values())


def told(directory):
    return {int(file.name): json.loads(file.read_text()) for file in directory.iterdir() if not file.suffix}
