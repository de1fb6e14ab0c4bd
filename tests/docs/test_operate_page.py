"""Run every command of the guide to operation, in order, on real servers. Only systemd and its user have a stand-in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess, free_port
from tests.waiting import DEADLINE_SECONDS, eventually

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
SECTIONS = [
    (title, [line.strip() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()])
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
]
NEEDS_MORE_THAN_A_MACHINE = ["Give a cluster its own job", "With Kafka outputs", "In Kubernetes", "On a Spark cluster"]
_STARTS = ("systemctl start kontrast@up", "systemctl restart kontrast@up", "systemctl enable --now kontrast@up")
_STOPS = ("systemctl stop kontrast@up", "systemctl disable --now kontrast@up", _STARTS[1])

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1200), pytest.mark.xdist_group("pipelines")]


class Machine:
    """The paths of the page below a directory, and `kontrast up` as systemd runs it."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self._places = {path: f"{directory}{path}" for path in ("/var/lib", "/var/backups", "/etc/kontrast", "/root/")}
        self._places |= {"zk2:2181/kafka": zookeeper, "runuser --user kontrast -- ": "", "--owner=kontrast ": ""}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
        self._environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._up: ChildProcess | None = None
        self.said = ""

    def run(self, command: str) -> None:
        """Run a command of the page. It must end well, `kontrast status` within a while."""
        if command in _STOPS:
            self.stop()
        if command in _STARTS:
            self._start()
        elif command not in _STOPS and not command.startswith("make "):  # test_tutorial.py installs a checkout
            seconds = DEADLINE_SECONDS if command.startswith("kontrast status") else 0
            eventually(lambda: self._ask(command), lambda code: code == 0, within_seconds=seconds)

    def until_status_names_payments(self, named: bool) -> None:
        command = "kontrast status --config /etc/kontrast.toml"
        eventually(lambda: self._ask(command) == 0 and ("payments" in self.said) is named)

    def stop(self) -> None:
        if self._up is not None:
            self._up.stop()
            assert self._up.exit_status == 0, self._up.log_tail()
            self._up = None

    def _start(self) -> None:
        assert self._up is None, "it was not stopped before"
        config, log = self.directory / "etc" / "kontrast.toml", self.directory / "log"
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "cli", "up", "--config", str(config)]
        self._up = ChildProcess("up", command, log, environment=self._environment)
        self._up.launch()
        self._up.wait_until(lambda: " are up\n" in log.read_text(), timeout_seconds=DEADLINE_SECONDS)

    def _ask(self, command: str) -> int:
        for there, here in self._places.items():
            command = command.replace(there, here)
        done = subprocess.run(command, shell=True, env=self._environment, capture_output=True, text=True)
        self.said = done.stdout + done.stderr
        return done.returncode


@pytest.fixture
def machine(start_kafka_cluster, tmp_path: Path) -> Iterator[Machine]:
    cluster = start_kafka_cluster(broker_ids=(1,))
    machine = Machine(tmp_path, start_kafka_cluster(broker_ids=(2,)).zookeeper.connect_string)
    for path in ("var/lib/kontrast", "var/backups", "etc", "root"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "etc" / "kontrast-password").write_text("old")
    (tmp_path / "root" / "new-password").write_text("new")
    state = tmp_path / "var" / "lib" / "kontrast"
    (tmp_path / "etc" / "kontrast.toml").write_text(
        f'[clusters.orders]\nzookeeper = "{cluster.zookeeper.connect_string}"\n'
        f'[watch]\nto = "journal:{state}/changes"\n'
        f'[stream]\nfrom = "journal:{state}/changes"\nto = "journal:{state}/outputs"\n'
        f'checkpoint = "{state}/checkpoint"\nmaster = "local[1]"\ndriver_memory = "512m"\n'
        f'[serve]\nfrom = "journal:{state}/outputs"\nlisten = "127.0.0.1:{free_port()}"\n'
        f'username = "kontrast"\npassword_file = "{tmp_path}/etc/kontrast-password"\n'
    )
    try:
        yield machine
    finally:
        machine.stop()


def _answers_to(machine: Machine, password: str) -> bool:
    (listen,) = re.findall(r'listen = "(.+)"', (machine.directory / "etc" / "kontrast.toml").read_text())
    login = b64encode(f"kontrast:{password}".encode()).decode()
    asked = urllib.request.Request(f"http://{listen}/metrics", headers={"Authorization": f"Basic {login}"})
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_every_command_works_on_a_real_cluster(machine):
    machine.run(_STARTS[0])
    machine.run("kontrast status --config /etc/kontrast.toml")
    titles = [title for title, _ in SECTIONS]
    assert titles[0] == "Back up"
    assert [title for title, commands in SECTIONS if not commands] == NEEDS_MORE_THAN_A_MACHINE
    for title, commands in SECTIONS:
        for command in commands:
            machine.run(command)
        if title == "Rotate a secret":
            assert _answers_to(machine, "new")
            assert not _answers_to(machine, "old")
        if commands:
            machine.until_status_names_payments(title == "Add a cluster")
