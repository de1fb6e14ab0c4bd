"""Secrets from the file or environment variable that a setting names."""

from __future__ import annotations

import os
from pathlib import Path


def read_secret(file: str | Path | None, variable: str | None) -> str | None:
    """Return the secret from the file, without the newline at its end, or from the variable, if one is given.

    Raise OSError or UnicodeDecodeError for the file, and KeyError for the variable.
    """
    if file is not None:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    return None if variable is None else os.environ[variable]
