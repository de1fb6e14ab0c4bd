"""Writer of `boards/*.svg`, each board over the recorded incidents of the tests. `make previews` runs it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"

from dashboards.preview.board import Filling, all_boards  # noqa: E402
from dashboards.preview.drawing import View, draw  # noqa: E402
from tests.dashboards.incident import BEGIN, RATE_INTERVAL, SCRAPE_SECONDS, incident_lines  # noqa: E402 (needs the path above)
from tests.dashboards.prometheus_server import prometheus_over  # noqa: E402
from tests.programs import MissingProgramError  # noqa: E402

PICTURES = Path(__file__).parent / "boards"

# The cluster of each board, and the seconds since the beginning of the incidents.
SHOWN = {
    "kontrast-overview": ("south", 148),  # no broker acts as controller, and JMX reports 0
    "kontrast-controller": ("south", 148),
    "kontrast-partitions": ("south", 148),
    "kontrast-brokers": ("east", 174),  # two of three brokers are gone
    "kontrast-deletions": ("south", 162),
    "kontrast-migration": ("north", 148),  # the dual write has been broken for a minute
    "kontrast-pipeline": ("east", 174),
}


def main() -> None:
    """Draw all boards."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with prometheus_over(directory, incident_lines(directory), SCRAPE_SECONDS) as prometheus:
            for board in all_boards():
                cluster, until = SHOWN[board.uid]
                filling = Filling(clusters=cluster, rate_interval=RATE_INTERVAL)
                view = View(filling=filling, start=BEGIN, end=BEGIN + until, step_seconds=SCRAPE_SECONDS)
                (PICTURES / f"{board.uid}.svg").write_text(draw(board, prometheus, view), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except MissingProgramError as error:
        sys.exit(str(error))
