"""Refuse an election or a stream in the watched cluster.

Names and addresses do not show whether two clusters are one (`localhost` is `127.0.0.1`), so the servers' own reports
are read and compared before any write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import Exists, GetData
from kazoo.protocol.states import ZnodeStat

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.ids import BrokerId, Zxid
from controller.contract.znodes import BrokerZnode, ZnodeError, decode
from ingest.complete_read import wait_for_connection
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import IngestError, UnreachableError
from ingest.observed.inbox import Inbox
from ingest.observed.observations import Value
from ingest.zookeeper.client import WatchedZooKeeper
from ingest.zookeeper.reading import ConnectionLostError
from ingest.zookeeper.requests import SingleRead
from ingest.zookeeper.restorable import RestorableClient, login_of, tls_of

_IN_THE_ROOT: Final = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
_IN_THE_CLUSTER: Final = ("/brokers/ids", "/brokers/topics", "/cluster/id", "/controller_epoch")
_MOST_LOOKS: Final = 10

_CLUSTER_ID = JsonDecoder(dict[str, str])


class WatchedClusterError(IngestError):
    """The Kafka that would be written to, or read from, is the watched cluster."""


class KafkaIdentity(NamedTuple):
    """A Kafka cluster by its own answers, with its id (from 0.10.1 on), and HOST:PORT of each broker by id."""

    cluster_id: str | None
    addresses: Mapping[BrokerId, str]


class _Look(NamedTuple):
    """An ensemble at one moment, with its newest change, and the stats of znodes that all its servers share."""

    zxid: Zxid
    stats: tuple[ZnodeStat | None, ...]


@dataclass(frozen=True, slots=True)
class _Watched:
    session: WatchedZooKeeper
    paths: tuple[str, ...]

    def look(self) -> _Look:
        self.session.catch_up()
        stats = tuple(self.session.wait(self.session.call(Exists(path, None))) for path in self.paths)
        return _Look(self.session.moment()[1], stats)  # Exists is answered with a stat

    def read(self, path: str) -> bytes | None:
        """Return the znode's data, unless it is missing or hidden."""
        try:
            found = self.session.wait(self.session.call(SingleRead(GetData.type, self.session.absolute(path).encode())))
        except (NoNodeError, NoAuthError):
            return None
        assert isinstance(found, Value), found
        return found.data


@dataclass(frozen=True, slots=True)
class _Other:
    client: KazooClient
    config: ZooKeeperConfig
    paths: tuple[str, ...]

    def look(self) -> _Look:
        self.client.sync("/")
        stats = tuple(self.client.exists(path) for path in self.paths)
        return _Look(self.client.last_zxid, stats)

    def meet_again(self) -> None:
        """Begin another session and end it, which are two changes of the ensemble but of no znode."""
        login, tls = login_of(self.config), tls_of(self.config)
        another = RestorableClient(hosts=self.config.servers, login=login, **tls)
        try:
            another.start()
        finally:
            another.stop()
            another.close()


def refuse_watched_ensemble(config: IngestConfig, client: KazooClient, stop: threading.Event) -> None:
    """Raise IngestError if the client's ensemble is the watched ensemble."""
    paths = (*_IN_THE_ROOT, *(config.chroot + path for path in _IN_THE_CLUSTER))
    with _watching(config, stop) as session:
        if session is not None and _are_one(_Watched(session, paths), _Other(client, config.election, paths)):
            raise IngestError(
                f"election_zookeeper {config.election_zookeeper} is the watched ensemble under another name, to which "
                "Kontrast never writes. Name another, or allow it with election_on_watched"
            )


def refuse_watched_cluster(config: IngestConfig, kafka: KafkaIdentity, stop: threading.Event) -> None:
    """Raise IngestError if this is the watched Kafka cluster."""
    with _watching(config, stop) as session:
        if session is None:
            return
        shown = _evidence_of_one(kafka, _Watched(session, ()))
        if shown:
            raise WatchedClusterError(
                f"to {config.to} is the watched cluster itself ({shown}). Kontrast never writes to it, and a "
                "stream in it fails together with it. Use another cluster, or a journal"
            )


def _evidence_of_one(kafka: KafkaIdentity, watched: _Watched) -> str:
    """Return the evidence that Kafka is the watched cluster, or an empty text."""
    cluster_id = _cluster_id(watched)
    if cluster_id is not None and kafka.cluster_id is not None:
        return f"cluster id {cluster_id}" if cluster_id == kafka.cluster_id else ""
    # Before 0.10.1 a cluster has no id.
    shared = [
        address
        for broker, address in kafka.addresses.items()
        if address in _registered_addresses(watched.read(f"/brokers/ids/{broker}"))
    ]
    return f"broker at {', '.join(shared)}" if shared else ""


def _registered_addresses(raw: bytes | None) -> set[str]:
    """Return HOST:PORT of each listener in a broker's znode. An unreadable znode has no listeners."""
    try:
        return {address.partition("://")[2] for address in decode(raw, BrokerZnode).addresses()}
    except ZnodeError:
        return set()


@contextmanager
def _watching(config: IngestConfig, stop: threading.Event) -> Iterator[WatchedZooKeeper | None]:
    """Open a session on the watched ensemble, or None if asked to stop. Raise IngestError if no session begins."""
    inbox = Inbox()
    session = WatchedZooKeeper(config, inbox, stop)
    try:
        session.start()
        wait_for_connection(config, session, inbox, stop)
        yield None if stop.is_set() else session
    except ConnectionLostError as error:
        session.check_login()
        if not stop.is_set():
            raise UnreachableError(
                f"the connection to ZooKeeper at {config.zookeeper} was lost before Kontrast knew that the stream and "
                "the election are in another one"
            ) from error
    finally:
        session.close()


def _are_one(watched: _Watched, other: _Other) -> bool:
    """Return whether both are one ensemble.

    If they are, a look at `other` between two looks at `watched` has a newest change between theirs. Without changes
    meanwhile, all looks show znodes with equal zxids and times.
    """
    for _ in range(_MOST_LOOKS):
        before, between, after = watched.look(), other.look(), watched.look()
        if not before.zxid <= between.zxid <= after.zxid:
            return False
        if before.stats == after.stats:
            return between.stats == before.stats and not (_is_new(before) and _are_twins(watched, other))
    return True  # the ensemble changes all the time, and `other` always with it


def _is_new(look: _Look) -> bool:
    """Return whether the root never had a znode, because then two new ensembles look alike."""
    root = look.stats[0]
    return root is not None and root.pzxid == 0


def _are_twins(watched: _Watched, other: _Other) -> bool:
    """Return whether a session on `other` is no change of the watched ensemble, so that two ensembles look alike."""
    before = watched.look()
    other.meet_again()
    return watched.look().zxid == before.zxid


def _cluster_id(watched: _Watched) -> str | None:
    try:
        return _CLUSTER_ID.decode(watched.read("/cluster/id") or b"").get("id")
    except UndecodableError:
        return None
