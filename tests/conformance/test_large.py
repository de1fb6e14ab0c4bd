"""The replica against controllers of large and unusual clusters, with known differences by recording and term."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.first_sight import look, main
from tests.conformance.large import LARGE
from tests.conformance.proof import counted
from tests.conformance.recording import ARCHIVES, unpack
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


def test_the_figures_of_an_archive_name_each_term_that_differs(capsys):
    known = LARGE["below39"]
    assert main([str(ARCHIVES / "below39.tar.xz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    agreed, real, derived = lines[0].removeprefix("below39  transitions ").split("  ")[0].split(" / ")
    parted = [parted for _, parted in known.parted.values()]
    assert int(real) - int(agreed) == sum(part.real_moves for part in parted)
    assert int(derived) - int(agreed) == sum(part.derived_moves for part in parted)
    equal, compared = lines[0].partition("gauges ")[2].split(" equal of ")
    assert int(compared) - int(equal) == sum(known.gauges.values())
    terms = [line.split(":")[0] for line in lines if "  term " in line]
    assert terms == [f"below39  term {epoch}" for epoch in sorted(known.parted)]


def test_a_file_that_is_no_archive_gets_one_sentence(tmp_path, capsys):
    file = tmp_path / "no.tar.xz"
    file.write_text("no archive")
    assert main([str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {file} cannot be read: ")
