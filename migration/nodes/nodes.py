"""Answers of nodes about themselves and the quorum."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controller.contract.ids import BrokerId
from migration.nodes.modes import Mode

VOTERS = "controller.quorum.voters"


@dataclass(frozen=True, slots=True)
class Node:
    """An asked node with its id and mode, or the reason without a mode.

    `settings` are the requested ones, of brokers only.
    """

    address: str
    node_id: BrokerId | None = None
    mode: Mode | None = None
    apis: frozenset[int] = frozenset()
    metadata_version: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def name(self) -> str:
        """Return the node for people."""
        kind = "controller" if self.mode is not None and self.mode.is_controller else "broker"
        return f"node {self.address}" if self.node_id is None else f"{kind} {self.node_id} at {self.address}"


@dataclass(frozen=True, slots=True)
class Quorum:
    """The answer to DescribeQuorum, with the controllers' addresses if it has them.

    `log_ends` is each voter's and broker's position in the quorum's log, by its leader.
    """

    leader: BrokerId
    leader_epoch: int
    high_watermark: int
    voters: tuple[BrokerId, ...]
    addresses: Mapping[BrokerId, str] = field(default_factory=dict)
    log_ends: Mapping[BrokerId, int] = field(default_factory=dict)

    @property
    def observers(self) -> frozenset[BrokerId]:
        """Return the brokers that read the quorum's log, in KRaft mode or with the migration's flag."""
        return frozenset(self.log_ends) - frozenset(self.voters)


@dataclass(frozen=True, slots=True)
class Nodes:
    """All asked nodes and the quorum, or None if no node speaks for it."""

    nodes: tuple[Node, ...]
    quorum: Quorum | None

    @property
    def voter_addresses(self) -> Iterator[tuple[BrokerId, str]]:
        """Yield each voter with an address of it, as the quorum and the brokers' settings name it."""
        yield from (self.quorum.addresses if self.quorum else {}).items()
        for node in self.nodes:
            for voter, address in re.findall(r"(\d{1,10})@([^,\s]+)", node.settings.get(VOTERS, "")):
                yield BrokerId(int(voter)), address

    def in_mode(self, *modes: Mode) -> list[Node]:
        """Return the nodes in one of these modes."""
        return [node for node in self.nodes if node.mode in modes]
