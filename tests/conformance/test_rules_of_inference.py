"""The rules of inference against the recordings that they rest on."""

from __future__ import annotations

import pytest

from controller.inference.hypotheses.table import RULES

# A rule of its own beside the table's: no write shows what a deposed controller does up to its fenced one.
FENCED = "ran-to-fenced-write"
EVIDENCE = [
    *((rule.name, name) for rule in RULES for name in rule.seen_in),
    *((FENCED, name) for name in ("fuzz22a", "fuzz28c", "unseen39b")),
]


@pytest.mark.parametrize(("rule", "name"), EVIDENCE)
def test_a_rule_explains_writes_of_the_recordings_it_rests_on(rule, name, recordings):
    _, replay = recordings(name)
    assert replay.context.header.tally.happened.get(f"inferred/{rule}", 0) > 0
