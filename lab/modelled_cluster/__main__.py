"""Play any number of random histories: `python -m lab.modelled_cluster --histories 200000 --seed 1`."""

from __future__ import annotations

import argparse
import sys

from lab.modelled_cluster.histories import Failure, drawn, shrunk
from lab.modelled_cluster.many import play_all

_SHOWN = 5  # failures of each property that are shrunk and shown


def show(seed: int, name: str, text: str) -> None:
    """Shrink the history of a seed, and print it."""
    history, failure = shrunk(drawn(seed), Failure(name, text, 0))
    told = "told" if history.is_told else "inferred"
    print(
        f"\nseed {seed}: release {history.release} ({told}), reads log: {history.reads_log}, salt {history.salt}, "
        f"names zxids: {history.names_zxids}, deletes topics: {history.deletes_topics}, last gap: {history.last_gap}"
    )
    print(failure.text)
    for operation, arguments in history.operations:
        print(f"    {operation}{arguments}")


def main() -> int:
    """Play histories. Return 1 if a property broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first history; each has the next one")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    total, judged, failures = play_all(options.seed, options.histories, options.processes, shows=True)
    print(f"{total} histories from seed {options.seed}: {judged} judged at rest, {len(failures)} broke a property")
    by_name: dict[str, list[tuple[int, str, str]]] = {}
    for failure in failures:
        by_name.setdefault(failure[1], []).append(failure)
    for name, found in by_name.items():
        print(f"\n{name}: {len(found)} histories")
        for failure in found[:_SHOWN]:
            show(*failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
