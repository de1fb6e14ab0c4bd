"""The rules of inference against the recordings that they rest on, and the agreement that they make."""

from __future__ import annotations

import json

import pytest

from controller.contract.effect_rows import Request, Transition
from controller.contract.gauges_row import INFERENCES
from controller.contract.records import RecordKind
from controller.inference.hypotheses.table import OTHER_INFERENCES, RULES
from tests.conformance.recording import Recording

EVIDENCE = [(rule.name, name) for rule in RULES for name in rule.seen_in]
EVIDENCE += [(other.name, name) for other in OTHER_INFERENCES for name in other.seen_in]

# How many writes of a recording's controllers were expected, inferred and unexplained.
VERDICTS = {"dev39": (109, 22, 0), "fuzz22a": (374, 63, 0), "fuzz011a": (295, 30, 2), "fuzz39g": (425, 19, 0)}


@pytest.mark.parametrize(("rule", "name"), EVIDENCE)
def test_a_rule_explains_writes_of_the_recordings_it_rests_on(rule, name, recordings):
    _, replay = recordings(name)
    happened = replay.context.header.tally.happened
    assert rule in {**happened.inferences, **happened.inferred_events}


@pytest.mark.parametrize(("name", "verdicts"), VERDICTS.items())
def test_agreement_counts_each_write_of_a_controller_once(name, verdicts, recordings):
    recording, replay = recordings(name)
    gauges = replay.gauges[-1]
    assert tuple(gauges.writes.values()) == verdicts
    assert sum(verdicts) == writes_of_controllers(recording)
    assert gauges.agreement == 1 - verdicts[-1] / sum(verdicts)
    assert sum(gauges.inferences.values()) == gauges.writes["inferred"]


def writes_of_controllers(recording: Recording) -> int:
    """Count the states in ZooKeeper's log with a new leader or leader epoch. Leaders write only ISRs."""
    last: dict[str, tuple[int, int]] = {}
    count = 0
    for record in recording.records():
        if not record.path.endswith("/state"):
            continue
        if record.kind is RecordKind.DELETED:
            last.pop(record.path, None)
        elif record.kind is RecordKind.NODE:
            state = json.loads(record.raw)
            led = state["leader"], state["leader_epoch"]
            count += last.get(record.path) != led
            last[record.path] = led
    return count


@pytest.mark.parametrize("name", VERDICTS)
def test_each_row_that_rests_on_an_inference_names_its_rule_and_evidence(name, recordings):
    _, replay = recordings(name)
    rows = [row for row in replay.rows if isinstance(row, (Transition, Request)) and row.inferred_by]
    assert {row.inferred_by for row in rows} <= set(INFERENCES)
    assert all(row.inferred_from for row in rows)
    assert {row.inferred_by for row in rows} <= replay.gauges[-1].inferred_events.keys()
