"""`kontrast diff` on a recorded cluster: the whole answer of each comparison is in `differences/`.

`REWRITE=1 pytest tests/cli/test_diff.py` writes the answers of now; commit only what you can explain.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.recorded_moment import MOMENT_MS, zk_data

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


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("KONTRAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zk_data(tmp_path_factory.mktemp("recording"))


def diff(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)])


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_is_as_before(name, files):
    done = diff(*COMPARED[name].split(), "--zk-data", files, "--cluster", "shop")
    answer = f"$ kontrast diff {COMPARED[name]}\n{done.stdout}exit code {done.exit_code}\n"
    file = ANSWERS / f"{name}.txt"
    if os.environ.get("REWRITE"):
        file.write_text(answer, encoding="utf-8")
    else:
        assert answer == file.read_text(encoding="utf-8")


def test_there_is_no_answer_without_a_question():
    assert {file.stem for file in ANSWERS.iterdir()} == set(COMPARED)


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
        "before → after: what differs is 1 of 1 broker, 1 of 1 partition",
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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "compare what? Give two files"),
        (["--predicted", "--at", "0x1"], "compare what?"),
        (["{good}"], "1 file given: a comparison has two"),
        (["{good}", "{missing}"], "does not exist"),
        (["--at", "0x1"], "are --at twice"),
        (["--at", "0x1", "--at", "0x2"], "are --at twice, with --zk-data"),
        (["--at", "0x1", "--at", "0x2", "--zk-data", "{dir}", "--until", "0x3"], "without --until"),
        (["--predicted"], "which cluster?"),
        (["--bootstrap", "nowhere"], "nowhere"),
        (["--bootstrap", "b:1", "--zk-data", "{dir}"], "--bootstrap compares what is now"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, says, tmp_path):
    places = {
        "good": snapshot(tmp_path / "good", CONTROLLER),
        "missing": tmp_path / "missing",
        "dir": tmp_path,
    }
    done = diff(*(argument.format(**places) for argument in arguments))
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
