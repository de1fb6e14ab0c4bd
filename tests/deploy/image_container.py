"""Containers of the built image without an engine: own namespaces, a read-only root, and a user without rights.

They share the network of the process that starts them, which can have one of its own with nothing but loopback. Each
has `/tmp` as Compose mounts it. `python -m tests.deploy.image_root` builds the image. A start needs root.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tests.deploy.image_root import DOCKERFILE, stages, value_of

USER: Final = 10001
STATE: Final = "/var/lib/kontrast"
_SETTINGS: Final = "/etc/kontrast"
_START: Final = f"""
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs -o exec,nosuid,nodev,mode=1777 tmpfs "$0/tmp"
mount --bind "$1" "$0{STATE}"
mount --bind "$2" "$0{_SETTINGS}"
mount -o remount,bind,ro "$0{_SETTINGS}"
mount -o remount,bind,ro "$0"
root="$0"
shift 2
exec chroot "$root" setpriv --reuid={USER} --regid={USER} --clear-groups --no-new-privs --bounding-set=-all \\
    env -i "$@"
"""


class Image:
    """An image's root. All its containers have one volume for their state, and one folder of settings."""

    def __init__(self, root: Path, state: Path, settings: Path) -> None:
        self._root, self._state, self._settings = root.absolute(), state, settings
        text = DOCKERFILE.read_text(encoding="utf-8")
        self._environment: dict[str, str] = {}
        for stage in stages(text):
            if stage.name in ("runtime", "image"):
                for rest in (rest for word, rest in stage.steps if word == "ENV"):
                    self._environment.update(re.findall(r"(\w+)=(\S+)", rest))
        usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._environment["PATH"] = self._environment["PATH"].replace("$PATH", usual)
        self._entrypoint = value_of("ENTRYPOINT", text)
        (self._root / _SETTINGS.lstrip("/")).mkdir(exist_ok=True)  # an engine makes the places of mounts, too
        for directory in (state, settings):
            directory.mkdir(exist_ok=True)
            os.chown(directory, USER, USER)

    def run(self, *arguments: str, **environment: str) -> list[str]:
        """Return the command line of a container with these arguments and further variables."""
        return self.execute(*self._entrypoint, *arguments, **environment)

    def execute(self, *words: str, **environment: str) -> list[str]:
        """Return the command line of a container with another program than the image's."""
        variables = [f"{name}={value}" for name, value in {**self._environment, **environment}.items()]
        namespaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-c", _START]
        return [*namespaces, str(self._root), str(self._state), str(self._settings), *variables, *words]
