"""Alerts in each recording, which must be exactly those that the steps of its script imply.

`alerts/` has the expected alerts, one file a recording, written by hand. A line has the alert, its highest severity,
and the steps of the script in which it opened and ended. The reason follows. `-` marks an alert that was open at the
end. Incidents of a broker are numbered, but the lines leave the number out, because no step implies it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.metadata_rows import BrokerRow
from controller.rules import timing
from tests.conformance.exceptions import PARTED
from tests.conformance.recording import Recording, Replay

EXPECTED = sorted((Path(__file__).parent / "alerts").glob("*.txt"))
# Causes of a broker's departure with this alert. A broker that is stopped while paused, or without a request, crashes.
CAUSES = {"BrokerCrashed": {"kill", "pause", "delete the broker's znode"}, "BrokerShutDown": {"stop"}}
EXPIRY_MS = 9_000  # longest time until ZooKeeper notices the end of a session

URGENCY = [Severity.INFO, Severity.WARN, Severity.PAGE]


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda file: file.stem)
def test_alerts_are_those_that_the_steps_imply(expected, recordings):
    assert opened_and_ended(*recordings(expected.stem)) == read_expected(expected)


def test_each_given_recording_has_its_alerts_written_down():
    assert {file.stem for file in EXPECTED} == {"dev39", "dev28", "dev11", "hard39", "race39"}


@pytest.mark.parametrize("name", sorted(PARTED))
def test_after_random_actions_brokers_left_as_was_done_to_them(name, recordings):
    recording, replay = recordings(name)
    for kind, broker, since_ms in departures(replay):
        deed = last_deed(recording, broker, since_ms)
        if kind == "BrokerShutDown" and ends_by_itself(recording, broker, since_ms):
            continue
        if kind == "BrokerCrashed" and was_stopped_while_it_started(recording, broker, since_ms):
            continue
        assert deed in CAUSES[kind], f"{kind} of broker {broker} at {since_ms}: {deed}"


@pytest.mark.parametrize("name", sorted(PARTED))
def test_after_random_actions_every_broker_that_was_killed_has_crashed_alerts(name, recordings):
    recording, replay = recordings(name)
    crashes = [(broker, since_ms) for kind, broker, since_ms in departures(replay) if kind == "BrokerCrashed"]
    ends_ms = replay.rows[-1].time_ms
    for at_ms, step in deeds(recording):
        if step["step"] == "kill" and at_ms + EXPIRY_MS < ends_ms and stays_dead(recording, step["broker"], at_ms):
            within = [
                since for broker, since in crashes if broker == step["broker"] and 0 <= since - at_ms <= EXPIRY_MS
            ]
            assert within, f"broker {step['broker']} was killed at {at_ms}, and nothing opened"


def departures(replay: Replay) -> list[tuple[str, int, int]]:
    """Return the alerts that name an absent broker, each with the broker and the time of its departure."""
    left_ms: dict[int, int] = {}
    found: dict[tuple[str, int, int], None] = {}
    for row in replay.rows:
        if isinstance(row, BrokerRow):
            left_ms.pop(row.broker, None) if row.registered else left_ms.update({row.broker: row.since_ms})
        elif isinstance(row, AlertRow) and row.alert in CAUSES and row.state == "open":
            away = [broker for broker in row.brokers if any(f"broker {broker} " in said for said in row.evidence)]
            found.update({(row.alert, broker, left_ms[broker]): None for broker in away if broker in left_ms})
    return list(found)


def deeds(recording: Recording) -> list[tuple[int, dict]]:
    """Return the actions on brokers, with their times."""
    steps = (json.loads(line) for line in (recording.directory / "steps.jsonl").read_text().splitlines())
    return [(int(step["t"] * 1000), step) for step in steps if "broker" in step]


def last_deed(recording: Recording, broker: int, before_ms: int) -> str:
    """Return the last action that can make the broker leave. A step may be written a moment after its action."""
    done = [step["step"] for at_ms, step in deeds(recording) if step["broker"] == broker and at_ms <= before_ms + 300]
    return [step for step in done if step not in ("start", "resume")][-1]


def ends_by_itself(recording: Recording, broker: int, before_ms: int) -> bool:
    """Return whether the broker gave up and closed its session. The recorder found it gone at its next start."""
    starts = [step["step"] for at_ms, step in deeds(recording) if step["broker"] == broker and at_ms > before_ms]
    return next((step for step in starts if step.startswith("start")), "") == "start again: it ended by itself"


def was_stopped_while_it_started(recording: Recording, broker: int, before_ms: int) -> bool:
    """Return whether a stop came before the broker was up. It then ends without a shutdown, and its session expires."""
    done = [(at_ms, step["step"]) for at_ms, step in deeds(recording) if step["broker"] == broker and at_ms < before_ms]
    return [step for at_ms, step in done if done[-1][0] - at_ms < timing.STARTING.ms] == ["start", "stop"]


def stays_dead(recording: Recording, broker: int, killed_ms: int) -> bool:
    """Return whether the broker is left alone until its session has expired. It may have left before the kill."""
    near = [
        step["step"]
        for at_ms, step in deeds(recording)
        if step["broker"] == broker and abs(at_ms - killed_ms) < EXPIRY_MS
    ]
    return near == ["kill"]


def read_expected(file: Path) -> list[tuple[str, ...]]:
    lines = (line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return sorted(tuple(part.strip() for part in line.split("|")[:4]) for line in lines)


def opened_and_ended(recording: Recording, replay: Replay) -> list[tuple[str, ...]]:
    """Return each alert with its highest severity, and the steps in which it opened and ended."""
    steps = steps_of(recording)
    open_now: dict[str, tuple[str, Severity]] = {}
    found = []
    for row in replay.rows:
        if not isinstance(row, AlertRow):
            continue
        step = [name for at_ms, name in steps if at_ms <= row.time_ms][-1]
        began, severity = open_now.get(row.id, (step, row.severity))
        if row.state == "resolved":
            found.append((without_number(row.id), severity.value, began, step))
            del open_now[row.id]
        else:
            open_now[row.id] = began, max(severity, row.severity, key=URGENCY.index)
    return sorted(
        found + [(without_number(key), severity.value, step, "-") for key, (step, severity) in open_now.items()]
    )


def without_number(key: str) -> str:
    return key.partition(" (")[0]


def steps_of(recording: Recording) -> list[tuple[float, str]]:
    """Return the start of each step of the script. A number distinguishes repeated steps."""
    steps = [json.loads(line) for line in (recording.directory / "steps.jsonl").read_text().splitlines()]
    names = [
        " ".join([step["step"], *(f"{key}={value}" for key, value in step.items() if key in "bpqx")]) for step in steps
    ]
    numbered = [
        name if names.count(name) == 1 else f"{name} #{names[: at + 1].count(name)}" for at, name in enumerate(names)
    ]
    return [(step["t"] * 1000, name) for step, name in zip(steps, numbered, strict=True)]
