"""The releases of Kafka that can be recorded, and what an operator of each could ask for.

Here belong the table of releases and what differs between them for the recorder; how they differ as controllers is in
`controller.profile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class KafkaRelease(NamedTuple):
    """What a release's admin API knows beside creating and deleting topics."""

    creates_partitions: bool = True  # from 1.0 on
    elects_preferred: bool = True  # from 2.2 on
    elects_uncleanly: bool = True  # from 2.4 on
    reassigns: bool = True  # from 2.4 on


_NO_PARTITIONS = {"creates_partitions": False, "elects_preferred": False, "elects_uncleanly": False, "reassigns": False}
_NO_ELECTIONS = {"elects_preferred": False, "elects_uncleanly": False, "reassigns": False}
_ONLY_PREFERRED = {"elects_uncleanly": False, "reassigns": False}

RELEASES: Mapping[str, KafkaRelease] = {
    "0.10.2.2": KafkaRelease(**_NO_PARTITIONS),
    "0.11.0.3": KafkaRelease(**_NO_PARTITIONS),
    "1.0.2": KafkaRelease(**_NO_ELECTIONS),
    "1.1.1": KafkaRelease(**_NO_ELECTIONS),
    "2.0.1": KafkaRelease(**_NO_ELECTIONS),
    "2.2.2": KafkaRelease(**_ONLY_PREFERRED),
    "2.3.1": KafkaRelease(**_ONLY_PREFERRED),
    "2.4.1": KafkaRelease(),
    "2.6.3": KafkaRelease(),
    "2.7.2": KafkaRelease(),
    "2.8.2": KafkaRelease(),
    "3.0.2": KafkaRelease(),
    "3.2.3": KafkaRelease(),
    "3.5.2": KafkaRelease(),
    "3.9.2": KafkaRelease(),
}


def protocol_of(release: str) -> tuple[int, int]:
    """The protocol version that a release speaks by itself, or that a text like 2.6 or 2.7-IV0 names."""
    major, minor = release.partition("-")[0].split(".")[:2]
    return int(major), int(minor)
