"""Tests of the prose check, which `make check` runs."""

from __future__ import annotations

from tests import prose


def test_short_sentences_alone_are_no_rhythm(tmp_path):
    (tmp_path / "README.md").write_text("Kontrast reads every znode. It never writes. The page shows brokers.\n" * 20)
    assert len(prose.rhythm(tmp_path).outside()) == 3


def test_a_mark_counts_in_prose_and_not_in_code():
    text = prose.of_markdown("It says what it is. `what` is [nothing](what.md).\n\n```sh\ntell nobody\n```\n")
    assert prose.figures(text).marks == tuple(1_000 * count / 8 for count in (1, 0, 1, 1, 0))


def test_each_mark_is_found():
    found = [[bool(pattern.search(text)) for pattern in prose.MARKS.values()] for text in (
        "the part of it", "What follows", "nobody came", "the sun told us", "one thing; another", "a thing: another",
    )]  # fmt: skip
    assert [row.index(True) for row in found] == [1, 0, 3, 2, 4, 4]


def test_parts_of_code_are_kept_apart():
    source = '"""Say what."""\n\nX = "a message of more than five words"  # nothing is said\nY = "short"\n'
    assert prose.of_code([source]) == {
        "docstrings": "Say what.",
        "comments": "nothing is said",
        "strings": "a message of more than five words",
    }


def test_a_part_above_a_limit_is_named_with_its_worst_sentence():
    text = "The broker registers. It says what nobody told. The controller elects a leader."
    assert prose.worst(text, 1) == ["It says what nobody told."]
    assert "what: 76.9 per 1,000 words, limit 2" in prose.figures(text).above(prose.LIMITS["docs"])


def test_long_sentences_count():
    long = f"The controller elects {'a leader and ' * 12}stops."
    assert prose.figures(f"{long} {long}").above(prose.LIMITS["docs"]) == [
        "90 % of sentences: up to 40 words, limit 27"
    ]
