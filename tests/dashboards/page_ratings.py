"""Ratings of the live page by Lighthouse, on a phone and on a laptop: `make lighthouse`.

Exit code 1 means that a rating is below the goal. Ratings of performance depend on the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.dashboards import page_cases
from tests.dashboards.page_pictures import serving, written
from tests.dashboards.recorded_cases import recorded_story
from tests.programs import program

_LIGHTHOUSE: Final = Path(__file__).parent / "lighthouse" / "node_modules" / ".bin" / "lighthouse"
_GOAL: Final = 95
_CATEGORIES: Final = ("performance", "accessibility", "best-practices")
_CASES: Final = (page_cases.healthy, partial(recorded_story, "rack-lost"), page_cases.two_hundred_brokers)
_PAGES: Final = (
    "/",
    "/clusters/healthy",
    "/clusters/rack-lost",
    "/clusters/rack-lost/timeline",
    "/clusters/healthy/whatif",
    "/clusters/brokers-200",
)
_SCREENS: Final = {"phone": (), "laptop": ("--preset=desktop",)}


def ratings(address: str, screen: str) -> dict[str, int]:
    """Return the ratings of a page out of 100. Raise CalledProcessError if Lighthouse fails."""
    command = [str(_LIGHTHOUSE), address, "--quiet", "--output=json", f"--only-categories={','.join(_CATEGORIES)}"]
    command += ["--chrome-flags=--headless=new --no-sandbox", *_SCREENS[screen]]
    environment = {**os.environ, "CHROME_PATH": program("chromium")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    categories = json.loads(done.stdout)["categories"]
    return {name: round(100 * categories[name]["score"]) for name in _CATEGORIES}


def main() -> int:
    """Print a table of the ratings. Return the exit code."""
    shown = Table(title=f"Lighthouse, at least {_GOAL} wanted", title_justify="left")
    for heading in ("page", "screen", *_CATEGORIES):
        shown.add_column(heading, justify="right" if heading in _CATEGORIES else "left")
    worst = 100
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "outputs") as exporter:
        stories = [case() for case in _CASES]
        for path in _PAGES:
            for screen in _SCREENS:
                written(exporter, stories)
                found = ratings(exporter.address + path, screen)
                worst = min(worst, *found.values())
                shown.add_row(path, screen, *map(str, found.values()))
    Console().print(shown)
    return 0 if worst >= _GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
