"""Brokers that a question names, compared with the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.ids import BrokerId
from controller.view.gauges import replicas_by_broker
from controller.view.types import Context


class UnknownBrokersError(ValueError):
    """Brokers or racks that the cluster lacks, or whose state differs from the one that the question supposes."""


def is_known(context: Context, broker: BrokerId) -> bool:
    """Return whether anything in the cluster names the broker."""
    header = context.header
    if broker in header.brokers or broker in header.departures.last or broker in replicas_by_broker(header):
        return True
    states = (partition.zk_state for _, topic in context.topics for partition in topic.partitions.values())
    return any(state is not None and (broker == state.leader or broker in state.isr) for state in states)


def refuse_unknown(context: Context, brokers: Iterable[BrokerId]) -> None:
    """Raise UnknownBrokersError for the first broker that nothing in the cluster names."""
    for broker in brokers:
        if not is_known(context, broker):
            header = context.header
            known = ", ".join(map(str, sorted({*header.brokers, *replicas_by_broker(header)})))
            raise UnknownBrokersError(
                f"there is no broker {broker} in {header.cluster}: its brokers are {known or 'none'}"
            )
