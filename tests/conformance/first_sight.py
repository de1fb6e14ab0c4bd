"""Agreement with recordings that no rule has seen, by term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.conformance.agreement import (
    Agreement,
    Parted,
    account_of,
    as_far_as_told,
    moves_agreement,
    parted_by_epoch,
    requests_agreement,
)
from tests.conformance.busy_controllers import busy_ms
from tests.conformance.cut_terms import CutTerm, cut_terms, without
from tests.conformance.gauge_samples import compare_gauges
from tests.conformance.impaired import Impaired, by_rows, by_znodes
from tests.conformance.proof import Proof, proof_of
from tests.conformance.recording import Recording, replay


class Sight(NamedTuple):
    """Figures of a recording. Moves and requests leave out the terms that were cut before a write."""

    moves: Agreement
    requests: Agreement
    parted: Mapping[int, Parted]  # by the controller's epoch, including cut terms
    proof: Proof
    cut: Sequence[CutTerm]
    gauges_equal: int
    gauges_compared: int
    gauges_wrong: Mapping[str, int]
    quiet: Sequence[Impaired]  # the partitions that were impaired at quiet moments, by ZooKeeper's log
    differing: Sequence[int]  # by record number, quiet moments at which the rows called other partitions impaired

    def lines(self) -> Iterator[str]:
        """Yield the figures as text, without the terms in which the accounts differ."""
        gauges = f"gauges {self.gauges_equal} equal of {self.gauges_compared}"
        yield f"transitions {self.moves}   requests {self.requests}   {gauges}"
        yield from (f"cut before it wrote anything: {term}" for term in self.cut)
        moments = f"{len(self.differing)} of {len(self.quiet)} quiet moments {list(self.differing)}"
        yield f"impaired partitions differ at {moments}"


def look(recording: Recording) -> Sight:
    """Replay a recording and count the agreement."""
    records = list(recording.records())
    replayed = replay(records, recording.profile(), recording.settings())
    real = recording.account()
    ours = as_far_as_told(account_of(replayed.rows), real)
    cut = cut_terms(records, replayed.rows, real, ours)
    equal, compared, wrong = compare_gauges(recording, replayed, busy_ms(recording.directory))
    quiet = list(by_znodes(records, caps_min_isr=replayed.context.header.profile.caps_min_isr))
    published = list(by_rows(replayed.rows, [moment.seq for moment in quiet]))
    return Sight(
        moves_agreement(without(real, cut), without(ours, cut)),
        requests_agreement(without(real, cut), without(ours, cut)),
        parted_by_epoch(real, ours),
        proof_of(records, replayed.rows, real),
        cut,
        equal,
        compared,
        Counter(gauge.gauge for gauge in wrong),
        quiet,
        [moment.seq for moment, rows in zip(quiet, published, strict=True) if moment != rows],
    )
