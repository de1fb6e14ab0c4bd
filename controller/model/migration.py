"""Migration to KRaft of one cluster: its phase, the quorum's claims and pulse, and what it leaves in ZooKeeper."""

from __future__ import annotations

import msgspec

from controller.contract.ids import NO_BROKER
from controller.model.alert_state import EXAMPLES_NAMED
from controller.rules.migration_phases import LED_BY_KRAFT, MigrationPhase


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """Claim of /controller by a KRaft controller."""

    controller: int = NO_BROKER
    kraft_epoch: int = -1  # KRaft's own, which is not the one in /controller_epoch
    zxid: int = -1  # of the transaction that also raised /controller_epoch
    time_ms: int = 0
    session: int = 0  # that wrote it, 0 where only ZooKeeper's log would show it
    offset: int = -1  # in /migration when it came: only a higher one is a pulse of this leader
    over_old_attempt: bool = False  # /migration had an offset of an attempt that had been rolled back


class SomeTopics(msgspec.Struct, frozen=True, array_like=True):
    """Number of topics that something happened to, with some of their names."""

    count: int = 0
    examples: tuple[str, ...] = ()

    def joined_by(self, name: str) -> SomeTopics:
        """These topics and one more."""
        return SomeTopics(self.count + 1, (*self.examples, name)[:EXAMPLES_NAMED])


class Migration(msgspec.Struct, array_like=True):
    """Migration of a cluster as far as ZooKeeper shows it; brokers in KRaft mode are among the header's brokers."""

    phase: MigrationPhase = MigrationPhase.ZOOKEEPER
    since_ms: int = 0  # when the phase began
    seen: bool = False  # since this state was created
    exists: bool = False  # /migration is there
    offset: int = -1  # in /migration: how far of KRaft's log ZooKeeper is
    pulse_ms: int = 0  # when /migration was last written, 0 if not since it was first read
    pulse_zxid: int = -1
    alive_ms: int = 0  # when KRaft last wrote /migration or a partition's state
    claim: Claim = Claim()  # the newest
    claims_ms: tuple[int, ...] = ()  # when the newest KRaft leaders came
    partitions_by_epoch: dict[int, int] = {}  # by the controller epoch in their state, kept once a migration is seen
    never_elected: tuple[str, ...] = ()  # some partitions whose epoch is above that of the controller after a rollback
    made: SomeTopics = SomeTopics()  # since a rollback: the next sync would delete them
    deleted: SomeTopics = SomeTopics()  # by the sync of the newest claim
    deletions_asked: tuple[str, ...] = ()  # entries of /admin/delete_topics that KRaft does not look at
    edited: str = ""  # how /migration was written past KRaft, whose next writes fail then
    published: bytes = b""  # what the last row said, but for offset and pulse
    configured: SomeTopics = SomeTopics()  # whose settings were written since a rollback: a sync sets them back

    @property
    def led_by_kraft(self) -> bool:
        """Whether a KRaft controller leads, of which nothing is predicted."""
        return self.phase in LED_BY_KRAFT

    @property
    def highest_epoch(self) -> int:
        """Highest controller epoch in a partition's state, -1 without one."""
        return max(self.partitions_by_epoch, default=-1)

    def partitions_above(self, epoch: int) -> int:
        """Number of partitions whose state has a controller epoch above this one."""
        return sum(count for other, count in self.partitions_by_epoch.items() if other > epoch)
