"""Recorded durations of the tests, by which a run is ordered, and by which `make test` chooses its tests.

A *unit* is what one process runs in turn: the tests of an xdist group, or one test alone. `durations.json` has the
seconds of each unit that took longer than a second, from a run on idle cores. For a test with several parameters, the
longest counts. `make durations` records them again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).with_suffix(".json")
ROOT: Final = Path(__file__).parents[1]
# `make test` leaves out longer units, which are all that are recorded. By the records the others need 250 s in three
# processes on two idle cores.
QUICK_SECONDS: Final = 1.0

# Tests that `make test` runs however long they take: one at least for each promise of the README.
PROMISES: Final = {
    "the page and the metrics name the partitions of a killed broker": (
        "tests/integration/test_pipeline.py::test_the_offline_partitions_of_a_killed_broker_are_named_by_the_exporter",
        "tests/dashboards/test_live_page.py::test_a_killed_broker_shows_within_two_seconds_of_its_row",
    ),
    "rows equal the controller's own log": (
        "tests/conformance/test_agreement.py::test_every_transition_and_request_is_the_controllers_own[race39]",
        "tests/streaming/test_job.py::test_every_output_holds_what_the_replica_says_row_for_row",
    ),
    "the watched ensemble is only read": (
        "tests/ingest/test_forwarder.py::test_the_watched_ensemble_sees_nothing_but_a_session_that_opens_and_closes",
    ),
    "a question is answered at a real cluster": (
        "tests/cli/test_questions_live.py::test_the_answers_are_what_clients_and_the_controller_do",
    ),
    "the demo starts a cluster and leaves no process": (
        "tests/cli/test_demo.py::test_no_process_is_left_when_the_demo_is_ended_in_the_middle[2]",
    ),
}
_PROMISED: Final = tuple(test for tests in PROMISES.values() for test in tests)
_GROUPED: Final = re.compile(r"(.*)@([^\]]*)")  # a test's name with the group that xdist appends


def unit_of(item: pytest.Item) -> str:
    """Return the name of the test's group, or of the test without its parameters."""
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0]) if group else item.nodeid.partition("[")[0]


class Durations:
    """Recorded seconds by unit. A unit without a record counts as quick."""

    def __init__(self, file: Path = FILE) -> None:
        self.recorded: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def of(self, item: pytest.Item) -> float:
        """Return the seconds of the test's unit."""
        return self.recorded.get(unit_of(item), 0.0)

    def is_quick(self, item: pytest.Item) -> bool:
        """Return whether `make test` runs the test."""
        return self.of(item) <= QUICK_SECONDS or item.nodeid.startswith(_PROMISED)


class Recorder:
    """A plugin of the run's own process that notes the seconds of each unit, and writes them at the end.

    A run of a part of the tests replaces the records of its own units, and those of files that are gone. A run of all
    tests replaces every record.
    """

    def __init__(self, file: Path = FILE, *, is_whole: bool = False) -> None:
        self._file = file
        self._earlier = {} if is_whole else Durations(file).recorded
        self._of_groups: defaultdict[str, float] = defaultdict(float)
        self._of_tests: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test, whose group xdist appends to its name."""
        if grouped := _GROUPED.fullmatch(report.nodeid):
            self._of_groups[grouped[2]] += report.duration
        else:
            self._of_tests[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        longest = dict(self._of_groups)
        for nodeid, seconds in self._of_tests.items():
            test = nodeid.partition("[")[0]
            longest[test] = max(longest.get(test, 0), seconds)
        for unit, seconds in self._earlier.items():
            if unit not in longest and ("::" not in unit or (ROOT / unit.partition("::")[0]).exists()):
                longest[unit] = seconds
        long = {unit: round(took, 1) for unit, took in sorted(longest.items()) if took > QUICK_SECONDS}
        self._file.write_text(json.dumps(long, indent=1) + "\n", encoding="utf-8")
