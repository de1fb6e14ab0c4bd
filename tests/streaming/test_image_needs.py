"""Needs of the job's Java in an image: jars that another user fetched, a /tmp with noexec, an unknown host name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.errors import StreamError
from streaming.java.artifacts import LOCAL_FILE_SYSTEM, cache_directory, jars
from streaming.java.installation import library_parent
from tests.read_only import without_privileges
from tests.streaming.cluster_records import life_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cache_of_root(tmp_path, monkeypatch):
    """Return an own cache, made like that of the image, and readable by others as its parents are."""
    whole = cache_directory() / LOCAL_FILE_SYSTEM.name
    own = tmp_path / "cache"
    monkeypatch.setenv("KONTRAST_CACHE", str(own))
    monkeypatch.setattr("streaming.java.artifacts._resolve", lambda request, directory: _copied(whole, directory))
    jars(LOCAL_FILE_SYSTEM)
    return own


def _copied(whole: Path, directory: Path) -> list[Path]:
    directory.mkdir(parents=True)
    for jar in whole.glob("*.jar"):
        (directory / jar.name).write_bytes(jar.read_bytes())
    return sorted(directory.glob("*.jar"))


def test_jars_that_one_user_fetched_can_be_read_by_another(cache_of_root):
    for path in (cache_of_root, *cache_of_root.rglob("*")):
        assert path.stat().st_mode & 0o004, path
        assert path.is_file() or path.stat().st_mode & 0o001, path


def check(streams, *command):
    stream = ["-m", "cli", "stream", "--check", "--from", f"journal:{streams.input}"]
    words = [*stream, "--to", f"journal:{streams.outputs}", "--checkpoint", str(streams.checkpoint)]
    return subprocess.run([*command, sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_jars_that_may_not_be_read_are_one_sentence_in_the_check(cache_of_root, streams):
    assert "ok     jars: they are in" in check(streams).stdout
    cache_of_root.chmod(0o000)
    try:
        checked = check(streams, *without_privileges())
    finally:
        cache_of_root.chmod(0o755)
    assert f"may not read {cache_of_root}" in checked.stdout
    assert f"run `chmod -R a+rX {cache_of_root}` as its owner" in checked.stdout
    assert checked.returncode == 3
    assert "Traceback" not in checked.stderr


@pytest.fixture
def noexec(monkeypatch):
    """Return a set of directories that count as mounted with noexec."""
    found = set[Path]()
    monkeypatch.setattr("streaming.java.installation._forbids_programs", found.__contains__)
    return found


def test_libraries_go_beside_the_checkpoint_if_temporary_files_are_noexec(noexec, streams):
    config = streams.config(checkpoint="/var/lib/kontrast/checkpoint")
    usual, beside = config.library_parents
    assert library_parent(config.library_parents) == usual
    noexec.add(usual)
    assert library_parent(config.library_parents) == beside == Path("/var/lib/kontrast")
    noexec.add(beside)
    with pytest.raises(StreamError, match=f"{usual} is mounted noexec, so Java cannot load RocksDB .* or set TMPDIR"):
        library_parent(config.library_parents)


# /tmp forbids programs, the directory $0 below it and the checkout allow them, and the host's own name has no address.
HARDENED = """
exec unshare --mount --uts sh -c '
mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp
for each in "$0" "$PWD"; do mount --bind "$each" "$each" && mount -o remount,bind,exec "$each"; done
cd "$PWD"
hostname no-such-name.invalid
exec "$@"' "$0" "$@"
"""


@pytest.mark.nightly
@pytest.mark.xdist_group("pipelines")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and rename a host")
def test_the_job_runs_with_docker_s_tmp_on_a_host_without_a_name(java, streams):
    streams.append(life_of("east", topics=2).lines)
    stream = [sys.executable, "-m", "cli", "stream", "--available-now", "--from", f"journal:{streams.input}"]
    stream += ["--to", f"journal:{streams.outputs}", "--checkpoint", str(streams.checkpoint)]
    ended = subprocess.run(
        ["sh", "-c", HARDENED, str(streams.input.parent), *stream], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert streams.read("metadata") != []
