"""Archives of the embedded servers' classes, made once, and used by later servers."""

from __future__ import annotations

import pytest

from cli.embedded.class_archives import make
from cli.embedded.zookeeper import ZooKeeper
from streaming.java import class_archive


@pytest.fixture
def archives(java, tmp_path, monkeypatch):
    """Return an empty directory of archives."""
    monkeypatch.setattr(class_archive, "_directory", lambda: tmp_path / "archives")
    return tmp_path / "archives"


@pytest.mark.nightly
def test_they_are_made_once_and_servers_load_their_classes_from_them(archives, tmp_path, monkeypatch):
    make()
    made = {archive: archive.stat().st_mtime_ns for archive in archives.glob("*.jsa")}
    assert len(made) == 2
    make()
    assert {archive: archive.stat().st_mtime_ns for archive in archives.glob("*.jsa")} == made
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:class+load")
    with ZooKeeper(tmp_path / "zookeeper") as server:
        loaded = [line for line in server.log.read_text().splitlines() if "org.apache.zookeeper.server." in line]
    assert sum("source: shared objects file (top)" in line for line in loaded) > 100
