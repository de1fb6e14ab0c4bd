"""Files of a checkpoint that are forced to disk with each batch."""

from __future__ import annotations

import tracemalloc

from streaming.checkpoint.files import CheckpointFiles

FILES_OF_A_BATCH = 12
BATCHES = 200


def test_the_memory_of_forced_files_does_not_grow_with_batches(tmp_path, monkeypatch):
    forced: list[str] = []
    monkeypatch.setattr("streaming.checkpoint.files.force", lambda path: forced.append(str(path)))
    files = CheckpointFiles(tmp_path)

    def write(batch: int) -> None:
        for old in tmp_path.iterdir():
            old.unlink()
        for number in range(FILES_OF_A_BATCH):
            (tmp_path / f"{batch}-{number}").write_bytes(b"state")
        files.force()

    def used_bytes(batches: range) -> int:
        for batch in batches:
            forced.clear()
            write(batch)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before_bytes = used_bytes(range(BATCHES))
        grown_bytes = used_bytes(range(BATCHES, 2 * BATCHES)) - before_bytes
    finally:
        tracemalloc.stop()
    assert len(forced) == FILES_OF_A_BATCH + 1  # with the directory
    assert grown_bytes < 10 * BATCHES * FILES_OF_A_BATCH


def test_a_file_is_forced_once_in_each_form(tmp_path, monkeypatch):
    forced: list[str] = []
    monkeypatch.setattr("streaming.checkpoint.files.force", lambda path: forced.append(str(path)))
    files = CheckpointFiles(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "1").write_bytes(b"one")
    files.force()
    files.force()
    assert sorted(forced) == sorted(map(str, (tmp_path, tmp_path / "state", tmp_path / "state" / "1")))
    (tmp_path / "state" / "1").write_bytes(b"other")
    files.force()
    assert forced[3:] == [str(tmp_path / "state" / "1"), str(tmp_path / "state")]
