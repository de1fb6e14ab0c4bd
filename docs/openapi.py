"""Writer of `openapi.json`, the OpenAPI document of the JSON interface. `make docs` runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dashboards.page.interface import document  # noqa: E402 (needs the path above)

PATH = Path(__file__).parent / "openapi.json"


def text() -> str:
    """Return the content of the file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
