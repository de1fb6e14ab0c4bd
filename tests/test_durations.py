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


def test_a_group_is_recorded_as_a_whole_and_shorter_than_a_second_is_not(tmp_path):
    recorder = Recorder(tmp_path / "durations.json")
    took = {"t.py::a@browser": 1.5, "t.py::b@browser": 1.0, "t.py::c[d@e]": 3.0, "t.py::c[f]": 2.0, "t.py::quick": 0.2}
    for nodeid, seconds in took.items():
        recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=seconds))
    recorder.pytest_sessionfinish()
    assert json.loads((tmp_path / "durations.json").read_text()) == {"browser": 2.5, "t.py::c": 3.0}


def test_a_part_of_the_tests_replaces_its_own_records(tmp_path):
    file = tmp_path / "durations.json"
    test = "tests/test_durations.py::"
    file.write_text(json.dumps({"browser": 9, f"{test}a": 9, f"{test}b": 9, f"{test}c": 9, "tests/test_gone.py::d": 9}))
    recorder = Recorder(file)
    for nodeid, seconds in {f"{test}a": 3.0, f"{test}b": 0.5}.items():
        recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=seconds))
    recorder.pytest_sessionfinish()
    assert json.loads(file.read_text()) == {"browser": 9, f"{test}a": 3.0, f"{test}c": 9}
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
