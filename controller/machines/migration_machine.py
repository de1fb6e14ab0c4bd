"""Migration machine, which enters phases on evidence, by the table in `rules/migration_phases.py`."""

from __future__ import annotations

from controller.model.context import Header
from controller.rules.migration_phases import NEXT_PHASE, MigrationPhase, PhaseEvidence


def follow(header: Header, evidence: PhaseEvidence) -> None:
    """Enter the phase to which the evidence leads. Evidence outside the present phase's list has no effect."""
    phase = NEXT_PHASE[header.migration.phase].get(evidence)
    if phase is not None:
        enter(header, phase)


def enter(header: Header, phase: MigrationPhase) -> None:
    """Enter a phase, as a complete read shows it. Each claim begins its phase again."""
    migration = header.migration
    migration.phase, migration.since_ms = phase, header.time_ms
