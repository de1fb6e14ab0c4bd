"""Identity of the cluster whose past is published. Kontrast must not write into it."""

from __future__ import annotations

from contextlib import suppress

from controller.contract.ids import BrokerId
from controller.contract.records import Record, RecordKind
from controller.contract.znode_table import Place, locate
from controller.contract.znodes import ClusterIdZnode, ZnodeError, decode
from ingest.errors import IngestError
from ingest.separation import KafkaIdentity, evidence_of_one, registered_addresses
from transport.address import Address


class RecordedCluster:
    """The cluster by its id and its brokers' addresses, held against the Kafka that its past goes to."""

    def __init__(self, to: Address) -> None:
        self._to = to
        self._kafka: KafkaIdentity | None = None
        self._cluster_id: str | None = None
        self._addresses: dict[BrokerId, set[str]] = {}

    def refuse(self, kafka: KafkaIdentity) -> None:
        """Raise IngestError if this Kafka is the cluster, now or when it is known better."""
        self._kafka = kafka
        shown = evidence_of_one(kafka, self._cluster_id, lambda broker: self._addresses.get(broker, ()))
        if shown:
            raise IngestError(
                f"{self._to} is in the recorded cluster itself ({shown}), to which Kontrast never writes. "
                "Use another Kafka, or a journal"
            )

    def note(self, record: Record) -> None:
        """Note the record's facts about the cluster. Raise IngestError."""
        if record.kind is not RecordKind.NODE:
            return
        where = locate(record.path)
        if where.place is Place.CLUSTER_ID:
            with suppress(ZnodeError):
                self._cluster_id = decode(record.content, ClusterIdZnode).id
        elif where.place is Place.BROKER:
            self._addresses[where.broker] = registered_addresses(record.raw)
        else:
            return
        if self._kafka is not None:
            self.refuse(self._kafka)
