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


def password_problem(file: str | Path | None, variable: str | None, prefix: str) -> str | None:
    """Return the reason why a login has no password, if there is one; `prefix` precedes the names of other settings."""
    if (file is None) == (variable is None):
        return (
            f"username is given and needs its password, in {prefix}password_file or in {prefix}password_variable, "
            "not in both"
        )
    if variable is not None and not os.environ.get(variable):
        return f"password_variable names {variable}, which the environment lacks or has empty"
    return None
