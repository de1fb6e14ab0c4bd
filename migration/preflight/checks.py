"""The table of checks, worst first."""

from __future__ import annotations

from typing import Final

from migration.preflight.check import Check
from migration.preflight.losses import LOSSES
from migration.preflight.outages import OUTAGES
from migration.preflight.waits import WAITS

CHECKS: Final[tuple[Check, ...]] = (*OUTAGES, *WAITS, *LOSSES)
