"""Run every command of the tutorial in order: its incident on the demo, then its questions to another cluster."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from cli.embedded.kafka import KafkaCluster
from cli.embedded.process import ChildProcess, free_port
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
# Command KEY prints these lines, apart from times.
SHOWN = dict(re.findall(r"```sh\n([^`]*?)\n```\n[^`]*(?:`[^`\n]+`[^`]*)*```text\n(.*?)```", PAGE, re.DOTALL))
# The nightly test runs the first. The second sets the path, as `_Reader` does.
PREPARATION = ("make install", "export PATH=")
OWN_CLUSTER = next(at for at, command in enumerate(COMMANDS) if "zk1:2181" in command)

pytestmark = pytest.mark.xdist_group("pipelines")


class _Reader:
    """A reader of the page, with one command that stays up in a terminal of its own."""

    def __init__(self, directory: Path, programs: Path, settings: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.port = str(free_port())
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
        others = [path for path in environment["PATH"].split(os.pathsep) if Path(path) != Path(sys.executable).parent]
        self.environment = environment | {"PATH": os.pathsep.join((str(programs), *others))} | (settings or {})

    def stays_up(self, command: str) -> ChildProcess:
        name = command.split()[1]
        process = ChildProcess(name, shlex.split(command), self.directory / f"{name}.log", environment=self.environment)
        process.launch()
        return process

    def runs(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=self.directory, env=self.environment, capture_output=True, text=True, shell=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def breaks_the_demo(self) -> dict[str, str]:
        """Return what each question about the incident answered."""
        demo, kill, *questions = (
            command.replace("9642", self.port)
            for command in COMMANDS[:OWN_CLUSTER]
            if not command.startswith(PREPARATION)
        )
        process = self.stays_up(demo)
        try:
            eventually(lambda: process.log.exists() and "stay up" in process.log.read_text(encoding="utf-8"))
            assert self.runs(kill) == (0, "")
            pages = questions[0]
            eventually(lambda: self.runs(pages), lambda answer: "audit-1" in answer[1])
            return {command: self.runs(command)[1] for command in questions}
        finally:
            process.stop(timeout_seconds=60)

    def watches(self, zookeeper: str) -> dict[str, tuple[int, str]]:
        """Return exit code and answer of each command about the reader's own cluster."""
        answers: dict[str, tuple[int, str]] = {}
        running = None
        try:
            for command in COMMANDS[OWN_CLUSTER:]:
                real = command.replace("zk1:2181/kafka", zookeeper).replace("9642", self.port)
                if command.startswith("kontrast up"):
                    settings = self.directory / "kontrast.toml"
                    text = settings.read_text(encoding="utf-8")
                    settings.write_text(text.replace("9642", self.port).replace("9643", str(free_port())))
                    running = self.stays_up(real)
                else:  # the job needs a while for its first row
                    answers[command] = eventually(lambda real=real: self.runs(real), lambda answer: answer[0] in (0, 1))
            return answers
        finally:
            if running is not None:
                running.stop(timeout_seconds=60)


@pytest.fixture
def cluster(java: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path / "cluster", broker_ids=(1,)) as kafka:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3, replication_factor=1)])
        yield kafka


@pytest.mark.nightly  # CI plays the demo by itself, and Spark's second start takes most of this test
def test_the_incident_of_the_demo_reads_as_the_page_promises(java: Path, tmp_path: Path) -> None:
    answers = _Reader(tmp_path, Path(sys.executable).parent).breaks_the_demo()
    assert "broker 2" in _said(answers, "check")
    assert "offline" in _said(answers, "explain audit-1")
    assert "usable" in _said(answers, "explain payments-1")
    assert "audit-1" in _said(answers, "timeline")


def test_every_command_works_on_a_real_cluster(cluster: KafkaCluster, tmp_path: Path) -> None:
    directory = tmp_path / "checkout"
    directory.mkdir()
    _compare(_Reader(directory, Path(sys.executable).parent).watches(cluster.zookeeper.connect_string))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_every_command_works_in_a_new_checkout(cluster: KafkaCluster, tmp_path: Path) -> None:
    directory = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, directory], check=True)
    reader = _Reader(directory, directory / ".venv" / "bin", {"KONTRAST_CACHE": str(tmp_path / "cache")})
    assert COMMANDS[0] == "make install"
    status, output = reader.runs(COMMANDS[0])
    assert status == 0, output[-4000:]
    assert (directory / ".venv" / "bin" / "kontrast").exists()
    reader.breaks_the_demo()
    _compare(reader.watches(cluster.zookeeper.connect_string))


def _compare(answers: dict[str, tuple[int, str]]) -> None:
    assert [command.split()[1] for command in SHOWN] == ["check", "explain"]
    for command, shown in SHOWN.items():
        assert set(_timeless(shown)) <= set(_timeless(answers[command][1]))
    texts = {command: text for command, (_, text) in answers.items()}
    assert "orders" in _said(texts, "whatif")
    assert '"health"' in _said(texts, "/api/v1")
    assert "orders" in _said(texts, "status")
    assert "orders" in _said(texts, "timeline")


def _timeless(text: str) -> list[str]:
    return [re.sub(r"\d{4}-\d\d-\d\d [\d:.]+Z", "TIME", line) for line in text.splitlines()]


def _said(answers: dict[str, str], word: str) -> str:
    (answer,) = [answer for command, answer in answers.items() if word in command]
    return answer
