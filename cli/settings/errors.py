"""The error of a setting that cannot be used, or of a part that is not installed."""

from __future__ import annotations

import importlib.util
from typing import Final


class ConfigError(Exception):
    """An unusable setting, in one sentence with its name, place and the next step."""


# Parts that a plain `pip install kontrast` leaves out, because most commands work without them.
# By extra of pyproject.toml, a package that only the extra brings.
_PACKAGE_OF: Final = {"job": "pyspark", "mcp": "mcp"}


def need_extra(extra: str, command: str) -> None:
    """Raise ConfigError, with the command that installs the extra, if the extra of `command` is missing."""
    package = _PACKAGE_OF[extra]
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"kontrast {command} needs the package {package}: pip install 'kontrast[{extra}]'")
