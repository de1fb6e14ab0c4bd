"""Counts of the controller's writes, as gauges have them."""

from __future__ import annotations

import msgspec


class Writes(msgspec.Struct, frozen=True, array_like=True):
    """The controller's writes of partition states, by how they were explained."""

    expected: int = 0
    inferred: int = 0
    unexplained: int = 0

    def since(self, earlier: Writes) -> Writes:
        """Writes that came after the earlier count."""
        return Writes(
            self.expected - earlier.expected,
            self.inferred - earlier.inferred,
            self.unexplained - earlier.unexplained,
        )

    @property
    def agreement(self) -> float | None:
        """Share that the controller's rules explain, expected or inferred; None of no writes."""
        explained = self.expected + self.inferred
        counted = explained + self.unexplained
        return explained / counted if counted else None
