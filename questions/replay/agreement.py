"""Agreement of a controller's writes with Kontrast's expectations, as a line and as JSON fields."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from controller.contract.gauges_row import Writes
from controller.view.types import Header
from wording.sentences import plural


def percent(agreement: float | None) -> str:
    """Return the agreement in per cent, rounded down so that 100 % means full agreement."""
    return "-" if agreement is None else f"{math.floor(round(agreement * 1_000, 6)) / 10:.1f} %"


class Agreement(NamedTuple):
    """Counts of the controller's writes by their explanation, and of the inferred ones by rule."""

    writes: Writes
    inferences: Mapping[str, int]

    @classmethod
    def so_far(cls, header: Header) -> Agreement:
        """Return the agreement since the cluster's state was created."""
        return cls(header.tally.writes, header.tally.happened.inferences)

    def since(self, earlier: Agreement) -> Agreement:
        """Return the agreement of the writes since `earlier`."""
        by_rule = Counter(self.inferences) - Counter(earlier.inferences)
        return Agreement(self.writes.since(earlier.writes), dict(by_rule))

    def fields(self) -> dict[str, Any]:
        """Return fields of the JSON object."""
        writes = msgspec.structs.asdict(self.writes)
        return {"writes": writes, "inferences": dict(self.inferences), "agreement": self.writes.agreement}

    def line(self) -> str:
        """Return a sentence with the count of each verdict, and of each rule, the most frequent first."""
        writes = self.writes
        total = writes.expected + writes.inferred + writes.unexplained
        if not total:
            return "no writes of the controller, and so no agreement"
        most_first = sorted(self.inferences.items(), key=lambda rule: (-rule[1], rule[0]))
        rules = ", ".join(f"{name.replace('-', ' ')} {count:,}" for name, count in most_first)
        return (
            f"{total:,} {plural(total, 'write', 'writes')} of the controller: {writes.expected:,} as expected, "
            f"{writes.inferred:,} explained by inference{f' ({rules})' if rules else ''}, "
            f"{writes.unexplained:,} unexplained: agreement {percent(writes.agreement)}"
        )
