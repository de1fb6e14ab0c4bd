"""Maintenance windows from a real file into a real forwarder's heartbeats."""

from __future__ import annotations

import logging
import os
import time
from datetime import datetime, timezone

import pytest

from controller.contract.forwarder_status import ForwarderStatus, MaintenanceWindow
from controller.contract.records import RecordKind
from controller.contract.znodes import decode
from ingest.config import IngestConfig
from ingest.errors import IngestError
from ingest.maintenance import AnnouncedWindow, MaintenanceFile, changing_windows, read_windows
from tests.ingest.conftest import make_cluster
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.forwarding import Forwarding

FAR = "2999-01-01T00:00:00Z"
FAR_MS = 32472144000000


def write(file, text):
    """Replace the file as an editor does."""
    beside = file.with_name("beside")
    beside.write_text(text)
    os.replace(beside, file)


def window(cluster="test", brokers="[3]", until=FAR, more=""):
    return f'[[window]]\ncluster = "{cluster}"\nbrokers = {brokers}\nuntil = {until}\n{more}\n'


def shown(watching):
    """Return the windows in each heartbeat."""
    return [
        decode(record.raw, ForwarderStatus).maintenance
        for record in watching.records()
        if record.kind is RecordKind.HEARTBEAT
    ]


def test_heartbeats_show_the_windows_of_the_cluster_until_they_are_taken_back(kafka, watch, tmp_path):
    make_cluster(kafka)
    file = tmp_path / "maintenance.toml"
    watching = watch(maintenance_file=file)
    watching.settled()
    assert set(shown(watching)) == {()}
    write(file, window(more='reason = "disks"') + window("another") + window(brokers="[]"))
    expected = (
        MaintenanceWindow(brokers=(3,), until_ms=FAR_MS, reason="disks"),
        MaintenanceWindow(brokers=(), until_ms=FAR_MS),
    )
    eventually(lambda: shown(watching)[-1] == expected)
    assert watching.forwarding.maintenance_windows == 2
    sessions = [record for record in watching.records() if record.kind is RecordKind.SESSION]
    assert all(decode(record.raw, ForwarderStatus).maintenance == () for record in sessions)
    file.unlink()
    eventually(lambda: shown(watching)[-1] == ())


def test_a_window_ends_by_time_without_a_change_of_the_file(kafka, watch, tmp_path):
    make_cluster(kafka)
    file = tmp_path / "maintenance.toml"
    end_ms = (time.time_ns() // 1_000_000 // 1000 + 5) * 1000
    end = datetime.fromtimestamp(end_ms / 1000, timezone.utc)
    write(file, window(until=end.isoformat()))
    watching = watch(maintenance_file=file)
    eventually(lambda: len(shown(watching)) > 0 and shown(watching)[-1] == ())
    for record in watching.records():
        if record.kind is RecordKind.HEARTBEAT:
            in_force = decode(record.raw, ForwarderStatus).maintenance
            assert all(one.until_ms == end_ms for one in in_force)
            assert not in_force or record.observed_ms <= end_ms + 2000  # the time is read just before it is published
    assert shown(watching)[0] != ()


def test_a_file_that_cannot_be_read_is_logged_once_and_the_windows_stay(kafka, watch, tmp_path, caplog):
    make_cluster(kafka)
    file = tmp_path / "maintenance.toml"
    write(file, window())
    watching = watch(maintenance_file=file)
    eventually(lambda: len(shown(watching)) > 0)
    write(file, "[[window]\n")
    eventually(lambda: watching.forwarding.bad_maintenance_files == 1)
    watching.settled()
    assert shown(watching)[-1] == (MaintenanceWindow(brokers=(3,), until_ms=FAR_MS),)
    assert watching.forwarding.bad_maintenance_files == 1
    (told,) = [record for record in caplog.records if record.levelno == logging.WARNING and "TOML" in record.message]
    assert str(file) in told.message
    write(file, window(brokers=f"[{'9' * 5_000}]"))
    eventually(lambda: watching.forwarding.bad_maintenance_files == 2)
    watching.settled()
    assert shown(watching)[-1] == (MaintenanceWindow(brokers=(3,), until_ms=FAR_MS),)
    write(file, window(brokers="[4]"))
    eventually(lambda: shown(watching)[-1] == (MaintenanceWindow(brokers=(4,), until_ms=FAR_MS),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no toml at all", "not a TOML file"),
        ("a = " + "[" * 2_000, "not a TOML file"),
        ("[[windows]]\n", "unknown field `windows`"),
        ('[[window]]\ncluster = "a"\n', "missing required field `until`"),
        (window(more="colour = 1"), "unknown field `colour`"),
        (window(brokers='["three"]'), "Expected `int`"),
        (window(until="2026-11-21T22:00:00"), "no offset from UTC"),
        (window(until="2026-11-21"), "Expected `datetime`"),
        (window(until="9999-12-31T23:59:59-01:00"), "not within the years 1 to 9999"),
        (window(brokers="[99999999999]"), "Expected `int` <= 2147483647"),
        (window(brokers=f"[{'9' * 5_000}]"), "an integer in it has more than 64 bits"),
        (window(more=f'reason = "{"x" * 501}"'), "Expected `str` of length <= 500"),
        ("#" * 65_537, "longer than 65,536 bytes"),
    ],
)
def test_what_is_no_file_of_windows_is_refused_in_one_sentence(tmp_path, text, said):
    file = tmp_path / "maintenance.toml"
    file.write_text(text)
    with pytest.raises(IngestError) as refusal:
        read_windows(file)
    assert said in str(refusal.value)
    assert str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_folder_in_the_place_of_the_file_is_logged_and_counted(tmp_path):
    forwarding = Forwarding("test")
    windows = MaintenanceFile(tmp_path, forwarding)
    assert windows.in_force(0) == windows.in_force(0) == ()
    assert forwarding.bad_maintenance_files == 1


def test_what_a_command_writes_is_read_back_whatever_the_reason_says(tmp_path):
    file = tmp_path / "maintenance.toml"
    until = datetime(2999, 1, 1, tzinfo=timezone.utc)
    reasons = ['quo"te \\ back', "Grüße 日本", "", "# no comment", "'''", "\U0001f600"]
    windows = [
        AnnouncedWindow(id=f"w{n}", cluster="a b", until=until, reason=reason) for n, reason in enumerate(reasons)
    ]
    with changing_windows(file) as replace:
        replace(windows)
    assert read_windows(file) == tuple(windows)
    with changing_windows(file) as replace:
        replace([AnnouncedWindow(id="x", cluster="a", until=until, reason="one\nline\x7f\x00")])
    assert read_windows(file)[0].reason == "one line  "


def test_who_may_read_the_file_stays_as_it_was(tmp_path):
    file = tmp_path / "maintenance.toml"
    file.write_text(window())
    file.chmod(0o640)
    with changing_windows(file) as replace:
        replace(read_windows(file))
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["maintenance.toml", "maintenance.toml.lock"]


def test_windows_written_by_hand_without_an_id_have_names_that_differ(tmp_path):
    file = tmp_path / "maintenance.toml"
    file.write_text(window() + window(brokers="[4]"))
    first, second = read_windows(file)
    assert first.name != second.name
    assert len(first.name) == 8
    assert read_windows(file)[0].name == first.name


def test_a_maintenance_file_in_a_folder_that_is_not_there_is_refused_at_the_start(tmp_path):
    with pytest.raises(IngestError, match="cannot be used. Create its directory"):
        IngestConfig(
            cluster="test",
            zookeeper="zk:2181",
            to=JournalAddress(tmp_path),
            maintenance_file=tmp_path / "nowhere" / "maintenance.toml",
        )
