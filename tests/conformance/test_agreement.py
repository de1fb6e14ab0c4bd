"""The replica against the accounts of real controllers, with transitions, requests and gauges."""

from __future__ import annotations

import pytest

from controller.restore.stored_context import new_context
from controller.step import steps
from tests.conformance.agreement import account_of, differences, moves_agreement, requests_agreement
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
