"""A snapshot that judges sound partitions by their znodes, and agrees with the replica over all partitions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings, strategies as st

from controller.contract.metadata_rows import PartitionRow
from controller.restore.stored_context import new_context
from controller.step import Outcome, steps
from controller.view.metadata import Znode, cluster_metadata
from ingest.complete_read import CompleteRead
from ingest.observed.observations import Value
from questions.judged_cluster import Concern, JudgedCluster, JudgedPartition, Sound

BROKERS = [1, 2, 3]
some_brokers = st.lists(st.sampled_from(BROKERS), unique=True, max_size=3)
partition = st.fixed_dictionaries(
    {
        "replicas": st.lists(st.sampled_from([*BROKERS, 9]), unique=True, min_size=1, max_size=3),
        "isr": some_brokers,
        "leader": st.sampled_from([-1, *BROKERS]),
        "state": st.sampled_from(["sound", "sound", "sound", "any", "none"]),
    }
)
topic = st.fixed_dictionaries(
    {
        "partitions": st.lists(partition, min_size=1, max_size=4),
        "adding": st.booleans(),
        "deleting": st.booleans(),
        "least": st.sampled_from([None, "1", "2", "4", "?"]),
    }
)
clusters = st.fixed_dictionaries(
    {
        "registered": st.lists(st.sampled_from(BROKERS), unique=True, min_size=1),
        "topics": st.lists(topic, min_size=1, max_size=3),
        "acts": st.booleans(),
        "kraft": st.sampled_from([False, False, False, True]),
    }
)


def read_of(cluster: dict[str, Any]) -> CompleteRead:
    """Return the complete read of a made-up cluster."""
    values: dict[str, Value] = {}

    def put(path: str, content: object, session: int = 0) -> None:
        zxid = len(values) + 1
        values[path] = Value(json.dumps(content).encode(), zxid, zxid, 0, session)

    for broker in cluster["registered"]:
        put(f"/brokers/ids/{broker}", {"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://b{broker}:1"]}, broker)
    put("/controller_epoch", 3)
    if cluster["kraft"]:
        put("/controller", {"version": 2, "brokerid": 3000, "kraftControllerEpoch": 4})
        put("/migration", {"version": 0, "kraft_controller_id": 3000, "kraft_controller_epoch": 4})
    elif cluster["acts"]:
        put("/controller", {"version": 2, "brokerid": cluster["registered"][0]}, cluster["registered"][0])
    for number, each in enumerate(cluster["topics"]):
        replicas = {str(at): of["replicas"] for at, of in enumerate(each["partitions"])}
        adding = {"0": replicas["0"][:1]} if each["adding"] else {}
        put(f"/brokers/topics/t{number}", {"version": 3, "partitions": replicas, "adding_replicas": adding})
        if each["least"]:
            put(f"/config/topics/t{number}", {"version": 1, "config": {"min.insync.replicas": each["least"]}})
        if each["deleting"]:
            put(f"/admin/delete_topics/t{number}", {})
        for at, of in enumerate(each["partitions"]):
            isr, leader = (of["replicas"], of["replicas"][0]) if of["state"] == "sound" else (of["isr"], of["leader"])
            state = {"version": 1, "controller_epoch": 3, "leader": leader, "leader_epoch": 1, "isr": isr}
            if of["state"] != "none":
                put(f"/brokers/topics/t{number}/partitions/{at}/state", state)
    return CompleteRead(values)


@settings(max_examples=80, deadline=None)
@given(clusters)
def test_each_partition_is_as_the_replica_of_the_whole_cluster_has_it(cluster: dict[str, Any]) -> None:
    read = read_of(cluster)
    taken_in: list[int] = []

    def replicated(sound: Sound) -> Outcome:
        outcome = steps(new_context("c"), read.without(sound).records("c"))
        taken_in.append(sum(len(topic.partitions) for _, topic in outcome.context.topics))
        return outcome

    znodes = [Znode(path, value.data, value.czxid) for path, value in read.values.items()]
    metadata = list(cluster_metadata(znodes, partition=JudgedPartition))
    found = JudgedCluster(metadata, replicated).partitions
    whole = steps(new_context("c"), read.records("c"))
    rows = {(row.topic, row.partition): row for row in whole.effects if isinstance(row, PartitionRow)}
    assert {(each.topic, each.partition): shown(each) for each in found} == {
        key: (row.writable_acks_all, row.in_sync_lacking, row.in_sync_candidates, row.reason)
        for key, row in rows.items()
    }
    counts = whole.context.header.tally.gauges
    gone = {name for name, each in whole.context.topics if each.queued_for_deletion}
    told = Counter(concern for each in found for concern in each.concerns)
    if not gone:
        assert [told[concern] for concern in Concern] == [
            counts.leaderless,
            counts.under_min_isr_partitions,
            counts.under_replicated_partitions,
            counts.at_min_isr_partitions,
        ]
    assert taken_in[-1] <= len(found)


def shown(partition: JudgedPartition) -> tuple[object, ...]:
    return (partition.writable_acks_all, partition.in_sync_lacking, partition.in_sync_candidates, partition.reason)


def test_a_sound_cluster_is_judged_without_its_partitions() -> None:
    sound = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "state": "sound"}
    topics = [{"partitions": [sound, sound], "adding": False, "deleting": False, "least": None}]
    read = read_of({"registered": [1, 2], "topics": topics, "acts": True, "kraft": False})
    without = read.without({"t0": {0, 1}})
    assert json.loads(without.values["/brokers/topics/t0"].data or b"")["partitions"] == {}
    assert not [path for path in without.values if path.endswith("/state")]
    assert read.without({}) == read
