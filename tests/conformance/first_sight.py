"""What the replica makes of recordings that no rule has seen: `python -m tests.conformance.first_sight FILE ...`.

Here belong the figures that are printed of each; they are counted in `agreement` and `gauge_samples`.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance.agreement import account_of, as_far_as_told, moves_agreement, parted_by_epoch, requests_agreement
from tests.conformance.gauge_samples import compare_gauges
from tests.conformance.recording import Recording, replay, unpack_file


def figures(recording: Recording) -> Iterator[str]:
    """Lines on a recording: what agrees in all, then the terms in which the accounts part."""
    replayed = replay(recording.records(), recording.profile(), recording.settings())
    real = recording.account()
    ours = as_far_as_told(account_of(replayed.rows), real)
    equal, compared, _ = compare_gauges(recording, replayed)
    yield f"{recording.name}  transitions {moves_agreement(real, ours)}"
    yield f"{recording.name}  requests {requests_agreement(real, ours)}"
    yield f"{recording.name}  gauges {equal} equal of {compared}"
    for epoch, parted in sorted(parted_by_epoch(real, ours).items()):
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in parted._asdict().items())
        yield f"{recording.name}  term {epoch}: only {counts}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of each archive; 1 after an error's sentence."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.first_sight", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an archive that `make record` made")
    for file in parser.parse_args(arguments).files:
        with tempfile.TemporaryDirectory(prefix="first-sight-") as directory:
            try:
                recording = unpack_file(file, Path(directory))
            except (OSError, tarfile.TarError) as error:
                sys.stderr.write(f"error: {file} cannot be read: {error}\n")
                return 1
            for line in figures(recording):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
