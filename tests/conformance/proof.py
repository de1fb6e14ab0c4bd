"""Count how the replica's published final moves are proved: `python -m tests.conformance.proof [NAME ...]`.

A move is a final transition of a partition or a replica. The command replays the named recordings, by default all. It
writes the counts into `proof.json`, and their table into docs/explanation/what-a-replica-cannot-know.md.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from tests.conformance.agreement import account_of, as_far_as_told, final_transitions
from tests.conformance.controller_log import Account
from tests.conformance.recording import ARCHIVES, ENDING, Recording, replay, unpack

COUNTS = Path(__file__).parent / "proof.json"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-a-replica-cannot-know.md"
NAMES = tuple(sorted(archive.name.removesuffix(ENDING) for archive in ARCHIVES.glob(f"*{ENDING}")))

_BEGIN, _END = "<!-- proof: begin -->\n", "<!-- proof: end -->\n"
_HEAD = "| release | recordings | moves | proved | by a write | not known |\n| --- | --- | --- | --- | --- | --- |\n"
_TOPIC = re.compile(r"/(?:brokers/topics|admin/delete_topics)/[^/]+")


class Proof(NamedTuple):
    """Counts of final moves.

    Every published move is proved by a write, proved by the log only, or unprovable. `inferred` counts published moves
    with `inferred_by`. `unpublished` counts moves of the log that the replica did not publish as final.
    """

    published: int = 0
    inferred: int = 0
    by_write: int = 0
    by_log: int = 0
    unprovable: int = 0
    unpublished: int = 0


def proof_of(records: Iterable[Record], rows: list[Row], real: Account) -> Proof:
    """Return the counts of a replay.

    The log proves a move that it has, too. A write also proves such a move if the same controller wrote to ZooKeeper at
    the place of the final row or later, because a controller has one thread.
    """
    last_write, ours = _last_writes(records), as_far_as_told(account_of(rows), real).moves
    published = final_transitions(rows)
    counts: Counter[str] = Counter()
    for subject in {*real.moves, *published}:
        moves, transitions = ours.get(subject, []), published.get(subject, [])
        proved = list(_in_both(real.moves.get(subject, []), moves))
        for index in proved:
            row = transitions[index]
            counts["by_write" if row.zxid <= last_write.get(row.controller_epoch, -1) else "by_log"] += 1
        counts["published"] += len(moves)
        counts["inferred"] += sum(row.inferred_by != "" for row in transitions)
        counts["unprovable"] += len(moves) - len(proved)
        counts["unpublished"] += len(real.moves.get(subject, [])) - len(proved)
    return Proof(**counts)


def _in_both(real: Sequence[object], ours: Sequence[object]) -> Iterator[int]:
    """Yield the places of our moves that the log has in the same order."""
    if real == ours:
        yield from range(len(ours))
        return
    for block in SequenceMatcher(None, real, ours, autojunk=False).get_matching_blocks():
        yield from range(block.b, block.b + block.size)


def _last_writes(records: Iterable[Record]) -> dict[int, int]:
    """Return the zxid of the last write of each controller, by its epoch.

    A state with a new leader or leader epoch is the controller's of its epoch. The removal of a topic or of its
    deletion's entry is the newest controller's.
    """
    led: dict[str, object] = {}
    last: dict[int, int] = {}
    newest = -1
    for record in records:
        if _TOPIC.fullmatch(record.path) and record.kind is RecordKind.DELETED:
            last[newest] = record.zxid
        elif record.path.endswith("/state") and record.kind is RecordKind.DELETED:
            led.pop(record.path, None)
        elif record.path.endswith("/state") and record.kind is RecordKind.NODE:
            state = json.loads(record.raw or b"")
            leadership, epoch = (state["leader"], state["leader_epoch"]), state["controller_epoch"]
            if led.get(record.path) != leadership:
                last[epoch], newest = max(record.zxid, last.get(epoch, -1)), max(newest, epoch)
            led[record.path] = leadership
    return last


def counted() -> dict[str, tuple[str, Proof]]:
    """Return the release and the kept counts of each recording."""
    kept = json.loads(COUNTS.read_text())
    return {name: (entry["release"], Proof(**entry["moves"])) for name, entry in kept.items()}


def table(of: Mapping[str, tuple[str, Proof]]) -> str:
    """Return the table, a row per release and one for all."""
    releases = sorted({release for release, _ in of.values()}, key=_order)
    lines = [_line(release, [proof for other, proof in of.values() if other == release]) for release in releases]
    return _HEAD + "\n".join([*lines, _line("all", [proof for _, proof in of.values()])]) + "\n"


def page_with(text: str, of: Mapping[str, tuple[str, Proof]]) -> str:
    """Return the page's text with this table."""
    head, _, rest = text.partition(_BEGIN)
    return f"{head}{_BEGIN}{table(of)}{_END}{rest.partition(_END)[2]}"


def _line(release: str, proofs: Sequence[Proof]) -> str:
    total = Proof(*map(sum, zip(*proofs, strict=True)))
    proved, unknown = total.by_write + total.by_log, total.unprovable + total.unpublished
    cells = [
        f"{total.published:,}",
        *(_percent(count, total.published) for count in (proved, total.by_write)),
        _percent(unknown, total.published + total.unpublished),
    ]
    return f"| {release} | {len(proofs)} | {' | '.join(cells)} |"


def _percent(part: int, whole: int) -> str:
    """Return the share, rounded down so that 100 % means all."""
    return f"{10_000 * part // max(whole, 1) / 100:.2f} %"


def _order(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]


def _look(recording: Recording) -> tuple[str, Proof]:
    records = list(recording.records())
    replayed = replay(records, recording.profile(), recording.settings())
    return recording.release(), proof_of(records, replayed.rows, recording.account())


def main() -> int:
    """Count the named recordings, and write the counts of all and the table."""
    found = {name: kept for name, kept in counted().items() if name in NAMES}
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory(prefix="proof-") as directory:
            found[name] = _look(unpack(name, Path(directory)))
        print(name, *found[name], flush=True)
    found = dict(sorted(found.items()))
    kept = {name: {"release": release, "moves": proof._asdict()} for name, (release, proof) in found.items()}
    COUNTS.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
