"""Steps of the recorder and their times, as the lines of `steps.jsonl`.

Notes belong here, actions in `actions`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path


class Steps:
    """An append-only list of steps with their times."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, step: str, **details: object) -> None:
        """Note a step at the moment before it is done. `details` distinguish it from others of its kind."""
        with self._file.open("a") as steps:
            steps.write(json.dumps({"t": round(time.time(), 3), "step": step, **details}) + "\n")
