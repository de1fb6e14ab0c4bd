"""Run every command of the tutorial, in order, against a real ZooKeeper and a real broker."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from cli.embedded.cluster import KafkaCluster
from cli.embedded.process import ChildProcess, free_port
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
# Command KEY prints these lines, apart from times.
SHOWN = dict(re.findall(r"```sh\n([^`]*?)\n```\n[^`]*(?:`[^`\n]+`[^`]*)*```text\n(.*?)```", PAGE, re.DOTALL))
# The nightly test runs the first. The second sets the path, as `_play` does.
PREPARATION = ("make install", "export PATH=")
STAY = ("kontrast watch", "kontrast stream", "kontrast serve")

pytestmark = pytest.mark.xdist_group("pipelines")


@pytest.fixture
def cluster(java: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path / "cluster", broker_ids=(1,)) as kafka:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3, replication_factor=1)])
        yield kafka


def test_every_command_works_on_a_real_cluster(cluster: KafkaCluster, tmp_path: Path) -> None:
    directory = tmp_path / "checkout"
    directory.mkdir()
    _play(cluster, directory, _environment(Path(sys.executable).parent))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_every_command_works_in_a_new_checkout(cluster: KafkaCluster, tmp_path: Path) -> None:
    directory = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, directory], check=True)
    environment = _environment(directory / ".venv" / "bin") | {"KONTRAST_CACHE": str(tmp_path / "cache")}
    assert COMMANDS[0] == "make install"
    installed = subprocess.run(COMMANDS[0].split(), cwd=directory, env=environment, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr[-4000:]
    assert (directory / ".venv" / "bin" / "kontrast").exists()
    _play(cluster, directory, environment)


def _environment(programs: Path) -> dict[str, str]:
    """Return the environment with these programs in place of those beside this Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
    others = [path for path in environment["PATH"].split(os.pathsep) if Path(path) != Path(sys.executable).parent]
    return environment | {"PATH": os.pathsep.join((str(programs), *others))}


def _play(cluster: KafkaCluster, directory: Path, environment: dict[str, str]) -> None:
    """Run the commands behind the preparation, and compare with the answers of the page."""
    port = str(free_port())
    answers: dict[str, tuple[int, str]] = {}
    with ExitStack() as running:
        for command in COMMANDS:
            if command.startswith(PREPARATION):
                continue
            real = command.replace("zk1:2181/kafka", cluster.zookeeper.connect_string).replace("9642", port)
            if command.startswith(STAY):
                name = command.split()[1]
                process = ChildProcess(name, shlex.split(real), directory / f"{name}.log", environment=environment)
                process.launch()
                running.callback(process.stop)
                continue

            def ask(real: str = real) -> tuple[int, str]:
                done = subprocess.run(
                    shlex.split(real),
                    cwd=directory,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                return done.returncode, done.stdout + done.stderr

            # The page asks the reader to wait for `ready`, and the job for its first row.
            answers[command] = eventually(ask, lambda answer: answer[0] in (0, 1) and "not ready" not in answer[1])
            if "readyz" in command:
                eventually(ask, lambda answer: answer == (0, "ready\n"))

    assert [command.split()[1] for command in SHOWN] == ["check", "explain"]
    for command, shown in SHOWN.items():
        assert set(_timeless(shown)) <= set(_timeless(answers[command][1]))
    assert "orders" in _said(answers, "whatif")
    assert '"health"' in _said(answers, "/api/v1")
    assert "orders" in _said(answers, "status")
    assert "no alert is open in orders" in _said(answers, "alerts")
    assert "orders" in _said(answers, "timeline")


def _timeless(text: str) -> list[str]:
    return [re.sub(r"\d{4}-\d\d-\d\d [\d:.]+Z", "TIME", line) for line in text.splitlines()]


def _said(answers: dict[str, tuple[int, str]], word: str) -> str:
    (answer,) = [answer for command, (_, answer) in answers.items() if word in command]
    return answer
