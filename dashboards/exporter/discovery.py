"""Targets for Prometheus' HTTP service discovery, the registered brokers with their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from controller.contract.metadata_rows import BrokerRow
from dashboards.catalogue.metric import CLUSTER_LABEL
from questions.cluster_rows import ClusterSnapshot

_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?P<host>\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]+):(?P<port>[0-9]{1,5})")
_META = "__meta_kafka_"


def addresses(row: BrokerRow) -> dict[str, str]:
    """Return HOST:PORT of each complete listener, in the broker's order, with an IPv6 host in brackets."""
    matches = filter(None, map(_ENDPOINT.fullmatch, row.endpoints))
    return {match["listener"]: f"{match['host']}:{match['port']}" for match in matches}


def scrape_address(row: BrokerRow, port: int | None) -> str | None:
    """Return the address to scrape: the host of the broker's first listener, with `port` or the listener's own port."""
    first = next(iter(addresses(row).values()), None)
    if first is None or port is None:
        return first
    return f"{first.rpartition(':')[0]}:{port}"


def targets(cluster: ClusterSnapshot, port: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield a target group of Prometheus' HTTP service discovery for each registered broker that has an address."""
    for row in cluster.brokers:
        address = scrape_address(row, port) if row.registered else None
        if address is None:
            continue
        labels = {CLUSTER_LABEL: cluster.cluster, f"{_META}broker": str(row.broker)}
        if row.rack is not None:
            labels[f"{_META}rack"] = row.rack
        for listener, listening in addresses(row).items():
            labels[f"{_META}listener_{re.sub('[^a-z0-9]', '_', listener.lower())}"] = listening
        yield {"targets": [address], "labels": labels}
