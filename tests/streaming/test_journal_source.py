"""The journal as a source for Spark, with files removed under the reader, and the resulting errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streaming.published import unpack
from streaming.sources import journal_source
from streaming.sources.journal_source import JournalReader
from transport.journal import ForeignOffsetError, JournalWriter


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    return tmp_path / "changes"


def rows(reader: JournalReader, start: dict) -> tuple[int, dict]:
    batches, end = reader.read(start)
    return sum(batch.num_rows for batch in batches), end


def test_a_journal_that_is_begun_again_at_the_same_offset_is_read_on(changes: Path) -> None:
    with JournalWriter(changes) as writer:
        end, identity = writer.append([b'{"v":1,"cluster":"east"}']), writer.identity
    reader = JournalReader(changes, 1024)
    count, place = rows(reader, reader.initialOffset())
    assert (count, place["offset"]) == (1, end)
    shutil.rmtree(changes)
    assert rows(reader, place) == (0, place)
    with JournalWriter(changes, begin=end, identity=identity) as writer:
        writer.append([b'{"v":1,"cluster":"east"}'])
    assert rows(reader, place)[0] == 1


def test_a_journal_that_stays_away_is_an_error_that_names_the_way_out(
    changes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_source, "BEGUN_AGAIN_SECONDS", 0.0)
    with JournalWriter(changes) as writer:
        end = writer.append([b'{"v":1,"cluster":"east"}'])
    reader = JournalReader(changes, 1024)
    shutil.rmtree(changes)
    with pytest.raises(ForeignOffsetError, match="kontrast stream --rebuild"):
        rows(reader, {"offset": end})


def test_each_line_goes_to_its_own_cluster_whatever_stands_before_it(changes: Path) -> None:
    east, eastern, garbage = b'{"v":1,"cluster":"east"}', b'{"v":1,"cluster":"eastern"}', b'{"v":1,"cluster"'
    reordered, no_text = b'{"cluster":"east","v":1}', b'{"v":1,"cluster":"\xff"}'
    lines = [east, eastern, east, east, garbage, east, reordered, no_text, no_text, eastern]
    with JournalWriter(changes) as writer:
        writer.append(lines)
    reader = JournalReader(changes, 1024)
    ((batch,), _) = reader.read(reader.initialOffset())
    found = {row["cluster"]: unpack(row["value"]).split(b"\n") for row in batch.to_pylist()}
    assert found == {"east": [east] * 4 + [reordered], "eastern": [eastern] * 2, "": [garbage, no_text, no_text]}
