"""`kontrast migration check --zk-data`, with the same findings in copied files, and those at the end of recordings."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from cli.running import ExitCode
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from ingest.observed.paths import is_copied
from migration.preflight.report import examine
from migration.preflight.tree import Tree
from tests.clients import zookeeper_client
from tests.conformance.recording import ARCHIVES, unpack
from tests.migration.trees import FAULTS, built, clean

# Faults at the end of a recording, beside those of its release. It stops in the midst of its actions.
_WAITS_FOR_A_BROKER = {
    "absent-broker",
    "reassignment",
    "leftover-trigger",
}  # reassigned onto a broker that is not there
_AT_THE_END: dict[str, set[str]] = {
    "below39": {"topic-without-id", "protocol-version", "pending-deletion", *_WAITS_FOR_A_BROKER},  # protocol 2.6
    "fuzz0102a": {"absent-broker", "pending-deletion"},
    "fuzz10a": {"leftover-trigger"},
    "fuzz20c": {"absent-broker"},
    "fuzz20d": {"absent-broker", "leftover-trigger"},
    "fuzz20f": {"pending-deletion"},
    "fuzz22a": {"absent-broker"},
    "fuzz24a": _WAITS_FOR_A_BROKER,
    "fuzz28c": _WAITS_FOR_A_BROKER,
    "fuzz28i": _WAITS_FOR_A_BROKER,
    "fuzz28g": _WAITS_FOR_A_BROKER,
    "fuzz30a": {"offline-log-directory"},
    "fuzz32a": {"pending-deletion"},
    "fuzz39a": _WAITS_FOR_A_BROKER,
    "fuzz39c": {"pending-deletion"},
    "fuzz39e": {"leftover-trigger"},
    "fuzz39f": {"offline-log-directory", "reassignment", "leftover-trigger"},
    "fuzz39h": _WAITS_FOR_A_BROKER,
    # Most of their registered brokers are only names, so replicas stay out of sync there, and deletions wait.
    "large11": {"absent-broker", "offline-log-directory", "no-state", "pending-deletion", "leftover-trigger"},
    "large24": {"offline-log-directory", "pending-deletion", *_WAITS_FOR_A_BROKER},
    "large28": {"offline-log-directory", "pending-deletion", *_WAITS_FOR_A_BROKER},
    "large28b": {"offline-log-directory", "pending-deletion"},
    "large39": {"offline-log-directory", "pending-deletion"},
    "migration39": {"orphan-config"},  # of a topic that was deleted in the dual write
    "roll11to24": _WAITS_FOR_A_BROKER,
    "racks39b": {"absent-broker", "no-leader"},
    "racks39c": {"absent-broker", "no-leader"},
    "roll28to39": _WAITS_FOR_A_BROKER,
    "unseen22": {"absent-broker", "leftover-trigger"},
    "unseen35": _WAITS_FOR_A_BROKER,
    "unseen35b": {"offline-log-directory"},
    "unseen39c": {"pending-deletion"},
    "unseen39": _WAITS_FOR_A_BROKER,
}
_BY_RELEASE = (((3, 4), set()), ((2, 8), {"protocol-version"}), ((0, 0), {"protocol-version", "topic-without-id"}))


@pytest.mark.parametrize("name", sorted(file.name.partition(".")[0] for file in ARCHIVES.glob("*.tar.xz")))
def test_a_recorded_cluster_gives_what_is_there_at_its_end(tmp_path, name):
    recording = unpack(name, tmp_path)
    last = recording.last_zxid()
    until = None if last is None else Until(zxid=last)
    values = FileHistory([recording.directory / "zk"], "", until=until, matters=is_copied).last_znodes()
    tree = Tree(values)
    of_release = next(rows for first, rows in _BY_RELEASE if tree.releases()[0] >= first)
    assert {found.check.name for found in examine(tree).found} == of_release | _AT_THE_END.get(name, set())


def _lines(*arguments: object) -> tuple[int, list[dict]]:
    done = CliRunner().invoke(main, ["migration", "check", "--json", *map(str, arguments)])
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


def test_copied_files_say_what_the_zookeeper_says(zookeeper, tmp_path):
    faults = ("earlier-attempt", "quota-unknown", "acl-no-json", "absent-broker", "stray-state", "orphan-config")
    tree = clean()
    for name in faults:
        FAULTS[name][1](tree)
    at = f"{zookeeper.connect_string}/kafka"
    _make_chroot(zookeeper.connect_string)
    with built(at, tree) as client:
        client.create("/config/topics/gone-again")
        client.delete("/config/topics/gone-again")
        client.set("/config/topics/a", json.dumps({"version": 1, "config": {}}).encode())
        asked = _lines("--zookeeper", at)
        zookeeper.kill()  # the session stays in the files as it was
        copied = _lines("--zk-data", zookeeper.data_directory, "--chroot", "/kafka")
    assert copied[0] == asked[0] == ExitCode.FAILED
    assert _findings(copied[1]) == _findings(asked[1])
    assert Counter(check for check, _, _ in _findings(asked[1])) == Counter(faults)
    unchecked = {line["check"] for line in copied[1] if line["type"] == "not-checked"}
    assert "zookeeper-acls" in unchecked


def _findings(lines: list[dict]) -> list[tuple[str, str, str]]:
    return [(line["check"], line["znode"], line["detail"]) for line in lines if line["type"] == "finding"]


def _make_chroot(connect: str) -> None:
    with zookeeper_client(connect) as client:
        client.create("/kafka")


def test_files_of_another_chroot_are_refused(zookeeper):
    _make_chroot(zookeeper.connect_string)
    with built(f"{zookeeper.connect_string}/kafka", clean()):
        zookeeper.kill()
        done = CliRunner().invoke(main, ["migration", "check", "--zk-data", str(zookeeper.data_directory)])
    assert done.exit_code == ExitCode.USAGE
    assert "they have one below /kafka. Give --chroot" in done.stderr


def test_a_directory_without_files_is_said(tmp_path: Path):
    done = CliRunner().invoke(main, ["migration", "check", "--zk-data", str(tmp_path)])
    assert done.exit_code == ExitCode.UNAVAILABLE
    assert "Name a ZooKeeper server's dataDir" in done.stderr
