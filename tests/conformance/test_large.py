"""The replica against controllers of large and unusual clusters: where it differs is known by recording and term."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.agreement import account_of, as_far_as_told, moves_agreement, parted_by_epoch, requests_agreement
from tests.conformance.busy_controllers import busy_ms
from tests.conformance.cut_terms import cut_terms, without
from tests.conformance.gauge_samples import compare_gauges
from tests.conformance.impaired import by_rows, by_znodes
from tests.conformance.large import LARGE
from tests.conformance.recording import replay, unpack

# Most of the time that these take is the replica's own: 8 to 20 s for six to nine takeovers of 10,000 partitions.
SLOW = ("large28", "large24", "large11")
README = Path(__file__).parent / "recordings" / "README.md"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.faults] if name in SLOW else []) for name in LARGE]
)
def test_a_large_cluster_is_followed_but_for_what_is_known(name: str, tmp_path: Path, report: list[str]):
    recording = unpack(name, tmp_path)
    records = list(recording.records())
    replayed = replay(records, recording.profile(), recording.settings())
    real = recording.account()
    ours = as_far_as_told(account_of(replayed.rows), real)
    cut = cut_terms(records, replayed.rows, real, ours)
    moves, requests = (count(without(real, cut), without(ours, cut)) for count in (moves_agreement, requests_agreement))
    equal, compared, wrong = compare_gauges(recording, replayed, busy_ms(recording.directory))
    true = list(by_znodes(records, caps_min_isr=replayed.context.header.profile.caps_min_isr))
    published = list(by_rows(replayed.rows, [moment.seq for moment in true]))
    differing = [moment.seq for moment, rows in zip(true, published, strict=True) if moment != rows]
    report.append(f"{name:10} transitions {moves}   requests {requests}   gauges {equal} equal of {compared}")
    report.extend(f"{name:10} cut before it wrote anything: {term}" for term in cut)
    report.append(f"{name:10} impaired partitions differ at {len(differing)} of {len(true)} quiet moments {differing}")
    assert moves.real > 500  # an empty account would agree with anything
    known = LARGE[name]
    assert parted_by_epoch(real, ours) == {epoch: parted for epoch, (_, parted) in known.parted.items()}
    assert [(term.epoch, term.said) for term in cut] == [(epoch, True) for epoch in known.cut]
    assert Counter(gauge.gauge for gauge in wrong) == known.gauges
    assert any(moment.leaderless for moment in true)
    assert any(moment.short for moment in true)
    assert differing == list(known.impaired)


def test_what_differs_in_large_clusters_is_explained_under_its_name():
    named = {why for known in LARGE.values() for why, _ in known.parted.values()}
    assert set(re.findall(r"^\| \*([a-z ]+)\* \| ", README.read_text(), re.MULTILINE)) == named
