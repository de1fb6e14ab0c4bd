"""Fields of every published row, with its version, its cluster, and the position of the record that caused it.

Because of that position a repeated batch writes the same rows. Numbers stay within 64 bits, because readers turn larger
ones into floats.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Final

import msgspec

from controller.contract.ids import INT64, BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, PartitionId, Zxid
from controller.contract.records import Int64

OUTPUT_VERSION = 2

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # only ever grows

# Ids in rows, which stay within 64 bits like every number in a row.
RowBrokerId = Annotated[BrokerId, INT64]
RowPartitionId = Annotated[PartitionId, INT64]
RowLeaderEpoch = Annotated[LeaderEpoch, INT64]
RowControllerEpoch = Annotated[ControllerEpoch, INT64]
RowBrokerEpoch = Annotated[BrokerEpoch, INT64]
RowZxid = Annotated[Zxid, INT64]

# Marks a field as a moment of the cluster's time, which a row shows by the forwarder's wall clock (see `wall_clock`).
MOMENT: Final = {"moment": True}
MomentMs = Annotated[Int64, msgspec.Meta(extra=MOMENT)]
NOT_KNOWN_MS: Final = 0  # the moment of something that was never seen to begin


class Versioned(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", gc=False):
    """The version of a row's format."""

    v: Int64 = msgspec.field(default_factory=partial(int, OUTPUT_VERSION))  # a factory, so that `v` is always written


class Row(Versioned, frozen=True, omit_defaults=False, gc=False):
    """Fields of every row, with its cluster, the position of its cause, and its place among that cause's effects.

    Rows that come in thousands are made with positional arguments, because keywords take five times as long.
    """

    output: ClassVar[str]

    cluster: str
    generation: Int64
    seq: Int64
    ordinal: Int64
    zxid: RowZxid
    time_ms: Int64  # the record's own wall time, never this machine's

    def subject_key(self) -> str:
        """Return the key for compaction. The newest row with a key replaces the older rows."""
        return f"{self.cluster}/{self.generation}-{self.seq}-{self.ordinal}"

    @property
    def ends_subject(self) -> bool:
        """Return whether the subject is gone, so that readers and compaction drop its rows."""
        return False


# The first fields of every row, in their order.
Stamp = tuple[str, int, int, int, Zxid, int]
