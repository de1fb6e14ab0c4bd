"""A checkpoint with a damaged file. The job names the file and the way out, or goes on with true rows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from controller.contract.outputs import OUTPUTS
from streaming.checkpoint.files import agrees_with_checksum, require_checksums
from streaming.errors import StreamError
from tests.streaming.checkpoints import forget_state, newest_rows
from tests.streaming.cluster_records import ClusterLife, Streams, life_of
from tests.waiting import eventually

_WAY_OUT = re.compile(r"\. Restore (?:it|the checkpoint), or begin again with `kontrast stream --rebuild`")


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def halved(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flipped(path: Path) -> None:
    path.write_bytes(bytes(byte ^ (0x10 if place % 7 == 0 else 0) for place, byte in enumerate(path.read_bytes())))


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def with_a_flipped_bit(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 0x80 >> bit % 8
    path.write_bytes(content)


DAMAGE = (removed, emptied, halved, flipped, zeroed)


class Saved:
    """A checkpoint and outputs to which every case goes back, and ten records that are still to be read."""

    def __init__(self, streams: Streams, spark: SparkSession, work_off: Callable[..., None], life: ClusterLife) -> None:
        self.streams, self.life, self._spark, self._work_off = streams, life, spark, work_off
        self._expected = life.rows()
        self._saved = streams.checkpoint.parent / "saved"
        half = len(life.lines) // 2
        for lines in (life.lines[:half], life.lines[half:-10]):
            streams.append(lines)
            work_off(streams.config(max_batch_bytes=6000))
        streams.append(life.lines[-10:])
        # A snapshot of the state is written by Spark's maintenance, later.
        eventually(lambda: any(streams.checkpoint.rglob("*.zip")))
        forget_state(spark)
        for directory in (streams.checkpoint, streams.outputs):
            shutil.copytree(directory, self._saved / directory.name)

    def kinds(self) -> Iterator[Path]:
        """Yield the newest file of each kind, below the checkpoint."""
        newest: dict[str, Path] = {}
        files = (path for path in self.streams.checkpoint.rglob("*") if path.is_file() and path.suffix != ".lock")
        for path in sorted(files, key=lambda path: [int(number) for number in re.findall("[0-9]+", path.name)]):
            kind = re.sub("[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+", "N", str(path.relative_to(self.streams.checkpoint)))
            newest[kind] = path
        return iter(newest.values())

    def restore(self) -> None:
        forget_state(self._spark)
        for directory in (self.streams.checkpoint, self.streams.outputs):
            shutil.rmtree(directory)
            shutil.copytree(self._saved / directory.name, directory)

    def start(self, case: str, named: Path, *, with_rebuild: bool = False) -> str:
        """Check that the job goes on or refuses correctly, and return which. `with_rebuild` tries the way out, too."""
        refused = self._refused()
        if refused is not None:
            assert str(named) in refused, f"{case}: {refused}"
            assert _WAY_OUT.search(refused), f"{case}: {refused}"
            assert "Exception" not in refused, f"{case}: {refused}"
            if with_rebuild:
                forget_state(self._spark)
                self._work_off(self.streams.config(), rebuild=True)
                metadata = self.streams.read("metadata")
                assert newest_rows(metadata) == newest_rows(self._expected["metadata"]), case
            return "refused"
        outputs = self.streams.read_all()
        for output in OUTPUTS:
            assert newest_rows(outputs[output]) == newest_rows(self._expected[output]), f"{case}: {output}"
            assert list(dict.fromkeys(outputs[output])) == list(dict.fromkeys(self._expected[output])), case
        return "went on"

    def _refused(self) -> str | None:
        """Return the job's refusal, or None if it goes on."""
        try:
            self._work_off(self.streams.config())
        except StreamError as error:
            return str(error)
        return None


@pytest.fixture(scope="module")
def once(tmp_path_factory, spark, work_off):
    streams = Streams(tmp_path_factory.mktemp("damaged"))
    return Saved(streams, spark, work_off, life_of("east", topics=10, losses=3))


@pytest.fixture
def saved(once):
    once.restore()
    return once


def with_checksums(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def test_damaged_files_are_named_with_the_way_out_or_healed(saved):
    """One file of Kontrast and one of Spark. A night damages every kind in every way."""
    newest = {path.suffix or path.parent.name: path for path in saved.kinds() if not path.name.startswith(".")}
    cases = [(removed, saved.streams.checkpoint / "kontrast.json", "refused"), (flipped, newest["offsets"], "went on")]
    for damage, path, expected in cases:
        saved.restore()
        damage(path)
        case = f"{path} {damage.__name__}"
        assert saved.start(case, path, with_rebuild=damage is removed) == expected, case


SIZE_OF_A_CHUNK = range(32, 64)  # its bits in a file of checksums


@pytest.mark.timeout(300)
def test_a_flipped_bit_in_a_file_of_checksums_is_named_with_the_way_out(saved):
    """With a negative size of a chunk Java fails with a bare number, and with a large one it has too little memory."""
    newest = {path.suffix or path.parent.name: path for path in saved.kinds() if not path.name.startswith(".")}
    for bit, kind in ((32, ".changelog"), (33, ".zip"), (34, "spark"), (32, "offsets")):
        saved.restore()
        damaged = with_checksums(newest[kind])
        with_a_flipped_bit(damaged, bit)
        assert saved.start(f"bit {bit} of {damaged}", damaged) == ("went on" if kind == "offsets" else "refused")


def test_no_flipped_bit_makes_a_chunk_that_ends_java(tmp_path):
    path = tmp_path / "7"
    path.write_bytes(b"v1")
    whole = b"crc\0" + (512).to_bytes(4, "big") + crc32(b"v1").to_bytes(4, "big")
    for bit in SIZE_OF_A_CHUNK:
        with_checksums(path).write_bytes(whole)
        with_a_flipped_bit(with_checksums(path), bit)
        if 0 < int.from_bytes(with_checksums(path).read_bytes()[4:8], "big") <= 2**20:
            require_checksums(tmp_path)
            assert agrees_with_checksum(path)
            continue
        with pytest.raises(StreamError, match=rf"{re.escape(str(with_checksums(path)))} is damaged. .*--rebuild"):
            require_checksums(tmp_path)
        assert not agrees_with_checksum(path)


@pytest.mark.nightly
def test_every_kind_of_file_in_every_way(saved):
    refused = 0
    for path in list(saved.kinds()):
        for damage in (halved,) if path.suffix == ".crc" else DAMAGE:  # other damage to checksums does no harm
            checksums = with_checksums(path)
            for without_checksums in {False, checksums.exists()}:
                saved.restore()
                damage(path)
                if without_checksums:
                    checksums.unlink()
                case = f"{path} {damage.__name__}{' without its checksums' if without_checksums else ''}"
                named = path.with_name(path.name[1:-4]) if path.suffix == ".crc" else path
                # Lost content without any trace in a file can only be blamed on the state as a whole.
                gone = without_checksums and damage is removed and named.suffix not in {".sst", ".changelog"}
                refused += saved.start(case, saved.streams.checkpoint if gone else named) == "refused"
    assert refused > 20


@pytest.mark.nightly
def test_a_directory_that_is_gone(saved):
    for directory in ("state", "state/0", "state/0/0", "state/0/_metadata", "offsets", "commits"):
        saved.restore()
        shutil.rmtree(saved.streams.checkpoint / "spark" / directory)
        saved.start(f"{directory} removed", saved.streams.checkpoint, with_rebuild=True)


def test_an_entry_of_the_offsets_that_is_missing_in_between(saved):
    offsets = saved.streams.checkpoint / "spark" / "offsets"
    numbers = sorted(int(path.name) for path in offsets.glob("[0-9]*"))
    for path in (offsets / str(numbers[-2]), with_checksums(offsets / str(numbers[-2]))):
        path.unlink()
    assert saved.start("an entry in between", offsets / str(numbers[-2])) == "refused"
