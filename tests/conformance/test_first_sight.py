"""The figures that are printed for fresh recordings are the same that tests compare for kept recordings."""

from __future__ import annotations

from tests.conformance.first_sight import main
from tests.conformance.large import LARGE
from tests.conformance.recording import ARCHIVES


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
