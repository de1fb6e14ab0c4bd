"""Like events at once, folded into one that names all their subjects."""

from __future__ import annotations

import msgspec
import pytest

from controller.contract.alert_row import Severity
from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Entry
from questions.timeline.timeline import folded


def event(says: str, time_ms: int = 0, *changes: Change) -> Entry:
    return Entry(time_ms=time_ms, zxid=1, says=says, changes=changes)


def change(subject: str, says: str, time_ms: int, *partitions: str) -> Change:
    return Change(
        subject=subject,
        says=says,
        certainty=Certainty.SEEN,
        time_ms=time_ms,
        last_ms=time_ms,
        zxid=1,
        partitions=partitions,
    )


@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        (
            ["BrokerChange: broker 2 registered with epoch 7", "BrokerChange: broker 1 registered with epoch 8"],
            "BrokerChange: brokers 2 and 1 registered with epochs 7 and 8",
        ),
        (["leader 1 changed its ISR", "leader 4 changed its ISR"], "leaders 1 and 4 changed their ISRs"),
        (
            [
                "ApiPartitionReassignment: partition a-1 moves to [2, 1]",
                "ApiPartitionReassignment: partition a-2 moves to [3]",
            ],
            "ApiPartitionReassignment: partitions a-1 and a-2 move to [2, 1] and [3]",
        ),
        (["leader 1 changed its ISR"], "leader 1 changed its ISR"),
    ],
)
def test_a_fold_names_all_subjects(says, wanted):
    (group,) = folded([event(each, at) for at, each in enumerate(says)])
    assert group.says == wanted


def test_equal_changes_of_a_fold_are_one():
    says = "leader {} changed its ISR"
    joined, own = "broker 2 joined the ISR", "broker 2 joined the ISR (in sync: 1 and 2)"
    events = [
        event(says.format(1), 0, change("2 partitions", joined, 0, "a-0", "a-1")),
        event(says.format(3), 20, change("2 partitions", joined, 40, "b-0", "b-1"), change("c-0", own, 20, "c-0")),
    ]
    (group,) = folded(events)
    found = [(each.subject, each.says, each.took(group.first.time_ms)) for each in group.changes()]
    assert found == [("a-0, a-1, b-0 and b-1", joined, ", within 0.040 s"), ("c-0", own, ", 0.020 s later")]


@pytest.mark.parametrize(
    "other",
    [
        event("leader 3 changed its ISR", 2_000),
        event("broker 3 left"),
        msgspec.structs.replace(event("leader 3 changed its ISR"), severity=Severity.WARN),
        msgspec.structs.replace(event("leader 3 changed its ISR"), certainty=Certainty.INFERRED, rule="one"),
    ],
)
def test_events_that_differ_stay_apart(other):
    assert len(folded([event("leader 1 changed its ISR"), other])) == 2
