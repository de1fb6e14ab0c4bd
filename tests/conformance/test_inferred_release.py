"""The release that the core infers from the znodes of real releases, which must never exclude the true one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.contract.records import RecordKind
from controller.model.context import Header
from controller.restore.stored_context import new_context
from controller.rules.releases import Release, profile_of, read_release
from controller.step import step
from tests.conformance.large import LARGE
from tests.conformance.recording import ARCHIVES, PICTURED, unpack
from tests.controller.znode_history import ZnodeHistory

# The znodes of a cluster of each release with one broker and one topic, as their controller left them.
SEEN = [json.loads(line) for line in (Path(__file__).parent / "first-znodes.jsonl").read_text().splitlines()]

# The recorded registrations are without their broker's address, which no other broker has.
ADDRESS = {"host": "127.0.0.1", "port": 9092, "jmx_port": -1, "endpoints": ["PLAINTEXT://127.0.0.1:9092"]}

# The znodes of RELEASE at PROTOCOL (empty for its own) fit no older and no newer release than these.
TOLD_APART = {
    ("2.2.2", ""): ((2, 2), (2, 3)),
    ("2.4.1", ""): ((2, 4), (2, 6)),
    ("2.6.3", ""): ((2, 4), (2, 6)),
    ("2.7.2", "2.6"): ((2, 7), (2, 7)),
    ("2.7.2", "2.7"): ((2, 7), (2, 7)),
    ("2.8.2", "2.6"): ((2, 8), (3, 3)),
    ("2.8.2", "2.8"): ((2, 8), (3, 3)),
    ("3.2.3", ""): ((2, 8), (3, 3)),
    **dict.fromkeys([("3.5.2", protocol) for protocol in ("3.2", "3.3", "3.5")], ((3, 4), (3, 9))),
    **dict.fromkeys([("3.9.2", protocol) for protocol in ("2.6", "2.7", "3.3", "3.9")], ((3, 4), (3, 9))),
}


def header_of(znodes: dict) -> Header:
    """Return the header after a complete read that found these znodes."""
    history = ZnodeHistory()
    history.send(RecordKind.SNAPSHOT_BEGIN)
    for path, found in znodes.items():
        if found is not None:
            content = found["content"]
            if path.startswith("/brokers/ids/"):
                content = {**ADDRESS, **content}
            written = str(content).encode() if isinstance(content, int) else content
            history.write(path, written, version=found["version"])
    history.send(RecordKind.SNAPSHOT_END)
    assert history.refusals() == []
    return history.context.header


def test_every_release_and_protocol_was_recorded():
    assert {(seen["kafka"], seen["protocol"]) for seen in SEEN} == TOLD_APART.keys()


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen['kafka']} {seen['protocol']}".strip())
def test_a_release_is_distinguished_by_the_znodes_it_leaves(seen):
    header = header_of(seen["znodes"])
    oldest, newest = TOLD_APART[seen["kafka"], seen["protocol"]]
    assert header.configuration.evidence.releases() == (oldest, newest)
    assert oldest <= read_release(seen["kafka"]) <= newest


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen['kafka']} {seen['protocol']}".strip())
def test_isr_notifications_follow_from_the_protocol_not_from_the_binary(seen):
    """From IBP 2.7 on leaders ask the controller to write. Before, they write and notify it."""
    asks = read_release(seen["protocol"] or seen["kafka"]) >= (2, 7)
    assert header_of(seen["znodes"]).profile.hears_isr_changes_at_once is asks


def test_without_the_finalized_features_2_7_was_taken_for_an_older_release():
    (seen,) = (seen for seen in SEEN if (seen["kafka"], seen["protocol"]) == ("2.7.2", "2.6"))
    assert header_of(seen["znodes"] | {"/feature": None}).profile.release == (2, 4)
    assert header_of(seen["znodes"]).profile.release == (2, 7)


def named(name: str) -> Release | None:
    """Return the release in a recording's name, or None for a name without one."""
    return {"dev11": (1, 1), "dev28": (2, 8), "dev39": (3, 9), "hard39": (3, 9), "race39": (3, 9)}.get(name)


# Without large clusters and those of pictures, which take long, and upgraded ones, which have two releases.
NAMES = {path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")} - LARGE.keys() - PICTURED


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_recording_is_taken_for_a_release_that_leaves_the_same(name, tmp_path):
    recording = unpack(name, tmp_path)
    told = recording.profile()
    release = named(name) if told is None else told.release
    context, seq = new_context("recorded", chunk_count=1), 0
    for record in recording.records():
        if record.path.endswith("/state") or record.kind is RecordKind.HEARTBEAT:
            continue  # without information on the release
        context = step(context, replace(record, seq=seq)).context
        seq += 1
    oldest, newest = context.header.configuration.evidence.releases()
    assert release is not None
    assert oldest <= release <= newest or release < (1, 1)
    inferred = context.header.profile.hears_isr_changes_at_once
    assert inferred is (
        profile_of(release).hears_isr_changes_at_once and not context.header.configuration.evidence.notifies_isr_changes
    )
