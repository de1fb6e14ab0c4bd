"""Recorded durations, which choose and order the tests."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.durations import PROMISES, QUICK_SECONDS, Durations, Recorder

ROOT = Path(__file__).parents[1]
PROMISED = [test for tests in PROMISES.values() for test in tests]


def item(nodeid, group=None):
    mark = SimpleNamespace(args=(group,)) if group else None
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: mark)


def test_units_of_a_second_are_recorded_and_a_part_of_the_tests_replaces_its_own(tmp_path):
    file, test = tmp_path / "durations.json", "tests/test_durations.py::"
    file.write_text(json.dumps({"browser": 9, f"{test}b": 9, f"{test}d": 9, "tests/test_gone.py::d": 9}))
    recorder = Recorder(file)
    took = {f"{test}a@spark": 1.5, f"{test}b@spark": 1.0, f"{test}c[d@e]": 3.0, f"{test}c[f]": 2.0, f"{test}quick": 0.2}
    for nodeid, seconds in took.items():
        recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=seconds))
    recorder.pytest_sessionfinish()
    assert json.loads(file.read_text()) == {"browser": 9, "spark": 2.5, f"{test}c": 3.0, f"{test}d": 9, f"{test}b": 9}
    Recorder(file, is_whole=True).pytest_sessionfinish()
    assert json.loads(file.read_text()) == {}


def test_a_long_unit_is_left_out_but_for_what_the_readme_promises(tmp_path):
    file = tmp_path / "durations.json"
    file.write_text(json.dumps({"browser": QUICK_SECONDS + 1, "t.py::long": 99, PROMISED[0]: 99, "t.py::short": 1}))
    durations = Durations(file)
    assert not durations.is_quick(item("t.py::long"))
    assert not durations.is_quick(item("t.py::one[x]@browser", "browser"))
    assert durations.is_quick(item("t.py::short"))
    assert durations.is_quick(item("t.py::new"))
    assert durations.is_quick(item(f"{PROMISED[0]}[x]@browser", "browser"))


@pytest.mark.parametrize("test", PROMISED)
def test_a_promised_test_is_there(test):
    file, _, name = test.partition("::")
    functions = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")}
    assert name.partition("[")[0] in functions
