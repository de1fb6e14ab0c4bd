"""Readers keep the newest row of each subject, whatever the order in which rows come, and however often."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, strategies as st

from controller.contract import newest_rows
from controller.contract.newest_rows import NewestRows


class Said(NamedTuple):
    generation: int
    seq: int
    ordinal: int
    key: str = "a"
    removes: bool = False


PLACES = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1))


def kept(rows: list[Said]) -> dict[str, Said]:
    newest: NewestRows[str, Said] = NewestRows()
    for row in rows:
        newest.apply(row.key, row, removes=row.removes)
    return dict(newest.rows)


@given(st.data())
def test_the_order_of_arrival_and_repetitions_do_not_matter(data: st.DataObject) -> None:
    places = data.draw(st.dictionaries(st.tuples(PLACES, st.sampled_from("ab")), st.booleans(), max_size=12))
    rows = [Said(*place, key, removes) for (place, key), removes in sorted(places.items())]
    arrived = data.draw(st.permutations(rows)) + (data.draw(st.lists(st.sampled_from(rows))) if rows else [])
    newest = {row.key: row for row in rows}
    assert kept(arrived) == {key: row for key, row in newest.items() if not row.removes}


def test_void_rows_and_their_removals_are_forgotten() -> None:
    newest: NewestRows[str, Said] = NewestRows()
    newest.apply("a", Said(1, 2, 0))
    newest.apply("b", Said(1, 3, 0), removes=True)
    newest.clear()
    assert not newest.rows
    assert newest.apply("b", Said(1, 1, 0))


def test_of_very_many_removals_the_oldest_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(newest_rows, "REMEMBERED_REMOVALS", 2)
    newest: NewestRows[str, Said] = NewestRows()
    for number, key in enumerate("abc"):
        newest.apply(key, Said(1, number, 1), removes=True)
    assert newest.apply("a", Said(1, 0, 0)), "nothing is known of it any more"
    assert not newest.apply("c", Said(1, 2, 0))
