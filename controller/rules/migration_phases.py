"""Phases of the way from ZooKeeper to KRaft (KIP-866), and a table of the evidence that leads from phase to phase."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class MigrationPhase(Enum):
    """Phase of the migration, as ZooKeeper shows it."""

    ZOOKEEPER = "zookeeper"  # without a quorum, or after /migration was deleted, brokers elect the controller
    WAITING = "waiting"  # a quorum made /migration and waits for brokers, under the ZooKeeper controller
    CLAIMED = "claimed"  # a KRaft controller owns /controller and copies ZooKeeper
    SYNCING = "syncing"  # after the copy, or under another KRaft leader, ZooKeeper is made equal to KRaft
    HYBRID = "hybrid"  # KRaft leads and writes to ZooKeeper too, brokers are registered there
    DUAL_WRITE = "dual_write"  # KRaft leads and writes to ZooKeeper too, all brokers live in KRaft mode
    SILENT = "silent"  # no pulse, because the dual write broke, the quorum was lost, or the migration is finalized
    ROLLED_BACK = "rolled_back"  # a broker is controller again, or /migration is of an earlier attempt

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own


class PhaseEvidence(Enum):
    """Change in ZooKeeper, or the lack of one, that may end a phase."""

    QUORUM_CAME = "/migration is there, without an offset"
    OFFSET_FOUND = "/migration has an offset while no KRaft controller owns /controller"
    ZNODE_DELETED = "/migration was deleted"
    CLAIM = "a KRaft controller claimed /controller, before its copy"
    CLAIM_WITH_OFFSET = "a KRaft controller claimed /controller, /migration has an offset"
    COPIED = "/migration got an offset"
    PULSE = "the offset in /migration rose"
    NONE_REGISTERED = "no broker is registered, and one lives in KRaft mode"
    REGISTERED = "a broker registered"
    SILENCE = "/migration was not written for ten seconds"
    BROKER_CLAIMED = "a broker became controller"

    __hash__ = object.__hash__


_P = MigrationPhase
_E = PhaseEvidence

_ANOTHER_LEADER: Final = {_E.CLAIM: _P.CLAIMED, _E.CLAIM_WITH_OFFSET: _P.SYNCING, _E.BROKER_CLAIMED: _P.ROLLED_BACK}

# In phase KEY, each evidence leads to the phase beside it. Evidence that is not named has no effect.
NEXT_PHASE: Final[Mapping[MigrationPhase, Mapping[PhaseEvidence, MigrationPhase]]] = MappingProxyType(
    {
        _P.ZOOKEEPER: {
            _E.QUORUM_CAME: _P.WAITING,
            _E.OFFSET_FOUND: _P.ROLLED_BACK,
            _E.CLAIM: _P.CLAIMED,
            _E.CLAIM_WITH_OFFSET: _P.SYNCING,
        },
        _P.WAITING: {
            _E.OFFSET_FOUND: _P.ROLLED_BACK,
            _E.ZNODE_DELETED: _P.ZOOKEEPER,
            _E.CLAIM: _P.CLAIMED,
            _E.CLAIM_WITH_OFFSET: _P.SYNCING,
        },
        _P.CLAIMED: {
            _E.COPIED: _P.SYNCING,
            _E.CLAIM_WITH_OFFSET: _P.SYNCING,
            _E.BROKER_CLAIMED: _P.WAITING,  # before any copy, so the quorum waits as before its claim
        },
        _P.SYNCING: {**_ANOTHER_LEADER, _E.PULSE: _P.HYBRID, _E.ZNODE_DELETED: _P.SILENT},
        _P.HYBRID: {
            **_ANOTHER_LEADER,
            _E.NONE_REGISTERED: _P.DUAL_WRITE,
            _E.SILENCE: _P.SILENT,
            _E.ZNODE_DELETED: _P.SILENT,
        },
        _P.DUAL_WRITE: {
            **_ANOTHER_LEADER,
            _E.REGISTERED: _P.HYBRID,
            _E.SILENCE: _P.SILENT,
            _E.ZNODE_DELETED: _P.SILENT,
        },
        _P.SILENT: {**_ANOTHER_LEADER, _E.PULSE: _P.HYBRID},
        _P.ROLLED_BACK: {
            _E.QUORUM_CAME: _P.WAITING,
            _E.ZNODE_DELETED: _P.ZOOKEEPER,
            _E.CLAIM: _P.CLAIMED,
            _E.CLAIM_WITH_OFFSET: _P.SYNCING,
        },
    }
)

# Phases in which a KRaft controller leads. No ZooKeeper controller acts, and KRaft's writes are not predicted.
LED_BY_KRAFT: Final = frozenset({_P.CLAIMED, _P.SYNCING, _P.HYBRID, _P.DUAL_WRITE, _P.SILENT})

# Phases in which /migration is written about every half second.
WITH_PULSE: Final = frozenset({_P.HYBRID, _P.DUAL_WRITE})
