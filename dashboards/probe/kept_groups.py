"""Files with the groups of each cluster as the brokers last described them, for a restart and for the command line."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from questions.clients.known_groups import KnownGroups

_FILE: Final[JsonDecoder[KnownGroups]] = JsonDecoder(KnownGroups)
_OWNER_ONLY: Final = 0o600

_logger = logging.getLogger("kontrast.dashboards.groups")


def kept_groups(directory: Path, cluster: str) -> KnownGroups:
    """Return the kept groups of a cluster, or no groups if their file is missing or unreadable."""
    path = _path(directory, cluster)
    try:
        return _FILE.decode(path.read_bytes())
    except FileNotFoundError:
        return KnownGroups()
    except (OSError, UndecodableError) as error:
        _logger.warning("%s cannot be read, so the groups are unknown until brokers answer: %s", path, error)
        return KnownGroups()


def keep_groups(directory: Path, cluster: str, known: KnownGroups) -> None:
    """Replace the file with the groups of a cluster at once, so that no reader finds half a file. Raise OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    path = _path(directory, cluster)
    draft = path.with_suffix(".draft")
    draft.touch(mode=_OWNER_ONLY)
    draft.write_bytes(msgspec.json.encode(known))
    draft.replace(path)


def _path(directory: Path, cluster: str) -> Path:
    return directory / f"{quote(cluster, safe='')}.json"
