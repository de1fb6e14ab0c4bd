"""The replica against the accounts of real controllers, with transitions, their causes, requests and gauges."""

from __future__ import annotations

import pytest

from controller.restore.stored_context import new_context
from controller.step import steps
from tests.conformance.agreement import account_of, differences, moves_agreement, requests_agreement
from tests.conformance.causes import compare_causes, derived_causes, read_causes
from tests.conformance.gauge_samples import compare_gauges
from tests.conformance.recording import SETTINGS

RECORDINGS = ("dev39", "dev28", "dev11", "hard39", "race39", "racks39")
WITH_GAUGES = ("dev39", "dev28")


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_transition_and_request_is_the_controllers_own(name, recordings, report):
    recording, replay = recordings(name)
    real, ours = recording.account(), account_of(replay.rows)
    moves, requests = moves_agreement(real, ours), requests_agreement(real, ours)
    report.append(f"{name:8} transitions {moves}   requests {requests}")
    assert moves.matched == moves.real == moves.derived, "\n".join(differences(real, ours)[:20])
    assert requests.matched == requests.real == requests.derived


@pytest.mark.parametrize("name", WITH_GAUGES)
def test_every_gauge_is_the_active_controllers_at_quiet_moments(name, recordings, report):
    recording, replay = recordings(name)
    equal, compared, wrong = compare_gauges(recording, replay)
    report.append(f"{name:8} gauges {equal} equal of {compared} compared")
    assert compared > 300
    assert wrong == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_nothing_in_a_recording_is_unexplained(name, recordings):
    _, replay = recordings(name)
    assert replay.gauges[-1].divergences == {}


@pytest.mark.parametrize("name", RECORDINGS)
def test_many_records_at_once_give_the_same_rows_as_one_by_one(name, recordings):
    recording, replay = recordings(name)
    context = new_context("recorded", SETTINGS, recording.profile(), chunk_count=16)
    assert list(steps(context, list(recording.records())).effects) == replay.rows


# Partitions that the script had reassigned, by API or znode. The controller's log does not distinguish the two ways.
REASSIGNED = {
    "dev39": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "dev28": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "dev11": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "hard39": {"ApiPartitionReassignment": {"a-0", "a-1", "e-0", "e-1"}, "ZkPartitionReassignment": {"e-1"}},
    # Of two requests with three partitions each, those that no failover cut. The others belong to the failover.
    "race39": {"ZkPartitionReassignment": {"a-2", "a-3", "b-2", "b-3"}},
}


@pytest.mark.parametrize("name", [*REASSIGNED])
def test_every_cause_is_what_the_controller_was_handling(name, recordings, report):
    recording, replay = recordings(name)
    agreement = compare_causes(read_causes(sorted(recording.directory.glob("logs*"))), derived_causes(replay.rows))
    report.append(f"{name:8} causes {agreement}")
    assert agreement.compared > 400
    assert not agreement.wrong, "\n".join(
        f"{count} x real {real}, derived {derived}: {agreement.examples[real, derived]}"
        for (real, derived), count in agreement.wrong.most_common()
    )


@pytest.mark.parametrize("name", [*REASSIGNED])
def test_a_reassignment_by_znode_and_one_by_the_api_are_distinguished(name, recordings):
    _, replay = recordings(name)
    told: dict[str, set[str]] = {}
    for subject, moves in derived_causes(replay.rows).items():
        for caused in moves:
            if caused.kind.endswith("PartitionReassignment"):
                told.setdefault(caused.kind, set()).add(subject.partition("@")[0])
    assert told == REASSIGNED[name]
