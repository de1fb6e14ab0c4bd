"""Refuse a job that would write to a watched cluster or read its stream from one.

The Kafkas of the job's addresses are compared with the clusters of the records: by cluster id, or by brokers where one
of both has none. The forwarder compares them before it writes: `ingest.separation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.view.types import Header
from streaming.errors import StreamError


class StreamBroker(NamedTuple):
    """A broker of the Kafka behind an address of the job: HOST:PORT as clients get it, and its cluster's id if any."""

    broker: int
    address: str
    reached_by: str  # the job's address
    cluster_id: str = ""


def refuse_watched_cluster(watched: Header, brokers: Iterable[StreamBroker]) -> None:
    """Raise StreamError if one of these brokers is the watched cluster's."""
    for broker in brokers:
        shown = _shown(watched, broker)
        if shown:
            raise StreamError(
                f"{broker.reached_by} is in the watched cluster {watched.cluster} itself ({shown}), to which "
                "nothing is ever written, and a stream in it would be down when it is: the job ends before it "
                "writes more; use another Kafka, or a journal"
            )


def _shown(watched: Header, broker: StreamBroker) -> str:
    """The evidence that the broker is the watched cluster's; empty where there is none."""
    if watched.cluster_id and broker.cluster_id:
        return f"cluster id {watched.cluster_id}" if watched.cluster_id == broker.cluster_id else ""
    registered = watched.brokers.get(broker.broker)
    addresses = {endpoint.partition("://")[2] for endpoint in registered.endpoints} if registered is not None else ()
    return f"broker {broker.broker} at {broker.address}" if broker.address in addresses else ""
