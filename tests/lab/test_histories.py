"""Random histories of the modelled cluster. The core keeps its properties after every record of each."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from controller.inference import shown_by_time
from lab.modelled_cluster.__main__ import show
from lab.modelled_cluster.checks import BrokenPropertyError
from lab.modelled_cluster.controller import Controller
from lab.modelled_cluster.histories import drawn, failure_of, play, shrunk
from lab.modelled_cluster.kraft import Kraft
from lab.modelled_cluster.many import play_all, play_seeds

QUICK = 500
PROCESSES = 2


def test_the_core_keeps_its_properties_in_random_histories():
    total, judged, failures = play_seeds(range(1, 1 + QUICK))
    assert failures == []
    assert judged > 0.7 * total, "most histories end in a healthy cluster"


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_the_core_keeps_its_properties_in_many_random_histories():
    """The environment sets their number and the first seed, whose default is constant."""
    histories, seed = int(os.environ.get("HISTORIES", "20000")), int(os.environ.get("HISTORIES_SEED", "1000"))
    print(f"python -m lab.modelled_cluster --histories {histories} --seed {seed}")
    total, judged, failures = play_all(seed, histories, PROCESSES)
    assert failures == []
    assert total == histories
    assert judged > 0.7 * total


def test_the_model_does_all_that_a_controller_does(monkeypatch):
    names = Counter[str]()
    enqueue = Controller.enqueue

    def counted(self, name, event):
        names[name] += 1
        names["of KRaft"] += isinstance(self, Kraft)
        enqueue(self, name, event)

    monkeypatch.setattr(Controller, "enqueue", counted)
    for seed in range(1, 41):
        play(drawn(seed))
    expected = {"failover", "BrokerChange", "TopicChange", "PartitionModifications", "TopicDeletion", "AlterPartition"}
    expected |= {"ApiPartitionReassignment", "/admin/reassign_partitions", "PartitionReassignmentIsrChange"}
    expected |= {"ControlledShutdown", "StopReplicaResponse", "IsrChangeNotification", "ElectLeaders PREFERRED"}
    expected |= {"ElectLeaders UNCLEAN", "Expire", "ControllerChange", "TopicUncleanLeaderElectionEnable"}
    expected |= {"LogDirEventNotification", "LeaderAndIsrResponse"}
    assert expected <= names.keys()
    assert names["of KRaft"] > 0


def test_a_history_is_the_same_for_the_same_seed():
    assert drawn(7) == drawn(7)
    first, second = play(drawn(7)), play(drawn(7))
    assert first.checked.records == second.checked.records
    assert first.cluster.zookeeper.znodes == second.cluster.zookeeper.znodes


def test_a_broken_core_is_found_and_its_history_shrunk(monkeypatch, capsys):
    monkeypatch.setattr(shown_by_time, "judge", lambda tx: None)
    seed, failure = next((seed, found) for seed in range(1, 200) if (found := failure_of(drawn(seed))) is not None)
    assert failure.name == "partitions at rest are online"
    history, last = shrunk(drawn(seed), failure)
    assert last.name == failure.name
    assert len(history.operations) <= 3
    with pytest.raises(BrokenPropertyError):
        play(history)
    show(seed, failure.name, failure.text)
    told = capsys.readouterr().out
    assert f"seed {seed}: release" in told
    assert all(f"    {operation}{numbers}" in told for operation, numbers in history.operations)
