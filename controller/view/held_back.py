"""Known reasons why replicas on live brokers do not get in sync: a throttle, or no listener in common."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.flaw import Flaw
from controller.contract.ids import BrokerId
from controller.model.context import EACH_BROKER, THROTTLES, Header
from controller.view.flawed_znodes import flawed_znodes
from wording.sentences import joined


def held_back(brokers: Iterable[BrokerId], header: Header) -> str:
    """Return why these live brokers do not copy, with the step that ends it, empty if no reason is known."""
    apart = (each for each in flawed_znodes(header) if each.flaw is Flaw.NO_COMMON_LISTENER)
    return throttle_of(brokers, header) or next((f"{each.with_mend}." for each in apart), "")


def throttle_of(brokers: Iterable[BrokerId], header: Header) -> str:
    """Return the throttles of these brokers and their removal, empty if none has a throttle."""
    dynamic = header.configuration.dynamic
    rates = [
        f"{name}={dynamic[key][name]} of /config/brokers/{key}"
        for key in (*map(str, sorted(brokers)), EACH_BROKER)
        for name in THROTTLES
        if name in dynamic.get(key, {})
    ]
    if not rates:
        return ""
    return (
        f"{joined(rates)} holds back the replicas that the topic's throttled.replicas name. Raise the rate, or remove "
        "it when nothing is reassigned (kafka-configs.sh --delete-config)."
    )
