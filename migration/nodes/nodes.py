"""Answers of nodes about themselves and the quorum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migration.nodes.modes import Mode


@dataclass(frozen=True, slots=True)
class Node:
    """An asked node with its id and mode, or the reason without a mode.

    `settings` are the requested ones, of brokers only.
    """

    address: str
    node_id: int | None = None
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

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[int, ...]
    addresses: Mapping[int, str] = field(default_factory=dict)
    log_ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nodes:
    """All asked nodes and the quorum, or None if no node speaks for it."""

    nodes: tuple[Node, ...]
    quorum: Quorum | None

    def in_mode(self, *modes: Mode) -> list[Node]:
        """Return the nodes in one of these modes."""
        return [node for node in self.nodes if node.mode in modes]
