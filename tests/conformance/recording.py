"""A recording of one run of a real cluster, with ZooKeeper's log and the controllers' own accounts.

Unpacking and replaying a recording belong here. `agreement` counts the agreement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import Zxid
from controller.contract.records import Record
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.rules.releases import Profile, profile_of, read_release
from controller.rules.settings import SETTING_NAMES, GivenSettings, read_settings
from controller.step import step
from controller.view.gauges import gauges_row
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from tests.archives import extract
from tests.conformance.controller_log import Account, read_account

ARCHIVES = Path(__file__).parent / "recordings"
ENDING = ".tar.xz"

# Recordings only for the page's pictures. They agreed entirely at first sight, and a replay takes half a minute.
PICTURED = {"racks39b", "racks39c"}

# The brokers' configuration in all recordings that no znode shows, unless recording.json has other values.
SETTINGS = {
    "controlled.shutdown.retry.backoff.ms": 1_000,
    "delete.topic.enable": True,
    "leader.imbalance.check.interval.seconds": 20,
    "zookeeper.session.timeout.ms": 6_000,
}

# The releases that recording.json does not name, if not 3.9.
RELEASE = {"dev11": "1.1", "dev28": "2.8"}

# The last transaction that counts, if the log includes the recording's own end and recording.json does not set it.
LAST_ZXID = {"hard39": 571}


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of the replica's run over a recording."""

    rows: list[Row]
    context: Context
    gauges: list[GaugesRow]  # after each record that changed something, by time


@dataclass(frozen=True, slots=True)
class Recording:
    """An unpacked recording."""

    name: str
    directory: Path

    def records(self) -> Iterator[Record]:
        """Yield the content of ZooKeeper's log, as records."""
        last = self.last_zxid()
        history = FileHistory([self.directory / "zk"], "recorded", until=None if last is None else Until(zxid=last))
        return history.records()

    def last_zxid(self) -> Zxid | None:
        """Return the last transaction that counts, or None for all."""
        last: Zxid | None = self._description().get("last_zxid", LAST_ZXID.get(self.name))
        return last

    def profile(self) -> Profile | None:
        """Return the release's behaviour, as an operator would set it.

        None means that the core infers it from the znodes, as during an upgrade.
        """
        description = self._description()
        release = None if "upgrade_to" in description else description.get("kafka")
        return None if release is None else profile_of(read_release(release))

    def release(self) -> str:
        """Return the recording's Kafka release, like 3.9, or both releases of an upgrade."""
        description = self._description()
        releases = description.get("kafka", RELEASE.get(self.name, "3.9")), description.get("upgrade_to")
        return " to ".join("{}.{}".format(*read_release(release)) for release in releases if release is not None)

    def settings(self) -> GivenSettings:
        """Return its brokers' configuration, as far as the replica needs it."""
        said = self._description().get("settings", {})
        return SETTINGS | read_settings({name: text for name, text in said.items() if name in SETTING_NAMES})

    def _description(self) -> dict[str, Any]:
        file = self.directory / "recording.json"
        description: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return description

    def account(self) -> Account:
        """Return the account of the ZooKeeper controllers. KRaft controllers keep no such log."""
        return read_account(sorted(log.parent for log in self.directory.glob("logs*/state-change.log")))

    def jmx(self) -> list[dict[str, Any]]:
        """Return the samples of the brokers' gauges."""
        file = self.directory / "jmx.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def unpack(name: str, directory: Path) -> Recording:
    """Unpack the recording of this name into a directory."""
    return unpack_file(ARCHIVES / f"{name}{ENDING}", directory)


def unpack_file(file: Path, directory: Path) -> Recording:
    """Unpack a recording, whose folder has the archive's name, into a directory."""
    extract(file, directory)
    name = file.name.removesuffix(ENDING)
    return Recording(name, directory / name)


def replay(
    records: Iterable[Record], profile: Profile | None = None, settings: GivenSettings = MappingProxyType(SETTINGS)
) -> Replay:
    """Let the replica apply the records."""
    context = new_context("recorded", settings, profile, chunk_count=16)
    rows: list[Row] = []
    gauges: list[GaugesRow] = []
    for record in records:
        outcome = step(context, record)
        if outcome.context is not context:
            context = outcome.context
            stamp = ("recorded", record.generation, record.seq, 0, record.zxid, record.observed_ms)
            gauges.append(gauges_row(context.header, stamp))
        rows.extend(outcome.effects)
    return Replay(rows, context, gauges)
