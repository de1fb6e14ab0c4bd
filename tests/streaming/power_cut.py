"""Content of a disk after a power cut, by the forced writes.

The model of the disk belongs here, for files that only this process forces. Forced content survives. A seed decides for
each other part whether it survives.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Image = dict[Path, bytes]


class Disk:
    """Everything below a directory, as it would be found if the power went now."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[Path, dict[str, int]] = {}  # names and files of forced directories
        self._contents: dict[int, bytes] = {}  # of files that were forced

    def forced(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self._root):
            return
        if path.is_dir():
            self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._contents[os.fstat(descriptor).st_ino] = path.read_bytes()

    def after_a_cut(self, chance: random.Random) -> Image:
        image: Image = {}
        self._look(self._root, image, chance)
        return image

    def _look(self, directory: Path, image: Image, chance: random.Random) -> None:
        now = {entry.name: entry for entry in os.scandir(directory)}
        forced = self._names.get(directory, {})
        for name in sorted({*now, *forced}):
            entry, path = now.get(name), directory / name
            is_forced = name in forced
            if entry is not None and entry.is_dir():
                if is_forced or chance.random() < 0.5:
                    self._look(path, image, chance)
            elif entry is not None and forced.get(name) == entry.inode():
                image[path] = self._content(path, entry.inode(), chance)
            elif chance.random() < 0.5:  # of a name that was not forced, take the newer state
                if entry is not None:
                    image[path] = self._content(path, entry.inode(), chance)
            elif is_forced:
                image[path] = self._contents.get(forced[name], b"")

    def _content(self, path: Path, inode: int, chance: random.Random) -> bytes:
        forced, now = self._contents.get(inode, b""), path.read_bytes()
        if now == forced:
            return now
        shape = chance.choice(["as forced", "as now", "zeros", "cut"])
        if shape == "zeros":
            return forced + bytes(max(0, len(now) - len(forced)))
        if shape == "cut":
            return now[: chance.randrange(len(forced), len(now) + 1)] if len(now) > len(forced) else forced
        return now if shape == "as now" else forced


@contextmanager
def recorded(root: Path, at_each_force: Callable[[Disk], None]) -> Iterator[None]:
    """Model a disk below `root` while this process works there. Call `at_each_force` before each forced write."""
    disk = Disk(root)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            real = getattr(os, name)

            def force(descriptor: int, real: Callable[[int], None] = real) -> None:
                at_each_force(disk)
                real(descriptor)
                disk.forced(descriptor)

            patch.setattr(os, name, force)
        yield


def restore(root: Path, image: Image) -> None:
    """Replace the content of `root` by the image."""
    shutil.rmtree(root)
    root.mkdir()
    for path, content in image.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
