"""Each final transition's cause against the current event in the controller's own log."""

from __future__ import annotations

import pytest

from tests.conformance.causes import compare_causes, derived_causes, read_causes

RECORDINGS = ("dev39", "dev28", "dev11", "hard39", "race39")

# Partitions that the script had reassigned, by API or znode. The controller's log does not distinguish the two ways.
REASSIGNED = {
    "dev39": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "dev28": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "dev11": {"ZkPartitionReassignment": {"c-0", "c-1"}},
    "hard39": {"ApiPartitionReassignment": {"a-0", "a-1", "e-0", "e-1"}, "ZkPartitionReassignment": {"e-1"}},
    # Of two requests with three partitions each, those that no failover cut. The others belong to the failover.
    "race39": {"ZkPartitionReassignment": {"a-2", "a-3", "b-2", "b-3"}},
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_cause_is_what_the_controller_was_handling(name, recordings, report):
    recording, replay = recordings(name)
    agreement = compare_causes(read_causes(sorted(recording.directory.glob("logs*"))), derived_causes(replay.rows))
    report.append(f"{name:8} causes {agreement}")
    assert agreement.compared > 400
    assert not agreement.wrong, "\n".join(
        f"{count} x real {real}, derived {derived}: {agreement.examples[real, derived]}"
        for (real, derived), count in agreement.wrong.most_common()
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_reassignment_by_znode_and_one_by_the_api_are_distinguished(name, recordings):
    _, replay = recordings(name)
    told: dict[str, set[str]] = {}
    for subject, moves in derived_causes(replay.rows).items():
        for caused in moves:
            if caused.kind.endswith("PartitionReassignment"):
                told.setdefault(caused.kind, set()).add(subject.partition("@")[0])
    assert told == REASSIGNED[name]
