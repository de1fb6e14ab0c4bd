"""The stories in `traces/`, run again: the replica's rows must be the ones that are written there.

`REWRITE=1 pytest tests/controller/test_traces.py` writes down what it makes of them now; commit only what you can
explain.
"""

import os
from pathlib import Path

import pytest

from tests.controller.trace_language import run_story

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_a_story_has_the_same_rows_as_before(trace):
    written = trace.read_text(encoding="utf-8")
    told = run_story(written)
    if os.environ.get("REWRITE"):
        trace.write_text(told, encoding="utf-8")
    else:
        assert told == written


def test_there_are_stories():
    assert len(TRACES) >= 12
