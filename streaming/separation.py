"""Makes sure that the job neither writes to a watched cluster nor reads its stream from one.

Here belongs the comparison of the brokers that the job's addresses lead to with the brokers that records name. The
forwarder compares cluster ids too, which no record has: see `ingest.separation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controller.model.brokers import Broker
from streaming.errors import StreamError


class StreamBroker(NamedTuple):
    """A broker of the Kafka behind an address of the job, with HOST:PORT as it gives it to clients."""

    broker: int
    address: str
    reached_by: str  # the job's address


def refuse_watched_cluster(cluster: str, registered: Mapping[int, Broker], brokers: Iterable[StreamBroker]) -> None:
    """Raise StreamError if one of these brokers is registered in the watched cluster, by number and HOST:PORT."""
    for number, address, reached_by in brokers:
        watched = registered.get(number)
        if watched is not None and address in {endpoint.partition("://")[2] for endpoint in watched.endpoints}:
            raise StreamError(
                f"{reached_by} is in the watched cluster {cluster} itself (broker {number} at {address}), to which "
                "nothing is ever written, and a stream in it would be down when it is: the job ends before it "
                "writes more; use another Kafka, or a journal"
            )
