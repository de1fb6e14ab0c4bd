"""The report of two recorded clusters: the same from ZooKeeper's files, from changes and from outputs, as replay's."""

from __future__ import annotations

import threading

import msgspec
import pytest

from reports.config import ReportConfig, ZooKeeperFiles
from reports.job import reports_of
from streaming.errors import StreamError
from transport.address import JournalAddress


@pytest.fixture
def reported(spark):
    """The reports of a source, as JSON has them, by cluster."""

    def reported(source, **settings) -> dict[str, dict]:
        found = reports_of(spark, ReportConfig(source=source, **settings), threading.Event())
        return {report.cluster: msgspec.json.decode(msgspec.json.encode(report)) for report in found}

    return reported


def files_of(recorded) -> ZooKeeperFiles:
    return ZooKeeperFiles({name: (cluster.files,) for name, cluster in recorded.items()}, "/")


def test_files_changes_and_outputs_of_two_clusters_say_what_replay_says(recorded, changes, write_outputs, reported):
    expected = {name: cluster.summary for name, cluster in recorded.items()}
    assert {report["offline_partition_minutes"] > 0 for report in expected.values()} == {True}
    assert reported(files_of(recorded)) == expected
    assert reported(JournalAddress(changes)) == expected
    assert reported(JournalAddress(write_outputs())) == expected
