"""Find the Java that Spark and the embedded servers run on, and a directory for its native libraries.

Libraries such as RocksDB's cannot be loaded from a mount with noexec. Docker and Compose mount a tmpfs with
noexec, and hardened hosts mount /tmp with noexec.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from streaming.errors import StreamError

OLDEST_JAVA = 17


class JavaError(StreamError):
    """No usable Java. The sentence names the Java found and the Java to install."""


def find_java() -> Path:
    """Return the `java` of JAVA_HOME or PATH, version 17 or newer. Raise JavaError."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaError(f"JAVA_HOME is {home}, but {java} cannot be run. Correct JAVA_HOME or unset it")
    else:
        found = shutil.which("java")
        if found is None:
            raise JavaError(
                f"no java in PATH. Install Java {OLDEST_JAVA} or newer (Debian: openjdk-{OLDEST_JAVA}-jre-headless), "
                "or set JAVA_HOME"
            )
        java = Path(found)
    version = java_version(java)
    if version < OLDEST_JAVA:
        raise JavaError(f"{java} is Java {version}, Kontrast needs {OLDEST_JAVA} or newer. Install it or set JAVA_HOME")
    return java


@lru_cache
def java_version(java: Path) -> int:
    """Return the major version of this `java`, 8 for 1.8. Raise JavaError."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} cannot be run: {error}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if match is None:
        raise JavaError(f"{java} does not report its version. Set JAVA_HOME to a Java {OLDEST_JAVA} or newer")
    return int(match[1])


def library_parent(directories: Sequence[Path]) -> Path:
    """Return the first directory from which a library can be loaded.

    Raise StreamError with the remedy if each is mounted noexec.
    """
    for directory in directories:
        if not _forbids_programs(directory):
            return directory
    raise StreamError(
        f"{directories[0]} is mounted noexec, so Java cannot load RocksDB from it. Mount it with exec (Compose: tmpfs "
        "/tmp:exec), or set TMPDIR to a directory without noexec"
    )


def _forbids_programs(directory: Path) -> bool:
    while not directory.exists():
        directory = directory.parent
    return bool(os.statvfs(directory).f_flag & os.ST_NOEXEC)
