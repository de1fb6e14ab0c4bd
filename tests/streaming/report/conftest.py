"""Two recorded clusters in every form that a report is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from cli.main import main
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, encode_row
from controller.contract.records import Record, encode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.files.history import History
from tests.conformance.recording import unpack
from transport.journal import JournalWriter

RECORDED = {"bank": "dev39", "shop": "operator39"}


class Recorded(NamedTuple):
    """A cluster's directories, its records, and the rows that the job makes from them."""

    files: Path
    records: tuple[Record, ...]
    rows: tuple[tuple[str, Row], ...]  # each with its output

    @property
    def summary(self) -> dict:
        """Return the summary of `kontrast replay`."""
        (name,) = {record.cluster for record in self.records}
        arguments = ["replay", "--zk-data", str(self.files), "--cluster", name, "--json", "--emit", "refused"]
        lines = CliRunner().invoke(main, arguments).stdout.splitlines()
        (found,) = [row for row in map(json.loads, lines) if row["kind"] == "summary"]
        return {key: value for key, value in found.items() if key not in ("kind", "zxid", "time_ms")}


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """Return the clusters by name."""
    return {name: _recorded(name, tmp_path_factory.mktemp(name)) for name in RECORDED}


def _recorded(cluster: str, directory: Path) -> Recorded:
    files = unpack(RECORDED[cluster], directory).directory / "zk"
    records = tuple(History((files,), cluster, chroot="/").records())
    first = records[0]
    place = {"generation": first.generation, "seq": first.seq, "ordinal": -1, "zxid": first.zxid}
    beginning = BeginningRow(cluster=cluster, time_ms=first.observed_ms, **place)
    effects = steps(new_context(cluster), records).effects
    rows = [*((output, beginning) for output in STANDING_OUTPUTS), *((row.output, row) for row in effects)]
    return Recorded(files, records, tuple(rows))


@pytest.fixture(scope="session")
def changes(recorded: dict[str, Recorded], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a journal as `kontrast watch` does, with the records of both clusters."""
    directory = tmp_path_factory.mktemp("changes")
    with JournalWriter(directory) as writer:
        for record in _mixed([list(cluster.records) for cluster in recorded.values()]):
            writer.append([encode_record(record)])
    return directory


@pytest.fixture(scope="session")
def write_outputs(recorded: dict[str, Recorded], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that writes outputs as `kontrast stream` does. `batches` groups each output's lines."""

    def write(
        batches: Callable[[list[bytes]], list[list[bytes]]] = lambda lines: [lines],
        clusters: Sequence[str] = tuple(RECORDED),
        **options: object,
    ) -> Path:
        directory = tmp_path_factory.mktemp("derived")
        rows = list(_mixed([list(recorded[cluster].rows) for cluster in clusters]))
        for output in OUTPUTS:
            lines = [encode_row(row) for its_output, row in rows if its_output == output]
            with JournalWriter(directory / output, **options) as writer:
                for batch in batches(lines):
                    writer.append(batch)
        return directory

    return write


def _mixed(of_clusters: list[list]) -> Iterator:
    """Yield the items of several clusters in turn."""
    longest = max(map(len, of_clusters))
    for at in range(longest):
        yield from (one[at] for one in of_clusters if at < len(one))
