"""The releases of Kafka that can be recorded, and what an operator of each could ask for.

Here belong the table of releases and what differs between them for the recorder; how they differ as controllers is in
`controller.profile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from streaming.artifacts import ArtifactSet


class KafkaRelease(NamedTuple):
    """A release: what its brokers run from, and what its admin API knows beside creating and deleting topics."""

    jars: ArtifactSet
    creates_partitions: bool = True  # from 1.0 on
    elects_preferred: bool = True  # from 2.2 on
    elects_uncleanly: bool = True  # from 2.4 on
    reassigns: bool = True  # from 2.4 on


_NO_PARTITIONS = {"creates_partitions": False, "elects_preferred": False, "elects_uncleanly": False, "reassigns": False}
_NO_ELECTIONS = {"elects_preferred": False, "elects_uncleanly": False, "reassigns": False}
_ONLY_PREFERRED = {"elects_uncleanly": False, "reassigns": False}

RELEASES: Mapping[str, KafkaRelease] = {
    "0.10.2.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_0_10_2, **_NO_PARTITIONS),
    "0.11.0.3": KafkaRelease(ArtifactSet.KAFKA_BROKER_0_11_0, **_NO_PARTITIONS),
    "1.0.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_1_0, **_NO_ELECTIONS),
    "1.1.1": KafkaRelease(ArtifactSet.KAFKA_BROKER_1_1, **_NO_ELECTIONS),
    "2.0.1": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_0, **_NO_ELECTIONS),
    "2.2.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_2, **_ONLY_PREFERRED),
    "2.3.1": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_3, **_ONLY_PREFERRED),
    "2.4.1": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_4),
    "2.6.3": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_6),
    "2.7.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_7),
    "2.8.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_2_8),
    "3.0.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_3_0),
    "3.2.3": KafkaRelease(ArtifactSet.KAFKA_BROKER_3_2),
    "3.5.2": KafkaRelease(ArtifactSet.KAFKA_BROKER_3_5),
    "3.9.2": KafkaRelease(ArtifactSet.KAFKA_BROKER),
}


def protocol_of(release: str) -> tuple[int, int]:
    """The protocol version that a release speaks by itself, or that a text like 2.6 or 2.7-IV0 names."""
    major, minor = release.partition("-")[0].split(".")[:2]
    return int(major), int(minor)
