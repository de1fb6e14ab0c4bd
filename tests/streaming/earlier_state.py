"""Make the state of a job with the code of the present directory, for a later Kontrast to go on from.

tests/streaming/earlier/README.md has the command.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from controller.contract.records import RecordKind
from tests.streaming.cluster_records import ClusterLife, Streams, life_of


def earlier_life() -> tuple[ClusterLife, int]:
    """Return the life of a cluster, and how many of its records come before the state, in which alerts are open."""
    life = life_of("east", topics=10, losses=1)
    life.state("topic-0", 0, 2, 5, [2])  # for no reason
    life.state("topic-1", 0, 1, 1, [2])  # with a leader outside the ISR
    life.state("nowhere", 0, 1, 0, [1])  # of no topic
    life.send(RecordKind.DELETED, "/brokers/ids/2")
    life.send(RecordKind.HEARTBEAT, value={"session": "connected", "watch_mode": "persistent"})
    before = len(life.records)
    life.broker(2)
    life.lose_broker_3(topics=10)
    return life, before


def main(archive: Path) -> None:
    """Work off the records before the state, and pack journals and checkpoint."""
    life, before = earlier_life()
    with TemporaryDirectory() as directory:
        streams = Streams(Path(directory))
        streams.append(life.lines[:before])
        command = [sys.executable, "-m", "cli", "stream", "--available-now", "--checkpoint", str(streams.checkpoint)]
        command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
        subprocess.run(command, check=True)
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(directory, arcname=".")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
