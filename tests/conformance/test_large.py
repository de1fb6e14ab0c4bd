"""The replica against controllers of large and unusual clusters, with known differences by recording and term."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.first_sight import look
from tests.conformance.large import LARGE
from tests.conformance.proof import counted
from tests.conformance.recording import unpack
from tests.lanes import in_gate

README = Path(__file__).parent / "recordings" / "README.md"


# Most of the time that 10,000 partitions take is the replica's own: 8 to 20 s for six to nine takeovers.
@pytest.mark.parametrize("name", in_gate(*(name for name in LARGE if not name.startswith("large")), of=LARGE))
def test_a_large_cluster_is_followed_but_for_what_is_known(name: str, tmp_path: Path, report: list[str]):
    sight = look(unpack(name, tmp_path))
    report.extend(f"{name:10} {line}" for line in sight.lines())
    assert sight.moves.real > 500  # an empty account would agree with anything
    assert sight.proof == counted()[name][1]
    known = LARGE[name]
    assert sight.parted == {epoch: parted for epoch, (_, parted) in known.parted.items()}
    assert [(term.epoch, term.said) for term in sight.cut] == [(epoch, True) for epoch in known.cut]
    assert sight.gauges_wrong == known.gauges
    assert any(moment.leaderless for moment in sight.quiet)
    assert any(moment.short for moment in sight.quiet)
    assert sight.differing == list(known.impaired)


def test_what_differs_in_large_clusters_is_explained_under_its_name():
    named = {why for known in LARGE.values() for why, _ in known.parted.values()}
    assert set(re.findall(r"^\| \*([a-z ]+)\* \| ", README.read_text(), re.MULTILINE)) == named
