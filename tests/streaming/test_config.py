"""Settings of a job for its clusters' brokers, down to the core's input."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from controller.rules.releases import profile_of
from streaming.config import BrokersConfig, StreamConfig
from streaming.errors import StreamError
from transport.address import JournalAddress


def config(**changes: object) -> StreamConfig:
    places = {"source": JournalAddress(Path("/in")), "sink": JournalAddress(Path("/out")), "checkpoint": "/c"}
    return StreamConfig(**places, **changes)


def test_without_a_word_kafkas_defaults_hold_and_the_release_is_inferred():
    assert config().brokers_of("any").read() == ({}, None)


def test_a_cluster_has_its_own_brokers_and_any_other_those_of_all():
    own = BrokersConfig(broker_config={"min.insync.replicas": "3"}, kafka_version="2.8")
    job = config(broker_config={"min.insync.replicas": "2"}, kafka_version="3.9.2", clusters={"orders": own})
    assert job.brokers_of("orders").read() == ({"min.insync.replicas": 3}, profile_of((2, 8)))
    assert job.brokers_of("other").read() == ({"min.insync.replicas": 2}, profile_of((3, 9)))


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
