"""Writes every board as the JSON that people import into Grafana.

Here belongs the list of boards and where they are written.
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.boards.overview import overview

BOARDS = {"kontrast-overview.json": overview}
DIRECTORY = Path(__file__).parent.parent / "grafana"


def board_json(file_name: str) -> str:
    """The text of one board's file."""
    return json.dumps(BOARDS[file_name](), cls=JSONEncoder, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all boards."""
    DIRECTORY.mkdir(exist_ok=True)
    for file_name in BOARDS:
        (DIRECTORY / file_name).write_text(board_json(file_name), encoding="utf-8")


if __name__ == "__main__":
    main()
