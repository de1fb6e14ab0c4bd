"""Read a secret that a setting names: from a file or a variable of the environment, never from the setting itself."""

from __future__ import annotations

import os
from pathlib import Path


def read_secret(file: str | Path | None, variable: str | None) -> str | None:
    """The present content of the file, without the newline at its end, or of the variable; None where neither is named.

    Raises OSError, UnicodeDecodeError for the file, KeyError for the variable.
    """
    if file is not None:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    return None if variable is None else os.environ[variable]
