"""Refuse a job that would write to a watched cluster, or read its stream from one.

The job compares the Kafkas of its addresses with the clusters of the records, by cluster id or by brokers.
`ingest.separation` does the same before the forwarder writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.contract.ids import BrokerId
from controller.view.types import Header
from streaming.errors import StreamError


class StreamBroker(NamedTuple):
    """A broker of the Kafka of an address, with its HOST:PORT for clients and its cluster's id if any."""

    broker: BrokerId
    address: str
    reached_by: str  # the job's address
    cluster_id: str = ""


def refuse_watched_cluster(watched: Header, brokers: Iterable[StreamBroker]) -> None:
    """Raise StreamError if one of these brokers belongs to the watched cluster."""
    for broker in brokers:
        shown = _shown(watched, broker)
        if shown:
            raise StreamError(
                f"{broker.reached_by} is in the watched cluster {watched.cluster} itself ({shown}). Kontrast "
                "never writes to it, and a stream in it fails together with it. The job ends before it writes more. "
                "Use another Kafka, or a journal"
            )


def _shown(watched: Header, broker: StreamBroker) -> str:
    """Return the evidence that the broker belongs to the watched cluster, or an empty text."""
    if watched.cluster_id and broker.cluster_id:
        return f"cluster id {watched.cluster_id}" if watched.cluster_id == broker.cluster_id else ""
    registered = watched.brokers.get(broker.broker)
    addresses = {endpoint.partition("://")[2] for endpoint in registered.endpoints} if registered is not None else ()
    return f"broker {broker.broker} at {broker.address}" if broker.address in addresses else ""
