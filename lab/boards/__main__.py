"""Writer of every board as the JSON that people import into Grafana."""

from __future__ import annotations

from pathlib import Path

from lab.boards import cluster, fleet, pipeline
from lab.boards.board import board_json

_BOARDS = (fleet, cluster, pipeline)
DIRECTORY = Path(__file__).parents[2] / "deploy" / "helm" / "kontrast" / "boards"


def board_files() -> dict[str, str]:
    """Return the text of every board's file, by its name."""
    built = [module.board().build() for module in _BOARDS]
    return {f"{board.uid}.json": board_json(board) for board in built}


def main() -> None:
    """Write all boards."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in board_files().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
