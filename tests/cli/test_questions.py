"""Questions about a recorded cluster, with the whole answer of each in `answers/`.

`REWRITE=1 pytest tests/cli/test_questions.py` writes the current answers. Commit only changes that you can explain.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from cli.printing.probe import probe_line
from cli.printing.standard_output import plain_lines
from cli.sources.records import FilesSource
from controller.contract.alert_row import Severity
from controller.contract.ids import TopicPartition
from questions.check.check import Finding, Health, check
from questions.check.state import State
from questions.everywhere.lint import Lint
from questions.explain.broker import explain_broker
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.picture import Beginning, Picture
from questions.question import Scope
from tests.kept_texts import assert_as_before
from tests.questions.cluster import broker, brokers, controller, look, state, topic
from tests.recorded_moment import MOMENT_MS

ANSWERS = Path(__file__).with_name("answers")
ASKED = {
    "check": "check",
    "check-long": "check --long",
    "check-json": "check --json",
    "check-probe": "check --probe",
    "explain-offline": "explain t3-0",
    "explain-election-due": "explain t1-4",
    "explain-election-due-json": "explain t1-4 --json",
    "explain-well": "explain t1-3",
    "explain-topic": "explain t1",
    "explain-broker-away": "explain broker 1",
    "explain-broker": "explain broker 3",
    "explain-controller": "explain controller",
    "explain-key": "explain t1 --key customer-4711",
    "explain-key-refused": "explain t1 --key h --json",
    "timeline": "timeline",
    "timeline-controller": "timeline --controller",
    "timeline-broker": "timeline --broker 2 --since 0x198",
    "timeline-partition": "timeline --partition t3-2 --partition t1-0",
    "timeline-topic-json": "timeline --topic t4 --since 2026-11-22T18:43:40Z --json",
    "lint": "lint",
    "lint-json": "lint --json",
    "whatif": "whatif --lose-broker 3 --then --restore 1 --restore 3",
    "whatif-json": "whatif --lose-broker 3 --controlled --json",
    "whatif-each": "whatif --each",
    "whatif-each-json": "whatif --each --json",
    "whatif-rolling": "whatif --rolling",
    "whatif-rolling-json": "whatif --rolling --json",
    "restartable": "restartable --broker 3",
    "restartable-json": "restartable --broker 3 --accept-topic t3 --json",
    "restartable-probe": "restartable --broker 2 --probe",
    "place": "place t1 --brokers 2,3,4",
    "place-drain": "place t3 --from-cluster --drain 3",
    "migration-check": "migration check",
    "migration-check-json": "migration check --json",
}


@pytest.fixture(scope="module")
def where(recorded_files: Path) -> list[str]:
    return ["--zk-data", str(recorded_files), "--until", str(MOMENT_MS), "--cluster", "shop"]


def ask(question: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*question.split(), *arguments])


@pytest.mark.parametrize("name", ASKED)
def test_a_question_is_answered_as_before(name, where):
    files = where[:2] if name.startswith("migration") else where  # which has no --until
    done = ask(ASKED[name], *files)
    assert_as_before(f"$ kontrast {ASKED[name]}\n{done.stdout}exit code {done.exit_code}\n", ANSWERS / f"{name}.txt")


def test_the_page_of_a_timeline_is_as_before(where, tmp_path):
    done = ask(ASKED["timeline-partition"], *where, "--html", str(tmp_path / "page.html"))
    assert done.exit_code == 0
    assert_as_before((tmp_path / "page.html").read_text(encoding="utf-8"), ANSWERS / "timeline-partition.html")


def test_there_is_no_answer_without_a_question():
    assert {file.stem for file in ANSWERS.iterdir()} == set(ASKED)


def test_a_topic_may_be_named_like_a_partition(where):
    assert ask("explain t1-3 --topic", *where).exit_code == 2
    assert ask("explain controller --topic", *where).exit_code == 2
    assert ask("explain t1 --topic", *where).stdout.startswith("topic t1: ")


def test_to_a_monitoring_system_what_cannot_be_reached_is_unknown():
    done = ask("check --probe", "--zookeeper", "127.0.0.1:1", "--connect-timeout-seconds", "0.2")
    assert done.exit_code == 3
    refused = "ZooKeeper at 127.0.0.1:1 cannot be reached: 127.0.0.1:1 refuses connections. "
    assert done.stdout.startswith(f"KAFKA UNKNOWN - {refused}")


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the address of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_probe_waits_for_five_seconds_and_shows_after_two_that_it_waits(silent: str) -> None:
    done = ask("check --probe", "--zookeeper", silent)
    assert done.exit_code == 3
    assert done.stdout.startswith(f"KAFKA UNKNOWN - ZooKeeper at {silent} could not be reached within 5 s")
    assert done.stderr.count(f"ZooKeeper at {silent} is not reachable, trying again for") == 1


def test_a_configured_timeout_is_also_the_probes(silent: str, tmp_path: Path) -> None:
    file = tmp_path / "kontrast.toml"
    file.write_text(f'[watch]\nzookeeper = "{silent}"\nconnect_timeout_seconds = 0.2\n')
    done = ask("check --probe", "--config", str(file))
    assert "could not be reached within 0.2 s" in done.stdout


def test_watching_shows_what_differs_from_the_last_look_until_it_is_stopped(where, monkeypatch):
    looks: list[Picture] = []
    look = FilesSource.picture

    def three_times(self: FilesSource, scope: Scope, stop: threading.Event) -> Picture:
        looks.append(look(self, scope, stop))
        if len(looks) == 3:
            stop.set()
        return looks[-1] if len(looks) < 3 else msgspec.structs.replace(looks[-1], alerts=())

    monkeypatch.setattr(FilesSource, "picture", three_times)
    watched = [line.split(None, 1)[1] for line in ask("check --watch --every 0.5", *where).stdout.splitlines()]
    assert len(looks) == 3
    first, *rest = watched  # the state stays, because partitions are still offline
    assert first == "shop  clients affected"
    opened, resolved = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    assert [line.replace("open    ", "resolved") for line in opened] == resolved
    assert len(opened) == len(looks[0].alerts)


def health(*findings: Finding, doubts: tuple[str, ...] = ()) -> Health:
    well = check(look({**brokers(1, 2), **controller(1), **topic("t", [1, 2])}))
    severities = {each.severity for each in findings}
    state = State.AFFECTED if Severity.PAGE in severities else State.DEGRADED if Severity.WARN in severities else None
    state = state or (State.UNKNOWN if doubts else State.WELL)
    judged = msgspec.structs.replace(well.state, state=state)
    return msgspec.structs.replace(well, findings=findings, doubts=doubts, state=judged)


def finding(severity: Severity, cause: str = "it broke") -> Finding:
    return Finding(severity, "Broken", "broker 1", Beginning(None, exact=False), cause, None, "mend it", (), 0, ())


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            health(),
            "KAFKA OK - shop: controller broker 1, epoch 7; 2 brokers; 1 topic, 1 partition: all led and in sync",
        ),
        (health(finding(Severity.INFO)), "KAFKA OK - shop: controller broker 1"),
        (health(finding(Severity.WARN)), "KAFKA WARNING - shop: Broken: it broke"),
        (health(finding(Severity.PAGE), finding(Severity.WARN)), "KAFKA CRITICAL - shop: Broken: it broke"),
        (health(doubts=("it is old",)), "KAFKA UNKNOWN - shop: it is old"),
        (health(finding(Severity.WARN), doubts=("it is old",)), "KAFKA WARNING - shop: Broken: it broke"),
        (health(finding(Severity.PAGE, "a | b\n\x1b[31m")), r"KAFKA CRITICAL - shop: Broken: a / b\n\x1b[31m"),
    ],
)
def test_a_probe_says_the_worst_in_one_line_with_performance_data(asked, line):
    said = probe_line(asked)
    assert said.startswith(line)
    assert said.count("|") == 1
    assert "\n" not in said
    assert said.partition(" | ")[2].startswith("brokers=2;;;0 brokers_away=0;;;0 leaderless=0;;;0 ")


def test_what_may_be_hidden_is_a_finding_of_its_own():
    hidden = health(doubts=("2 znodes may not be read",))
    assert not hidden.is_well
    assert health(finding(Severity.INFO)).is_well


def test_what_people_wrote_into_znodes_does_nothing_to_a_terminal():
    hostile = "\x1b[31m[bold]\n"
    rack, name = {**broker(1, hostile), **broker(2, "b")}, f"t{hostile}"
    picture = look({**rack, **controller(1), **topic(name, [1, 2], [1]), **state(name, 1, -1, [1])})
    partition = explain_partition(picture, TopicPartition(name, 1))
    answers = (explain_broker(picture, 1), explain_topic(picture, name), partition, Lint().ask(picture))
    texts = [check(picture).said(is_long=True), *(answer.said() for answer in answers)]
    said = "\n".join(line for text in texts for line in plain_lines(text))
    assert "\x1b" not in said
    assert r"\x1b[31m[bold]\n" in said
