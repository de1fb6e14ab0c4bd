"""Make the state of a job with the code of the present directory, for a later Kontrast to go on from.

tests/streaming/earlier/README.md has the command.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.streaming.cluster_records import Streams, life_of

TOPICS = 10


def main(archive: Path) -> None:
    """Work off the first half of a cluster's life, and pack journals and checkpoint."""
    lines = life_of("east", topics=TOPICS).lines
    with TemporaryDirectory() as directory:
        streams = Streams(Path(directory))
        streams.append(lines[: len(lines) // 2])
        command = [sys.executable, "-m", "cli", "stream", "--available-now", "--checkpoint", str(streams.checkpoint)]
        command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
        subprocess.run(command, check=True)
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(directory, arcname=".")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
