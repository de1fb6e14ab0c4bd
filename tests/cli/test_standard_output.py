"""The door to standard output. Foreign text is harmless for a terminal, and a verdict outlives its reader."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from cli.printing import standard_output
from controller.contract.effect_rows import RefusedRow
from controller.contract.outputs import encode_row
from tests.clients import zookeeper_client
from tests.questions.cluster import broker, brokers, controller, settings, state, topic
from tests.recorded_moment import MOMENT_MS
from transport.journal import JournalWriter

CLI = Path(__file__).parents[2] / "cli"
KONTRAST = [sys.executable, "-m", "cli"]
PATH_SAFE = "t\u202e\u2028x"  # ZooKeeper takes these in a path
HOSTILE = f"\x1b[2J\x07\x00\x7f\x9b{PATH_SAFE}"
OF_ZOOKEEPER = (
    "snapshot",
    "check",
    "check --long",
    "check --probe",
    f"explain {PATH_SAFE}",
    f"explain {PATH_SAFE}-0",
    "explain broker 1",
    "explain controller",
    "lint",
    "whatif --lose-broker 1",
    "whatif --each",
    "whatif --rolling",
    f"place {PATH_SAFE} --brokers 1,2",
    "migration check",
)
OF_OUTPUTS = ("check", "check --long", "timeline", "status")


def asked(command: str, *where: object, as_json: bool = False) -> str:
    """Return everything that the command prints, to either side."""
    arguments = [*command.split(" "), *map(str, where), *(["--json"] if as_json else [])]
    done = CliRunner().invoke(main, arguments)
    assert "failed unexpectedly" not in done.stderr, done.stderr
    assert done.stdout or done.stderr
    return done.stdout + done.stderr


def is_harmless(printed: str) -> bool:
    return all(character.isprintable() for line in printed.split("\n") for character in line)


def make_hostile(connect_string: str) -> None:
    znodes = {
        **broker(1, HOSTILE),
        **brokers(2),
        **controller(2),
        **topic(PATH_SAFE, [1, 2], [9]),
        **state(PATH_SAFE, 1, -1, [9]),
        **settings(PATH_SAFE, min_insync_replicas=HOSTILE),
        f"/admin/delete_topics/{PATH_SAFE}gone": {},
    }
    with zookeeper_client(connect_string) as client:
        for path, content in znodes.items():
            client.create(path, json.dumps(content).encode(), makepath=True)


@pytest.fixture
def hostile_zookeeper(shared_chroot: str) -> str:
    make_hostile(shared_chroot)
    return shared_chroot


def test_names_in_znodes_are_escaped_by_every_command(hostile_zookeeper):
    answers = {command: asked(command, "--zookeeper", hostile_zookeeper) for command in OF_ZOOKEEPER}
    assert [command for command, printed in answers.items() if not is_harmless(printed)] == []
    assert [command for command in ("snapshot", "check", "lint") if r"t\u202e\u2028x" not in answers[command]] == []
    assert r"\x1b[2J\x07\x00\x7f\x9bt\u202e" in answers["snapshot"]


def test_json_has_the_same_values_with_escapes(hostile_zookeeper):
    objects = {}
    for command in ("snapshot", "check", "lint", f"explain {PATH_SAFE}", "whatif --each", "migration check"):
        printed = asked(command, "--zookeeper", hostile_zookeeper, as_json=True)
        assert is_harmless(printed), command
        lines = [line for line in printed.splitlines() if line.startswith("{")]
        objects[command] = [json.loads(line) for line in lines]
    assert HOSTILE in [one.get("rack") for one in objects["snapshot"]]


def test_the_past_of_files_is_escaped_too(zookeeper):
    make_hostile(zookeeper.connect_string)
    everything = "transitions,requests,metadata,alerts,refused,gauges"
    for command in ("timeline", f"replay --emit {everything}"):
        for as_json in (False, True):
            printed = asked(command, "--zk-data", zookeeper.data_directory, as_json=as_json)
            assert is_harmless(printed), (command, as_json)
            assert "u202e" in printed, (command, as_json)


def test_rows_of_outputs_are_escaped_by_every_command(rows, tmp_path):
    derived = tmp_path / "derived"
    now_ms = int(time.time() * 1000)
    refused = RefusedRow(
        cluster=HOSTILE, generation=1, seq=9, ordinal=0, zxid=9, time_ms=now_ms, path=HOSTILE, reason=HOSTILE
    )
    told = {"cluster": HOSTILE, "cause": HOSTILE, "subject": HOSTILE, "action": HOSTILE, "evidence": (HOSTILE,)}
    for row in (
        rows.alert("a", **told, examples=(HOSTILE,)),
        rows.offline(HOSTILE, cluster=HOSTILE, reason=HOSTILE),
        rows.gauges(time_ms=now_ms, cluster=HOSTILE),
        rows.controller(1, cluster=HOSTILE),
        refused,
    ):
        with JournalWriter(derived / row.output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])
    for command in OF_OUTPUTS:
        for as_json in (False, True):
            printed = asked(command, "--from", f"journal:{derived}", as_json=as_json)
            assert is_harmless(printed), (command, as_json)


def test_a_reason_of_maintenance_is_escaped(tmp_path):
    file = tmp_path / "windows.toml"
    reason = json.dumps(HOSTILE)  # as TOML writes it, too
    file.write_text(f'[[window]]\ncluster = "north"\nuntil = 2999-01-01T00:00:00Z\nreason = {reason}\n')
    for as_json in (False, True):
        printed = asked("maintenance list", "--maintenance-file", file, as_json=as_json)
        assert is_harmless(printed)
        assert "u202e" in printed


def test_an_argument_that_is_not_utf_8_is_one_sentence():
    done = subprocess.run([*KONTRAST, "maintenance", "start", b"--reason", b"\xff"], capture_output=True, text=True)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "is not UTF-8" in sentence


def test_only_the_door_writes_to_standard_output():
    allowed = {Path(standard_output.__file__), CLI / "printing" / "standard_error.py", CLI / "demo" / "narrator.py"}
    allowed.add(CLI / "mcp_server" / "worker.py")  # whose standard output is a pipe to its server
    writers = {
        f"{file.relative_to(CLI)}:{node.lineno}"
        for file in CLI.rglob("*.py")
        if file not in allowed
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if _writes(node)
    }
    assert writers == set()


def _writes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        return (owner, node.attr) in {("click", "echo"), ("click", "secho"), ("sys", "stdout")}
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


@pytest.fixture(scope="module")
def files(recorded_files: Path) -> list[str]:
    return ["--zk-data", str(recorded_files), "--until", str(MOMENT_MS), "--cluster", "shop"]


def exit_code(arguments: list[str], standard_out: int) -> int:
    done = subprocess.run([*KONTRAST, *arguments], stdout=standard_out, stderr=subprocess.PIPE)
    assert b"Traceback" not in done.stderr
    return done.returncode


def exit_code_without_a_reader(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return exit_code(arguments, writing)
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "check --json",
        "check --probe",
        "explain t3-0",
        "lint",
        "whatif --each",
        "whatif --lose-broker 3",
        "place t1 --brokers 2,3,4",
        "migration check",
    ],
)
def test_a_verdict_outlives_the_reader(command, files):
    where = files[:2] if command.startswith("migration") else files
    expected = exit_code([*command.split(), *where], subprocess.DEVNULL)
    assert exit_code_without_a_reader([*command.split(), *where]) == expected
    if command == "check":
        assert expected == 1  # an alert pages


@pytest.mark.parametrize("command", ["check", "status"])
def test_a_verdict_about_outputs_outlives_the_reader(command, rows, tmp_path):
    for row in (rows.alert("a"), rows.gauges(time_ms=int(time.time() * 1000)), rows.controller(1), rows.broker(1)):
        with JournalWriter(tmp_path / row.output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, [encode_row(row)])
    arguments = [*command.split(), "--from", f"journal:{tmp_path}"]
    expected = exit_code(arguments, subprocess.DEVNULL)
    assert expected == 1
    assert exit_code_without_a_reader(arguments) == expected


def test_a_watch_whose_reader_left_ends_with_141(files):
    assert exit_code_without_a_reader(["check", "--watch", "--every", "0.5", *files]) == 141
