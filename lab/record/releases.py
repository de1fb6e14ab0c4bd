"""Releases of Kafka for recordings, with the requests of an operator of each.

The table of releases and their differences for the recorder belong here. `controller.rules.releases` has the
differences of their controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class KafkaRelease(NamedTuple):
    """Abilities of a release's admin API beyond creating and deleting topics."""

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
    """Return the protocol version of a release, or the one in a text like 2.6 or 2.7-IV0."""
    major, minor = release.partition("-")[0].split(".")[:2]
    return int(major), int(minor)
