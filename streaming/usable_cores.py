"""Cores that this process may use, which a container or systemd can limit below the machine's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path

_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_VERSION_2 = "0::"


def usable_cores(own_group: Path = _OWN_GROUP, groups: Path = _GROUPS) -> int:
    """Return the cores of this process's affinity, within the quota of its control group and those above, at least 1.

    Half a core counts as one, as for Java. Files that cannot be read limit nothing.
    """
    return max(1, min([len(os.sched_getaffinity(0)), *_quotas(own_group, groups)]))


def _quotas(own_group: Path, groups: Path) -> Iterator[int]:
    own = ""
    with suppress(OSError):
        lines = own_group.read_text().splitlines()
        own = next((line.removeprefix(_VERSION_2) for line in lines if line.startswith(_VERSION_2)), "")
    path = groups / own.lstrip("/")
    for directory in (path, *(each for each in path.parents if each.is_relative_to(groups))):
        with suppress(OSError, ValueError):  # "max" is no number: there is no quota
            quota, period = (directory / "cpu.max").read_text().split()
            yield ceil(int(quota) / int(period))
    with suppress(OSError, ValueError):
        first = groups / "cpu"  # version 1, of a container
        quota, period = ((first / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if int(quota) > 0:
            yield ceil(int(quota) / int(period))
