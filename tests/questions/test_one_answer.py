"""One answer to each question about a cluster at a moment, from whichever source.

A fact that a source cannot have is unknown in its answer. The constants below name these facts. Files, changes, outputs
and the page have the whole past of a recording. One look at ZooKeeper has only the present.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from controller.contract.ids import NO_LEADER
from controller.view.metadata import BrokerMetadata, ControllerMetadata, PartitionMetadata
from questions.everywhere.lint import CHECKS
from questions.picture import Picture
from tests.questions.one_cluster import Answers, Cluster, answers, page_answers, unpacked


class Moment(NamedTuple):
    """Heartbeat of a recorded cluster. `at_rest` means that the controller had no due writes.

    The racks are added to the input of each source, since only the brokers of few recordings have racks.
    """

    recording: str
    at_ms: int
    at_rest: bool = False
    racks: dict[int, str] = {}


_MOMENTS: Final = json.loads(Path(__file__).with_name("moments.json").read_text(encoding="utf-8"))
MOMENTS: Final = {
    name: Moment(*fields, racks={int(broker): rack for broker, rack in racks.items()})
    for name, (*fields, racks) in _MOMENTS.items()
}

# A page shows the newest 1,500 rows of an output, and notes that there are more.
EVENTS_COMPARED: Final = 50
# A page has no steps, because its timeline shows them. Its present is now, and the recordings are old.
NOT_IN_OUTPUTS: Final = frozenset({"ahead"})
NOT_ON_THE_PAGE: Final = frozenset({"causes", "doubts", *NOT_IN_OUTPUTS})
# The past of a look is the last write of each znode. Alerts that need a history or patience need more, and so does the
# state of the cluster, which follows from alerts.
NOT_IN_A_LOOK: Final = frozenset({"causes", "findings", "since", "state"})
# While the controller has writes due, its next step also depends on its events. A look does not show these.
NOT_IN_A_LOOK_AT_WORK: Final = frozenset({"headline", "is_well", *NOT_IN_A_LOOK})
# In a migration, the age of the last pulse decides. A look does not see whether it goes on.
_OF_THE_PAST: Final = ("changes", "last host")
_BY_THE_CONTROLLER: Final = (*_OF_THE_PAST, "leads", "partitions", "", "migration", "way back", "preferred")
_NOT_THE_LEADER: Final = re.compile(r"(broker \d+ is not the leader)[^.]*\.")
_MAY_HANG: Final = re.compile(r" \(restart (?:it if it|one that) hangs\)")
_HOW_A_BROKER_LEFT: Final = re.compile(
    r"(broker \d+ |^)(crashed|shut down cleanly|left|never registered)"
    r"( at zxid 0x[0-9a-f]+|,? unseen)?"
)


class Asked(NamedTuple):
    """Moment, with its picture from ZooKeeper's files and the answers that follow from it."""

    moment: Moment
    cluster: Cluster
    files: Picture
    answers: Answers


IN_GATE: Final = (
    *("healthy", "deletion-and-failover", "no-controller", "rack-lost-under-min-isr", "ghost-controller"),
    *("kraft-leads", "returns-under-min-isr", "reassignments-end"),
)


def _marks(name: str) -> list[pytest.MarkDecorator]:
    """Return a group, so that one process makes each moment once, and the night for most."""
    group = pytest.mark.xdist_group(f"answers {name}")
    return [group] if name in IN_GATE else [group, pytest.mark.nightly]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=_marks(name)) for name in MOMENTS])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    moment: Moment = MOMENTS[request.param]
    directory: Path = tmp_path_factory.mktemp(request.param)
    cluster = Cluster(unpacked(moment.recording, directory), moment.at_ms, directory, moment.racks)
    files = cluster.from_files()
    return Asked(moment, cluster, files, answers(files))


def test_the_changes_answer_as_the_files_do(asked):
    assert differing(asked.answers, answers(asked.cluster.from_changes())) == {}


def test_the_outputs_answer_as_the_files_do(asked):
    assert differing_from_outputs(asked.answers, answers(asked.cluster.from_derived())) == {}


def test_the_page_answers_as_the_files_do(asked):
    assert differing_from_page(asked.answers, page_answers(asked.cluster.page(), asked.files)) == {}


def test_a_look_at_zookeeper_sees_what_the_files_have(asked):
    known, found = dict(asked.answers), answers(asked.cluster.from_zookeeper())
    seen = {question: answer for question, answer in found.items() if is_seen(question, answer, asked.moment)}
    known = {question: known[question] for question in seen}
    assert differing(in_a_look(known, asked.moment), in_a_look(seen, asked.moment)) == {}
    assert_no_beginning_is_too_early(asked.answers, found)


def test_a_snapshot_has_the_controller_brokers_and_partitions_of_the_files(asked):
    lines, header = asked.cluster.snapshot(), asked.files.header
    (controller,) = (line for line in lines if isinstance(line, ControllerMetadata))
    assert (controller.broker, controller.epoch) == (header.controller, header.controller_epoch)
    live = [line for line in lines if isinstance(line, BrokerMetadata) and line.registered]
    assert {line.broker: (line.epoch, line.endpoints, line.rack) for line in live} == {
        broker: (known.epoch, known.endpoints, known.rack) for broker, known in header.brokers.items()
    }
    assert {
        (line.topic, line.partition): (
            *(line.leader, line.leader_epoch, set(line.isr), line.deleting),
            *(line.replicas, line.adding_replicas, line.removing_replicas),
        )
        for line in lines
        if isinstance(line, PartitionMetadata)
    } == dict(partitions_in_zookeeper(asked.files))


def partitions_in_zookeeper(picture: Picture) -> Iterator[tuple[tuple[str, int], tuple[Any, ...]]]:
    for name, topic in picture.context.topics:
        for number, partition in topic.partitions.items() if topic.exists else ():
            state = partition.zk_state
            led = (NO_LEADER, -1, set()) if state is None else (state.leader, state.leader_epoch, set(state.isr))
            assigned = partition.zk_assignment or partition.assignment
            yield (
                (name, number),
                (*led, topic.queued_for_deletion, assigned.replicas, assigned.adding, assigned.removing),
            )


def differing(known: Answers, found: Answers) -> dict[str, tuple[Any, Any]]:
    """Return the answers that differ, by question."""
    questions = known.keys() | found.keys()
    return {each: (known.get(each), found.get(each)) for each in questions if known.get(each) != found.get(each)}


def differing_from_outputs(known: Answers, found: Answers) -> dict[str, tuple[Any, Any]]:
    """Return the answers of outputs that differ, but for checks of lint that read znodes."""
    unread = {check.name for check in CHECKS if check.reads_znodes}
    assert {finding["check"] for finding in found["lint"] if finding["count"] is None} == unread
    known, found = ({**each, "lint": [f for f in each["lint"] if f["check"] not in unread]} for each in (known, found))
    return differing(*(without(each, NOT_IN_OUTPUTS) for each in (known, found)))


def differing_from_page(known: Answers, found: Answers) -> dict[str, tuple[Any, Any]]:
    """Return the answers of the page that differ, of a timeline the newest events."""
    newest = [
        {question: each[question] for question in found} | {"timeline": each["timeline"]["events"][-EVENTS_COMPARED:]}
        for each in (known, found)
    ]
    return differing(*(without(each, NOT_ON_THE_PAGE) for each in newest))


def _without_why(text: str) -> str:
    """Return the text without what is in the past: why another replica leads, and that a broker may hang."""
    return _MAY_HANG.sub("", _NOT_THE_LEADER.sub(r"\1.", text))


def without(answer: Any, fields: Collection[str]) -> Any:
    """Return the answer without these fields."""
    if isinstance(answer, dict):
        return {name: without(value, fields) for name, value in answer.items() if name not in fields}
    if isinstance(answer, list):
        return [without(each, fields) for each in answer]
    return _without_why(answer) if isinstance(answer, str) else answer


def is_seen(question: str, answer: Any, moment: Moment) -> bool:
    """Return whether ZooKeeper alone answers the question. Consequences depend on the controller's due writes."""
    if question.startswith("whatif rack") and isinstance(answer, str):
        return False  # ZooKeeper does not keep the rack of a broker that is away
    return question != "timeline" and (moment.at_rest or question.startswith("explain"))


def in_a_look(answer: Any, moment: Moment) -> Any:
    """Return the part of an answer that one look at ZooKeeper can have."""
    if isinstance(answer, dict):
        unknown = NOT_IN_A_LOOK if moment.at_rest else NOT_IN_A_LOOK_AT_WORK
        if "statements" in answer:
            answer = {**answer, "statements": [each for each in answer["statements"] if is_fact(each, moment)]}
        return {name: in_a_look(value, moment) for name, value in answer.items() if name not in unknown}
    if isinstance(answer, list):
        return [in_a_look(each, moment) for each in answer]
    return _without_why(_HOW_A_BROKER_LEFT.sub(r"\1is not registered", answer)) if isinstance(answer, str) else answer


def is_fact(statement: Answers, moment: Moment) -> bool:
    """Return whether the statement is about ZooKeeper or a setting, not about the controller's memory or past."""
    unknown = _OF_THE_PAST if moment.at_rest else _BY_THE_CONTROLLER
    return statement["certainty"] in ("seen", "assumed") and statement["about"] not in (*unknown, "do", "")


def assert_no_beginning_is_too_early(known: Answers, found: Answers) -> None:
    """Check the beginnings in a look. It dates trouble by its znodes, and the trouble lasts at least since then."""
    for question, answer in found.items():
        since = answer["since"] if question.startswith("explain") else None
        exactly = known[question]["since"] if since else None
        if since and since["ms"] and exactly and exactly["exact"]:
            assert since["ms"] >= exactly["ms"], question
