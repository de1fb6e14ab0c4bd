"""Migration machine, which enters phases on evidence, by the table in `rules/migration_phases.py`."""

from __future__ import annotations

from controller.rules.migration_phases import NEXT_PHASE, Evidence, MigrationPhase
from controller.transaction.transaction import Transaction


def follow(tx: Transaction, evidence: Evidence) -> None:
    """Enter the phase to which the evidence leads. Evidence outside the present phase's list has no effect."""
    phase = NEXT_PHASE[tx.header.migration.phase].get(evidence)
    if phase is not None:
        enter(tx, phase)


def enter(tx: Transaction, phase: MigrationPhase) -> None:
    """Enter a phase, as a complete read shows it. Each claim begins its phase again."""
    migration = tx.header.migration
    migration.phase, migration.since_ms = phase, tx.header.time_ms
