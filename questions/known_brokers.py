"""Brokers that a question names, compared with the cluster, and their machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.contract.ids import BrokerId
from controller.view.gauges import replicas_by_broker
from controller.view.types import Context
from questions.question import NotFoundError
from wording.sentences import listed


class UnknownBrokersError(NotFoundError):
    """Brokers or racks that the cluster lacks, or whose state differs from the one that the question supposes."""


def is_known(context: Context, broker: BrokerId) -> bool:
    """Return whether anything in the cluster names the broker."""
    header = context.header
    if broker in header.brokers or broker in header.departures.last or broker in replicas_by_broker(header):
        return True
    states = (partition.zk_state for _, topic in context.topics for partition in topic.partitions.values())
    return any(state is not None and (broker == state.leader or broker in state.isr) for state in states)


def host_of(endpoints: Sequence[str]) -> str:
    """Return the host of the first listener, as the broker registered it, empty without one."""
    return endpoints[0].partition("://")[2].rpartition(":")[0].strip("[]") if endpoints else ""


def refuse_unknown(context: Context, brokers: Iterable[BrokerId]) -> None:
    """Raise UnknownBrokersError for the first broker that nothing in the cluster names."""
    for broker in brokers:
        if not is_known(context, broker):
            header = context.header
            known = listed({*header.brokers, *replicas_by_broker(header)})
            raise UnknownBrokersError(f"there is no broker {broker} in {header.cluster}, but {known}")
