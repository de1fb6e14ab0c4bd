"""The stories in `traces/`, run again. The replica must make exactly the rows in these files.

`REWRITE=1 pytest tests/controller/test_traces.py` writes the current rows. Commit only changes that you can explain.
"""

from pathlib import Path

import pytest

from tests.controller.trace_language import run_story
from tests.kept_texts import assert_as_before

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_a_story_has_the_same_rows_as_before(trace):
    assert_as_before(run_story(trace.read_text(encoding="utf-8")), trace)


def test_there_are_stories():
    assert len(TRACES) >= 12
