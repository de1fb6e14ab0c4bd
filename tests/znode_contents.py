"""Every form of a znode's content with each of its fields at each extreme, and the path of such a znode.

The forms are those of `controller.contract.znodes`. A form that is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from controller.contract import znodes
from tests.extremes import any_change, as_json, changes

_NESTED = {"ReassignmentEntry", "NamedPartition", "MaintenanceWindow", "ZnodePath"}
_OTHERS = {"ForwarderStatus", "ZnodeContent"}  # the content of heartbeats, and the base of all contents

# A znode with content of form KEY is at PATH, and may have CONTENT.
SAMPLES: Mapping[type[msgspec.Struct], tuple[str, dict[str, Any]]] = {
    znodes.ControllerZnode: ("/controller", {"brokerid": 1, "version": 2, "kraftControllerEpoch": -1}),
    znodes.BrokerZnode: (
        "/brokers/ids/2",
        {"version": 5, "jmx_port": -1, "host": "h", "port": 1, "endpoints": ["A://h:1"], "rack": "r"},
    ),
    znodes.TopicZnode: (
        "/brokers/topics/topic-0",
        {"version": 3, "partitions": {"0": [1, 2]}, "adding_replicas": {"0": [2]}, "removing_replicas": {"0": [1]}},
    ),
    znodes.StateZnode: (
        "/brokers/topics/topic-1/partitions/0/state",
        {"version": 1, "leader": 1, "leader_epoch": 7, "controller_epoch": 1, "isr": [1, 2]},
    ),
    znodes.ConfigZnode: ("/config/brokers/<default>", {"version": 1, "config": {"min.insync.replicas": "2"}}),
    znodes.ClusterIdZnode: ("/cluster/id", {"version": "1", "id": "x"}),
    znodes.FeatureZnode: ("/feature", {"version": 1, "status": 1, "features": {}}),
    znodes.MigrationZnode: (
        "/migration",
        {
            "version": 0,
            "kraft_metadata_offset": 303,
            "kraft_controller_id": 3001,
            "kraft_metadata_epoch": 3,
            "kraft_controller_epoch": 3,
        },
    ),
    znodes.LogDirEventZnode: (
        "/log_dir_event_notification/log_dir_event_0000000000",
        {"version": 1, "broker": 2, "event": 1},
    ),
    znodes.ReassignmentZnode: (
        "/admin/reassign_partitions",
        {"version": 1, "partitions": [{"topic": "topic-0", "partition": 0, "replicas": [3, 2]}]},
    ),
    znodes.PartitionsZnode: (
        "/admin/preferred_replica_election",
        {"version": 1, "partitions": [{"topic": "topic-0", "partition": 0}]},
    ),
}


def forms() -> set[type[msgspec.Struct]]:
    """Return the possible forms of a znode's content."""
    found = {each for each in vars(znodes).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)}
    return {each for each in found if each.__module__ == znodes.__name__ and each.__name__ not in _NESTED | _OTHERS}


assert forms() == SAMPLES.keys(), "a form of znode is not tried"


def contents_at_extremes() -> Iterator[tuple[str, bytes]]:
    """Yield path and content, one field at one extreme each."""
    for form, (path, sample) in SAMPLES.items():
        for _, changed in changes(form, sample):
            yield path, as_json(changed)


def any_content() -> st.SearchStrategy[tuple[str, bytes]]:
    """Draw path and content, any fields at extremes."""
    return st.one_of([_any_content(form) for form in SAMPLES])


def _any_content(form: type[msgspec.Struct]) -> st.SearchStrategy[tuple[str, bytes]]:
    path, sample = SAMPLES[form]
    return any_change(form, sample).map(lambda changed: (path, as_json(changed)))
