"""`kontrast diff` on a recorded cluster, with the whole answer of each comparison in `differences/`.

`REWRITE=1 pytest tests/cli/test_diff.py` writes the current answers. Commit only changes that you can explain.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.outputs import encode_row
from controller.contract.records import Record, encode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import steps
from streaming.sinks.standing_rows import StandingRows
from tests.kept_texts import assert_as_before
from tests.recorded_moment import MOMENT_MS, history
from transport.journal import JournalWriter

ANSWERS = Path(__file__).with_name("differences")
BEFORE = "2026-11-22T18:43:40Z"
COMPARED = {
    "moments": f"--at {BEFORE} --at {MOMENT_MS}",
    "moments-all": f"--at {BEFORE} --at {MOMENT_MS} --all",
    "moments-topic-json": f"--at {BEFORE} --at {MOMENT_MS} --topic t3 --json",
    "moments-same": f"--at {MOMENT_MS} --at {MOMENT_MS}",
    "predicted": f"--predicted --until {MOMENT_MS}",
    "predicted-topic": f"--predicted --until {MOMENT_MS} --topic t3",
}


def diff(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)])


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_assert_as_before(name, recorded_files):
    done = diff(*COMPARED[name].split(), "--zk-data", recorded_files, "--cluster", "shop")
    answer = f"$ kontrast diff {COMPARED[name]}\n{done.stdout}exit code {done.exit_code}\n"
    assert_as_before(answer, ANSWERS / f"{name}.txt")


@pytest.fixture(scope="module")
def written(recorded_files, tmp_path_factory) -> dict[str, str]:
    """Write the output of `kontrast watch` and `kontrast stream` for the recorded cluster, beside another cluster."""
    directory = tmp_path_factory.mktemp("written")
    records = [record for name in ("shop", "other") for record in history(recorded_files, name).records()]
    with JournalWriter(directory / "changes") as journal:
        journal.append([encode_record(record) for record in records])
    write_metadata(directory / "derived", metadata_of(records, "shop") + metadata_of(records, "other"))
    return {"changes": f"journal:{directory / 'changes'}", "outputs": f"journal:{directory / 'derived'}"}


def metadata_of(records: list[Record], cluster: str) -> list[Row]:
    rows = steps(
        new_context(cluster, chunk_count=8), [record for record in records if record.cluster == cluster]
    ).effects
    return [row for row in rows if row.output == "metadata"]


def write_metadata(directory: Path, rows: list[Row]) -> None:
    with JournalWriter(directory / "metadata") as journal:
        journal.append([encode_row(row) for row in rows])


def without_names(answer: str) -> str:
    """Return the answer without the names of the sides, which differ in their last change."""
    return re.sub(r"0x[0-9a-f]+ \([^)]*\)", "side", answer)


@pytest.mark.parametrize("name", ["changes", "outputs"])
def test_two_moments_of_what_kontrast_wrote_are_compared(name, written):
    answer = ""
    for question in (f"--at {BEFORE} --at {MOMENT_MS}", "--at 0x198 --at 0x1f0 --topic t3 --json"):
        done = diff(*question.split(), "--from", written[name], "--cluster", "shop")
        answer += f"$ kontrast diff --from ADDRESS {question}\n{done.stdout}exit code {done.exit_code}\n"
    assert_as_before(answer, ANSWERS / f"moments-{name}.txt")


@pytest.mark.parametrize("moments", [(BEFORE, MOMENT_MS), ("0x198", "0x1f0"), ("0x2a0", "0x2a0")])
def test_moments_differ_alike_wherever_the_history_is(moments, recorded_files, written):
    asked = ["--at", moments[0], "--at", moments[1], "--all", "--cluster", "shop"]
    expected = diff(*asked, "--zk-data", recorded_files)
    for address in written.values():
        found = diff(*asked, "--from", address)
        assert without_names(found.stdout) == without_names(expected.stdout)
        assert found.exit_code == expected.exit_code


@pytest.mark.parametrize("name", ["changes", "outputs"])
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--at", "2001-01-01", "--cluster", "shop"], "before that moment"),
        (["--at", "0x1f0"], "which cluster? Give --cluster with one of other, shop"),
        (["--at", "0x1f0", "--cluster", "none"], "has no rows of cluster none: it has other, shop"),
    ],
)
def test_a_moment_that_is_not_there_is_refused(name, asked, says, written):
    done = diff(*asked, "--at", MOMENT_MS, "--from", written[name])
    says = says.replace("before that", "after that") if name == "outputs" else says
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr


def test_what_is_void_does_not_count_and_what_was_compacted_is_refused(recorded_files, tmp_path):
    rows = metadata_of(list(history(recorded_files, "shop").records()), "shop")
    asked = ["--at", "0x198", "--at", MOMENT_MS, "--from"]
    write_metadata(tmp_path / "whole", rows)
    write_metadata(tmp_path / "rebuilt", [*rows[:500], *rows])  # the first row of a new state marks its beginning
    whole, rebuilt = (diff(*asked, f"journal:{tmp_path / name}") for name in ("whole", "rebuilt"))
    assert (rebuilt.exit_code, rebuilt.stdout) == (whole.exit_code, whole.stdout) != (2, "")
    bound = {"segment_bytes": 20_000, "retain_bytes": 40_000}
    with JournalWriter(tmp_path / "compacted" / "metadata", batches=True, **bound, standing=StandingRows) as journal:
        for number, row in enumerate(rows):
            journal.append_batch(number, [encode_row(row)])
    compacted = f"journal:{tmp_path / 'compacted'}"
    refused = diff(*asked, compacted)
    assert (refused.exit_code, "begins after that moment, at 0x" in refused.stderr) == (2, True), refused.stderr
    late = ["--at", MOMENT_MS - 1000, "--at", MOMENT_MS, "--from"]
    assert diff(*late, compacted).stdout == diff(*late, f"journal:{tmp_path / 'whole'}").stdout


def test_there_is_no_answer_without_a_question():
    of_streams = {"moments-changes", "moments-outputs"}
    assert {file.stem for file in ANSWERS.iterdir()} == set(COMPARED) | of_streams


def snapshot(file: Path, *lines: dict) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


CONTROLLER = {"type": "controller", "broker": 1, "epoch": 4}
PARTITION = {
    "type": "partition", "topic": "orders", "partition": 0, "replicas": [1, 2], "leader": 1, "leader_epoch": 3,
    "isr": [1, 2], "state": "OnlinePartition", "adding_replicas": [], "removing_replicas": [], "deleting": False,
    "concerns": [], "reason": None,
}  # fmt: skip


def test_two_snapshots_are_compared(tmp_path):
    before = snapshot(tmp_path / "before", CONTROLLER, PARTITION, {"type": "broker", "broker": 2, "epoch": 9})
    away = {"type": "broker", "broker": 2, "epoch": -1, "registered": False}
    after = snapshot(tmp_path / "after", CONTROLLER, {**PARTITION, "isr": [1]}, away)
    done = diff(before, after)
    assert done.stdout.splitlines() == [
        "before → after: differences in 1 of 1 broker, 1 of 1 partition",
        "  broker 2: registered yes → no",
        "  orders-0: ISR [1,2] → [1]",
    ]
    assert done.exit_code == 1
    same = diff(before, before)
    assert (same.exit_code, same.stdout) == (
        0,
        "before → before: the same (1 controller, 1 broker, 1 partition)\n",
    )


def test_what_a_snapshot_lacks_is_named(tmp_path):
    hidden = {"type": "unreadable", "path": "/brokers/topics/x", "reason": "its ACL does not let this session in"}
    whole, part = snapshot(tmp_path / "a", CONTROLLER), snapshot(tmp_path / "b", hidden, CONTROLLER)
    done = diff(whole, part)
    assert (done.exit_code, f"in {part} 1 znode could not be read" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    "content", ["no json", '{"type":"partition"}', "{}", "", '{"type":"broker","broker":1,"epoch":1}']
)
def test_a_file_that_is_no_snapshot_is_refused(content, tmp_path):
    (tmp_path / "other").write_text(content)
    good = snapshot(tmp_path / "good", CONTROLLER)
    done = diff(good, tmp_path / "other")
    assert (done.exit_code, "`kontrast snapshot --json`" in done.stderr) == (2, True), done.stderr


def test_one_snapshot_is_no_comparison(tmp_path):
    done = diff(snapshot(tmp_path / "good", CONTROLLER))
    assert (done.exit_code, "1 file given. A comparison needs two" in done.stderr) == (2, True), done.stderr
