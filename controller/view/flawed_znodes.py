"""Consequences of the znodes that Kafka cannot read, for answers and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.contract.remedies.remedy import Advice
from controller.contract.znode_table import Consequence, Place, consequence_of, locate
from controller.contract.znodes import Flaw
from controller.model.context import Header
from controller.view.advice import topic_znodes


class FlawedZnode(NamedTuple):
    """A znode with the consequence of its flaw in the cluster's release."""

    path: str
    flaw: Flaw
    consequence: Consequence

    @property
    def sentence(self) -> str:
        """Return the flaw and its consequence, without the remedy."""
        return f"{self.path} is {self.flaw.value}: {self.consequence.effect}"

    @property
    def advice(self) -> Advice:
        """Return the step that mends the znode."""
        return Advice(self.consequence.mend)


def flawed_znodes(header: Header) -> Iterator[FlawedZnode]:
    """Yield the znodes that Kafka cannot read, by path."""
    for path, flaw in sorted(header.flawed.items(), key=lambda item: item[0]):
        consequence = consequence_of(path, flaw, header.profile.release)
        if consequence is not None:
            yield FlawedZnode(path, flaw, consequence)


def no_controller_because(header: Header) -> FlawedZnode | None:
    """Return the znode that keeps all brokers from being controller, /controller first. Topics' znodes do not count."""
    stopping = [each for each in flawed_znodes(header) if each.consequence.stops_controllers]
    others = [each for each in stopping if locate(each.path).place is not Place.TOPIC]
    return others[0] if others else None


def why_no_controller(header: Header) -> str:
    """Return the znodes at which every new controller fails, as a clause, empty if none is known."""
    flawed, unloadable = no_controller_because(header), header.damaged.unloadable
    if flawed is not None:
        return f"{flawed.path} cannot be read ({flawed.flaw.value})"
    return f"none can load {topic_znodes(unloadable)}" if unloadable else ""


def stopping_starts(header: Header) -> Iterator[FlawedZnode]:
    """Yield the znodes that end the start of a broker."""
    return (each for each in flawed_znodes(header) if each.consequence.stops_start)
