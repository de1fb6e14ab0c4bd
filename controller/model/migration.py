"""Migration to KRaft of one cluster, with its phase, the quorum's claims and pulse, and its traces in ZooKeeper."""

from __future__ import annotations

import msgspec

from controller.contract.ids import NO_BROKER, UNKNOWN_ZXID, BrokerId, ControllerEpoch, Zxid
from controller.model.alert_state import EXAMPLES_NAMED
from controller.rules.migration_phases import LED_BY_KRAFT, MigrationPhase


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """Claim of /controller by a KRaft controller."""

    controller: BrokerId = NO_BROKER
    kraft_epoch: int = -1  # KRaft's own epoch, which differs from the one in /controller_epoch
    zxid: Zxid = UNKNOWN_ZXID  # of the transaction that also raised /controller_epoch
    time_ms: int = 0
    session: int = 0  # the session that wrote the claim, 0 if unknown, because only ZooKeeper's log shows it
    offset: int = -1  # in /migration at the claim. Only a higher one is a pulse of this leader
    over_old_attempt: bool = False  # /migration had an offset of an attempt that had been rolled back


class SomeTopics(msgspec.Struct, frozen=True, array_like=True):
    """Number of topics that something happened to, with some of their names."""

    count: int = 0
    examples: tuple[str, ...] = ()

    def joined_by(self, name: str) -> SomeTopics:
        """Return these topics and one more."""
        return SomeTopics(self.count + 1, (*self.examples, name)[:EXAMPLES_NAMED])


class Migration(msgspec.Struct, array_like=True):
    """Migration of a cluster as far as ZooKeeper shows it. Brokers in KRaft mode are among the header's brokers."""

    phase: MigrationPhase = MigrationPhase.ZOOKEEPER
    since_ms: int = 0  # when the phase began
    seen: bool = False  # a migration was seen since this state was created
    exists: bool = False  # /migration is there
    offset: int = -1  # in /migration, ZooKeeper's place in KRaft's log
    pulse_ms: int = 0  # when /migration was last written, 0 if not since it was first read
    pulse_zxid: Zxid = UNKNOWN_ZXID
    alive_ms: int = 0  # when KRaft last wrote /migration or a partition's state
    claim: Claim = Claim()  # the newest
    claims_ms: tuple[int, ...] = ()  # when the newest KRaft leaders claimed /controller
    partitions_by_epoch: dict[ControllerEpoch, int] = {}  # by the epoch in their state, kept once a migration is seen
    never_elected: tuple[str, ...] = ()  # some partitions whose epoch is above the controller's after a rollback
    made: SomeTopics = SomeTopics()  # topics created since a rollback. The next sync would delete them
    deleted: SomeTopics = SomeTopics()  # topics that the sync of the newest claim deleted
    deletions_asked: tuple[str, ...] = ()  # entries of /admin/delete_topics that KRaft does not look at
    edited: str = ""  # how /migration was written past KRaft, whose next writes fail then
    published: bytes = b""  # the content of the last row, without offset and pulse
    configured: SomeTopics = SomeTopics()  # topics with settings written since a rollback. A sync sets them back

    @property
    def led_by_kraft(self) -> bool:
        """Return whether a KRaft controller leads, whose actions are not predicted."""
        return self.phase in LED_BY_KRAFT

    @property
    def highest_epoch(self) -> ControllerEpoch:
        """Return the highest controller epoch in a partition's state, -1 without one."""
        return max(self.partitions_by_epoch, default=ControllerEpoch(-1))

    def partitions_above(self, epoch: ControllerEpoch) -> int:
        """Return the number of partitions whose state has a controller epoch above this one."""
        return sum(count for other, count in self.partitions_by_epoch.items() if other > epoch)
