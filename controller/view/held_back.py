"""Known reasons why live brokers do not do their part: a throttle, no listener in common, a deletion that is off."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from controller.contract.flaw import Flaw
from controller.contract.ids import BrokerId
from controller.model.context import EACH_BROKER, THROTTLES, Header
from controller.view.flawed_znodes import flawed_znodes
from wording.sentences import joined

_APART: Final = (Flaw.NO_COMMON_LISTENER, Flaw.NO_COMMON_PROTOCOL)
DELETING_MS: Final = 5 * 60_000
"""How long a live broker may take to delete a replica."""

_DELETES_BY_DEFAULT: Final = (2, 2)  # the oldest release of which the znodes prove that it is not older than 1.0


def deletion_off(header: Header) -> str:
    """Return why a deletion may never start, with the step, empty if the release deletes by default."""
    if header.releases[0] >= _DELETES_BY_DEFAULT:
        return ""
    return (
        "Before 1.0 delete.topic.enable is false by default, and the deletion then never starts. If so, set it to true "
        "and restart the brokers, or withdraw the deletion by its entry in /admin/delete_topics. If it is true, the "
        "log of a live broker shows why it has not deleted."
    )


def held_back(brokers: Collection[BrokerId], header: Header) -> str:
    """Return why these live brokers do not copy, with the step that ends it, empty if no reason is known."""
    apart = (each for each in flawed_znodes(header) if each.flaw in _APART)
    return throttle_of(brokers, header) or next((f"{each.with_mend}." for each in apart), "")


def throttle_of(brokers: Collection[BrokerId], header: Header) -> str:
    """Return the throttles of these followers and of all leaders, with their removal, empty if there is none."""
    dynamic, followers = header.configuration.dynamic, set(map(str, brokers))
    rates = [
        f"{name}={settings[name]} of /config/brokers/{key}"
        for key, settings in sorted(dynamic.items())
        for name in THROTTLES
        if name in settings and (key == EACH_BROKER or (key in followers) == (name == THROTTLES[0]))
    ]
    if not rates:
        return ""
    return (
        f"{joined(rates)} holds back the replicas that the topic's throttled.replicas name. Raise the rate, or remove "
        "it when nothing is reassigned (kafka-configs.sh --delete-config)."
    )
