"""The stories in `traces/`, run again. The replica must make exactly the rows in these files.

`REWRITE=1 pytest tests/controller/test_traces.py` writes the current rows. Commit only changes that you can explain.
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
