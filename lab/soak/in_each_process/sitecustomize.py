"""Tells the live memory of each Python process of a soak, and of those that fork from it, in a file of its own.

Python imports this module at its start, because the soak puts this directory into PYTHONPATH. Spark's workers have no
page that could tell it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from dashboards.serving.metrics import live_memory

_DIRECTORY = Path(os.environ["SOAK_LIVE_MEMORY"])
_EACH_SECONDS = 10


def _tell() -> None:
    file = _DIRECTORY / str(os.getpid())
    written = file.with_suffix(".new")
    while True:
        written.write_text(json.dumps(live_memory()._asdict()))
        written.replace(file)
        time.sleep(_EACH_SECONDS)


def _begin() -> None:
    threading.Thread(target=_tell, name="live memory", daemon=True).start()


_begin()
os.register_at_fork(after_in_child=_begin)
