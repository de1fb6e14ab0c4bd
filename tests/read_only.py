"""Directories that a process may not write, also where the tests run as root."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import program


def without_privileges(*command: str | Path) -> list[str | Path]:
    """Return the command as run by an owner of our files who must obey their permissions. It needs no rights."""
    return [program("unshare"), "--user", "--map-user=1", "--map-group=1", *command]


@contextmanager
def read_only(*directories: Path) -> Iterator[None]:
    """Forbid new files in the directories, and below these, until the `with` ends."""
    closed = [path for directory in directories for path in (directory, *directory.rglob("*")) if path.is_dir()]
    for path in closed:
        path.chmod(0o500)
    try:
        yield
    finally:
        for path in closed:
            path.chmod(0o700)
