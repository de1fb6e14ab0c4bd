"""A journal on its own full disk. `kontrast watch` reports it, waits, and loses no record."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from kazoo.client import KazooClient

from cli.embedded.process import ChildProcess
from controller.contract.records import Record, RecordKind, decode_record
from tests.ingest.conftest import make_cluster, replayed_tree, server_tree
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.programs import program
from tests.waiting import eventually
from transport.journal import read_journal

# Only the process sees the disk, in its own namespaces, which needs no rights.
_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=1m small "$0" && exec "$@"'


def test_records_wait_for_room_and_none_is_lost(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, tmp_path: Path
) -> None:
    make_cluster(kafka)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [
        *(program("unshare"), "--user", "--map-root-user", "--mount", "sh", "-c", _ON_A_SMALL_DISK, disk),
        *(sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--heartbeat-seconds", "0.2"),
        *("--zookeeper", in_memory.connect_string, "--to", f"journal:{disk / 'journal'}"),
    ]
    watch = ChildProcess("kontrast watch", command, tmp_path / "log")
    watch.launch()
    try:
        seen = Path(f"/proc/{watch.pid}/root") / disk.relative_to("/")

        def records() -> list[Record]:
            directory = seen / "journal"
            return [decode_record(line) for line in read_journal(directory, 0, 1 << 30).lines]

        def heartbeats() -> int:
            return sum(record.kind is RecordKind.HEARTBEAT for record in records())

        eventually(lambda: heartbeats() > 0)
        filler = seen / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False, capture_output=True)
        kafka.create("/admin/delete_topics/short-lived")
        for number in range(200):  # more than the rest of the last block
            kafka.set("/brokers/topics/t", str(number).encode() * 100)
        kafka.delete("/admin/delete_topics/short-lived")
        eventually(lambda: "no room left" in watch.log.read_text())
        before = records()
        filler.unlink()
        eventually(lambda: "without a loss" in watch.log.read_text())
        count = heartbeats()
        eventually(lambda: heartbeats() > count + 1)
        after = records()
        assert after[: len(before)] == before
        assert [record.seq for record in after] == sorted(record.seq for record in after)
        told = [record.kind for record in after if record.path == "/admin/delete_topics/short-lived"]
        assert told[0] in (RecordKind.CREATED, RecordKind.NODE)
        assert told[-1] is RecordKind.DELETED
        assert replayed_tree(after) == server_tree(kafka)
        watch.stop()
        assert "Traceback" not in watch.log.read_text()
    finally:
        watch.kill()


def test_a_watcher_that_starts_on_a_full_disk_waits_for_room(watched: str, kafka: KazooClient, tmp_path: Path) -> None:
    """A process that may write no byte into files fails as on a full disk. The limit can be raised while it runs."""
    make_cluster(kafka)
    command = [sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--zookeeper", watched]
    command += ["--to", f"journal:{tmp_path / 'journal'}", "--connect-timeout-seconds", "1"]
    without_room = (0, resource.RLIM_INFINITY)
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, without_room),
    ) as running:
        assert running.stderr is not None
        assert next((line for line in running.stderr if "trying again until there is room" in line), "") != ""
        time.sleep(1.5)  # longer than it would wait for a journal that cannot be reached
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        eventually(lambda: b"snapshot-end" in b"".join(read_journal(tmp_path / "journal", 0, 1 << 30).lines))
        running.terminate()
        assert "Traceback" not in running.stderr.read()
    assert running.returncode == 0
