"""Settings of a job for its clusters' brokers, down to the core's input, and the cores that it may use."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from controller.rules.releases import profile_of
from streaming.config import BrokersConfig, StreamConfig, usable_cores
from streaming.errors import StreamError
from transport.address import JournalAddress


def config(**changes: object) -> StreamConfig:
    places = {"source": JournalAddress(Path("/in")), "sink": JournalAddress(Path("/out")), "checkpoint": "/c"}
    return StreamConfig(**places, **changes)


def test_without_a_word_kafkas_defaults_hold_and_the_release_is_inferred():
    assert config().brokers_of("any").read() == ({}, None, (), (), 60_000)


def test_a_cluster_has_its_own_brokers_and_any_other_those_of_all():
    own = BrokersConfig(
        broker_config={"min.insync.replicas": "3"},
        kafka_version="2.8",
        preferred_controllers=(1,),
        clean_stop_pages_after_seconds=5,
    )
    job = config(broker_config={"min.insync.replicas": "2"}, kafka_version="3.9.2", clusters={"orders": own})
    assert job.brokers_of("orders").read() == ({"min.insync.replicas": 3}, profile_of((2, 8)), (1,), (), 5_000)
    assert job.brokers_of("other").read() == ({"min.insync.replicas": 2}, profile_of((3, 9)), (), (), 60_000)


def test_it_reaches_sparks_processes_as_it_is():
    job = config(
        kafka_version="2.8", clusters={"orders": BrokersConfig(broker_config={"delete.topic.enable": "false"})}
    )
    assert pickle.loads(pickle.dumps(job)) == job


@pytest.mark.parametrize("kind", [BrokersConfig, config])
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"broker_config": {"log.dirs": "/x"}}, "'log.dirs' is no broker setting"),
        ({"clean_stop_pages_after_seconds": -1}, "clean_stop_pages_after_seconds is -1, but must be at least 0"),
        ({"broker_config": {"min.insync.replicas": "two"}}, "min.insync.replicas=two"),
        ({"kafka_version": "4.0"}, "Kafka 4.0"),
    ],
)
def test_what_the_core_could_not_read_is_refused(kind, said, words):
    with pytest.raises(StreamError, match=words):
        kind(**said)


@pytest.mark.parametrize(
    ("clusters", "fixed", "given", "expected"),
    [
        (0, None, None, 1),
        (1, None, None, 1),
        (2, None, None, 2),
        (50, None, None, 4),
        (50, 1, None, 4),  # a checkpoint that was begun with one cluster grows with the fleet
        (3, 2, None, 2),  # grows only to at least twice the number
        (1, 4, None, 4),  # the number never shrinks
        (50, 1, 3, 3),
    ],
)
def test_as_many_clusters_are_worked_on_at_once_as_there_are_cores(clusters, fixed, given, expected):
    brokers = {f"cluster-{number}": BrokersConfig() for number in range(clusters)}
    job = config(master="local[4]", clusters=brokers, shuffle_partitions=given)
    assert job.with_shuffle_partitions(fixed).shuffle_partitions == expected


def test_the_cores_of_executors_count_in_place_of_this_machines():
    job = config(master="local[1]", clusters={f"cluster-{number}": BrokersConfig() for number in range(60)})
    assert job.with_shuffle_partitions(None, 12).shuffle_partitions == 12
    assert job.with_shuffle_partitions(12, 2).shuffle_partitions == 12


@pytest.fixture
def affinity(monkeypatch):
    """Let this process have eight cores, whatever the machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"pod/cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n", "pod/cpu.max": "400000 100000\n"}, 1),  # a group above has less
        ({"pod/cpu.max": "99900000 100000\n"}, 8),
        ({"pod/cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),  # version 1
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_a_quota_limits_the_cores_of_the_affinity(quotas, expected, affinity, tmp_path):
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("12:cpu:/other\n0::/pod\n")
    for name, quota in quotas.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(quota)
    assert usable_cores(own, groups) == expected


def test_without_control_groups_the_affinity_counts(affinity, tmp_path):
    assert usable_cores(tmp_path / "none", tmp_path / "none") == 8


def test_this_process_has_a_core():
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
