"""One cluster at one moment has one answer to each question, whichever source it is taken from.

A fact that a source cannot have is unknown in its answer. `Unknown` lists these facts by source.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from questions.diff.differences import diff
from questions.diff.side import Side
from questions.lint.table import CHECKS
from questions.picture import Picture
from tests.questions.one_cluster import Answers, Cluster, answers, page_answers, sides, unpacked


class Moment(NamedTuple):
    """Heartbeat of a recorded cluster; `at_rest`: the controller had nothing to write."""

    recording: str
    at_ms: int
    at_rest: bool = False
    racks: dict[int, str] = {}


TWO_RACKS: Final = {1: "a", 2: "a", 3: "b", 4: "b"}
MOMENTS: Final = {
    "healthy": Moment("roll28to39", 1795372250732, at_rest=True),
    "creations-due": Moment("fuzz11c", 1795399556050),
    "deletion-hangs": Moment("roll28to39", 1795372175732, at_rest=True),
    "deletion-and-failover": Moment("roll28to39", 1795372165732),
    "no-controller": Moment("fuzz20d", 1795394898310, at_rest=True),
    "no-controller-and-two-away": Moment("fuzz20d", 1795394935310),
    "rack-lost-under-min-isr": Moment("fuzz20f", 1795399474686, racks=TWO_RACKS),
    "rack-lost-writes-due": Moment("fuzz20f", 1795399475686, racks=TWO_RACKS),
    "ghost-controller": Moment("below39", 1795372565676),
    "partitions-offline": Moment("operator39", 1795373068853),
    "kraft-leads": Moment("migration39", 1795338280688),
}

# A page has no steps: its timeline has them. Its present is now, and the recordings are old.
NOT_ON_THE_PAGE: Final = {"causes": None, "doubts": None}
# The past of a look is the last write of each znode. Alerts of history and patience need more.
NOT_IN_A_LOOK: Final = frozenset({"causes", "findings", "since"})
_HOW_A_BROKER_LEFT: Final = re.compile(
    r"(broker \d+ )?(left without shutting down|shut down in order|left|was never seen)( at zxid 0x[0-9a-f]+|,? unseen)?"
)


class Asked(NamedTuple):
    """Moment, with its picture from ZooKeeper's files and the answers that follow from it."""

    moment: Moment
    cluster: Cluster
    files: Picture
    answers: Answers


@pytest.fixture(scope="module", params=MOMENTS)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    moment: Moment = MOMENTS[request.param]
    directory: Path = tmp_path_factory.mktemp(request.param)
    cluster = Cluster(unpacked(moment.recording, directory), moment.at_ms, directory, moment.racks)
    files = cluster.from_files()
    return Asked(moment, cluster, files, answers(files))


def test_the_changes_answer_as_the_files_do(asked):
    assert differing(asked.answers, answers(asked.cluster.from_changes())) == {}


def test_the_outputs_answer_as_the_files_do(asked):
    found = dict(answers(asked.cluster.from_derived()))
    findings, known = found.pop("lint"), {**asked.answers}
    unknown = {finding["check"] for finding in findings if finding["count"] is None}
    assert unknown == {check.name for check in CHECKS if check.reads_znodes}
    assert [each for each in findings if each["count"] is not None] == [
        each for each in known.pop("lint") if each["check"] not in unknown
    ]
    assert differing(known, found) == {}


def test_the_page_answers_as_the_files_do(asked):
    found = page_answers(asked.cluster.page(), asked.files)
    known = {question: asked.answers[question] for question in found}
    events = [[event for event in each.pop("timeline")["events"]] for each in (known, found)]
    assert events[0] == events[1]
    assert differing(without(known, NOT_ON_THE_PAGE), without(found, NOT_ON_THE_PAGE)) == {}


def test_a_look_at_zookeeper_sees_what_the_files_have(asked):
    known, found = dict(asked.answers), answers(asked.cluster.from_zookeeper())
    seen = {question: answer for question, answer in found.items() if is_seen(question, asked.moment)}
    known = {question: known[question] for question in seen}
    assert differing(in_a_look(known, asked.moment), in_a_look(seen, asked.moment)) == {}
    assert_no_beginning_is_too_early(asked.answers, found)


def test_no_source_differs_from_another_or_from_itself(asked):
    pictures = {
        "files": asked.files,
        "changes": asked.cluster.from_changes(),
        "derived": asked.cluster.from_derived(),
        "zookeeper": asked.cluster.from_zookeeper(),
    }
    found = {name: Side(name, side) for name, side in sides(asked.cluster, pictures).items()}
    for name, side in found.items():
        of_memory = {"partition state"} if name in ("zookeeper", "snapshot") else set()
        assert diff(found["files"], side).fields.keys() <= of_memory
        assert not diff(side, side).differences


def differing(known: Answers, found: Answers) -> dict[str, tuple[Any, Any]]:
    """Return the answers that differ, by question."""
    questions = known.keys() | found.keys()
    return {each: (known.get(each), found.get(each)) for each in questions if known.get(each) != found.get(each)}


def without(answer: Any, fields: Any) -> Any:
    """Return the answer without these fields."""
    if isinstance(answer, dict):
        return {name: without(value, fields) for name, value in answer.items() if name not in fields}
    return [without(each, fields) for each in answer] if isinstance(answer, list) else answer


def is_seen(question: str, moment: Moment) -> bool:
    """Whether ZooKeeper alone answers the question: consequences rest on what the controller has due."""
    return question != "timeline" and (moment.at_rest or not question.startswith(("whatif", "place")))


def in_a_look(answer: Any, moment: Moment) -> Any:
    """Return the part of an answer that one look at ZooKeeper can have."""
    if isinstance(answer, dict):
        kept = {name: in_a_look(value, moment) for name, value in answer.items() if name not in NOT_IN_A_LOOK}
        if "statements" in kept:
            kept["statements"] = [each for each in kept["statements"] if is_fact(each)]
        return kept
    if isinstance(answer, list):
        return [in_a_look(each, moment) for each in answer]
    return _HOW_A_BROKER_LEFT.sub(r"\1is not registered", answer) if isinstance(answer, str) else answer


def is_fact(statement: Answers) -> bool:
    """Whether the statement is about ZooKeeper or a setting: not about the controller's memory or its past."""
    return statement["certainty"] in ("seen", "assumed") and statement["about"] != "changes"


def assert_no_beginning_is_too_early(known: Answers, found: Answers) -> None:
    """A look dates the beginning of trouble by its znodes: it lasts since then at least."""
    for question, answer in found.items():
        since = answer["since"] if question.startswith("explain") else None
        exactly = known[question]["since"] if since else None
        if since and since["ms"] and exactly and exactly["exact"]:
            assert since["ms"] >= exactly["ms"], question
