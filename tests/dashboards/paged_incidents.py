"""Incidents of clusters with their notifications, read from `paged_incidents.txt`.

`live_incidents` carries the events to a person, and `test_paging` runs all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.ids import BrokerId
from tests.controller.trace_language import obey
from tests.dashboards.live_incidents import LiveCluster

USUAL = "cluster t-0=3,2 t-1=2,3 t-2=1,2 t-3=1,3 lonely-0=3 brokers=1,2,3 controller=1 leader-epoch=0"


class Incident(NamedTuple):
    """The notifications of a cluster, and its events from its first complete read on."""

    heard: tuple[str, ...]
    begin: str
    events: tuple[str, ...]

    def happens(self, cluster: LiveCluster) -> None:
        """Let the events happen, each line at once."""
        for line in self.events:
            word, _, rest = line.partition(" ")
            if word == "until":
                cluster.until_heard(*([rest] if rest else firing(self.heard)))
            elif word == "later":
                cluster.later(int(rest))
            elif word == "pass-real":
                cluster.pass_real(int(rest))
            elif word == "session":
                cluster.session = rest
            elif word == "maintenance":
                until_ms = cluster.history.now_ms + 3_600_000
                cluster.maintenance = (MaintenanceWindow((BrokerId(int(rest)),), until_ms, "disks"),)
            else:
                do(cluster, line)


def do(cluster: LiveCluster, line: str) -> None:
    """Run trace commands in ZooKeeper at once."""
    cluster.do(lambda history: obey(history, [line]))


def firing(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines in their firing form."""
    return tuple(line.replace(" ", " firing ", 1) for line in lines)


def _incidents() -> dict[str, Incident]:
    incidents: dict[str, Incident] = {}
    for block in re.split(r"\n\n+", Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").strip()):
        title, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if title:
            middle = lines.index("----")
            begin, *events = lines[middle + 1 :]
            if not begin.startswith("cluster "):
                begin, events = USUAL, [begin, *events]
            incidents[title.replace(" ", "_")] = Incident(tuple(lines[:middle]), begin, tuple(events))
    return incidents


INCIDENTS = _incidents()
