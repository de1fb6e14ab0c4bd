"""KRaft controller that migrates the modelled cluster, as it shows itself in ZooKeeper from 3.4 on.

It owns /controller without a session, writes the states as they are in KRaft, and beats in /migration. The znodes below
/admin are not its own. Every broker stays in ZooKeeper mode.
"""

from __future__ import annotations

from lab.modelled_cluster.controller import BROKERS, TOPICS, Controller
from lab.modelled_cluster.memory import Release, Work
from lab.modelled_cluster.zookeeper import Change, ZooKeeper

MIGRATION = "/migration"
_NODE = 3_001


class Kraft(Controller):
    """One term of a KRaft controller."""

    def __init__(self, zookeeper: ZooKeeper, release: Release, salt: int, kraft_epoch: int) -> None:
        super().__init__(zookeeper, release, _NODE, zookeeper.new_session(), salt)
        self.kraft_epoch = kraft_epoch

    def claim(self) -> None:
        """Take /controller and the next epoch, in one transaction."""
        content = {"version": 2, "brokerid": _NODE, "timestamp": "1", "kraftControllerEpoch": self.kraft_epoch}
        with self.zookeeper.transaction():
            self.take_epoch()
            with self.zookeeper.written_by(self.session):
                self.zookeeper.delete("/controller")
                self.zookeeper.create("/controller", content)

    def pulse(self) -> None:
        """Write the next offset into /migration."""
        content = self.zookeeper.content(MIGRATION) or {}
        self._write_migration(max(300, content.get("kraft_metadata_offset", -1) + 1))

    def _write_migration(self, offset: int) -> None:
        with self.zookeeper.written_by(self.session):
            self.zookeeper.write(MIGRATION, migration_znode(offset, _NODE, self.kraft_epoch))

    def hear(self, change: Change) -> None:
        """Queue what brokers would tell KRaft themselves."""
        if change.path.startswith(f"{BROKERS}/"):
            self.enqueue("BrokerChange", self.broker_change)

    def failover(self) -> Work:
        """Copy ZooKeeper, or make it equal, then elect leaders. A leader's failure costs one write."""
        offset = (self.zookeeper.content(MIGRATION) or {}).get("kraft_metadata_offset", -1)
        if offset <= 0:
            self._write_migration(-1)
            yield
        self._load()
        self.enter_loaded_states()
        self.pulse()
        yield
        dead = {broker for each in self.assigned.values() for broker in each.replicas} - self.live.keys()
        yield from self.lose_replicas(self.replicas_on(dead))
        self.probe(self.live)
        self.pulse()
        self.rebalance_ms = self.zookeeper.now_ms + 5_000

    def delete_topic(self, name: str) -> Work:
        """Delete a topic that a client asked KRaft to delete."""
        if name not in self.topics:
            return
        tps = self.partitions_of(name)
        states = [f"{TOPICS}/{name}/partitions/{tp[1]}/state" for tp in tps]
        for path in (*states, f"{TOPICS}/{name}", f"/config/topics/{name}"):
            if self.delete(path):
                yield
        self.forget_topic(name)
        for tp in tps:
            self.partition_states.pop(tp, None)
        self.replica_states = {each: state for each, state in self.replica_states.items() if each[0] not in tps}


def migration_znode(offset: int, node: int, kraft_epoch: int) -> dict[str, int]:
    """Return the content of /migration."""
    return {
        "version": 0,
        "kraft_metadata_offset": offset,
        "kraft_controller_id": node,
        "kraft_metadata_epoch": kraft_epoch if offset > 0 else -1,
        "kraft_controller_epoch": kraft_epoch,
    }
