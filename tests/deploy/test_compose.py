"""The Compose file's command lines, run as processes with the file's own configurations, since no engine is at hand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.embedded.java import java_command
from cli.embedded.kafka import kafka_class_path
from cli.embedded.process import ChildProcess, free_port
from cli.embedded.zookeeper import zookeeper_class_path
from streaming.java.artifacts import KAFKA_BROKER, jars
from tests.programs import program
from tests.waiting import eventually

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("pipelines")]

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yml").read_text())[
    "services"
]
PORTS = ("2181", "19091", "19092", "19093", "19094", "19095", "9090", "9093", "9642", "9643")
ONCE = "stream-format"
AROUND_KONTRAST = [name for name in SERVICES if name not in {"grafana", "kontrast"}]  # Grafana has no command line
JAVA = {
    "zookeeper-server-start.sh": "org.apache.zookeeper.server.quorum.QuorumPeerMain",
    "kafka-server-start.sh": "kafka.Kafka",
    "kafka-storage.sh": "kafka.tools.StorageTool",
}


class Machine:
    """The Compose file's services as processes, on free ports, with volumes below a directory."""

    def __init__(self, directory: Path) -> None:
        self.port = {port: str(free_port()) for port in PORTS}
        self._directory = directory
        self._running: dict[str, ChildProcess] = {}

    def run(self, service: str) -> None:
        """Start a service, or wait for the end of the one that has an end."""
        command = self.command(service)
        if service == ONCE:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
            return
        self._running[service] = ChildProcess(service, command, self._directory / f"{service}.log")
        self._running[service].launch()

    def stop(self) -> None:
        with ExitStack() as ends:
            for process in self._running.values():
                ends.callback(process.stop)

    def asks(self, port: str, path: str) -> str:
        """Return the answer of a page, empty without one."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port[port]}{path}", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def command(self, service: str) -> list[str | Path]:
        """Return a service's command line with its files in their places here."""
        words = [*SERVICES[service].get("entrypoint", ()), *SERVICES[service].get("command", ())]
        places = dict(self._place(service, volume) for volume in SERVICES[service]["volumes"])
        for here in {here for here in places.values() if here.is_file()}:
            here.write_text(self._moved(here.read_text(), places))
        words = [self._moved(word, places) for word in words]
        if service == "kontrast":
            config = places["/etc/kontrast/kontrast.toml"]
            return [sys.executable, "-m", "cli", *words, "--config", config]
        if (main_class := JAVA.get(Path(words[0]).name)) is None:
            return [program(service), *words]
        classes = zookeeper_class_path() if "zookeeper" in words[0] else kafka_class_path(jars(KAFKA_BROKER))
        *java, _ = java_command(main_class, self._directory / "none", class_path=classes, heap_mb=256)
        return [*java, *words[1:]]

    def _place(self, service: str, volume: str) -> tuple[str, Path]:
        """Return a volume's path in the container and here, where each service has its own copies of the files."""
        source, path, *_ = volume.split(":")
        here = self._directory / "volumes" / source
        if source.startswith("."):
            here = self._directory / service / path.strip("/")
            original = ROOT / "deploy" / "compose" / source
            here.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if original.is_dir() else shutil.copy)(original, here)
            for file in here.rglob("*.yml"):
                file.write_text(self._moved(file.read_text(), {}))
        else:
            here.mkdir(parents=True, exist_ok=True)
        return path, here

    def _moved(self, text: str, places: dict[str, Path]) -> str:
        text = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda found: self.port[found[0]], text)
        paths = rf"(?<![\w./-])({'|'.join(map(re.escape, places)) or '(?!)'})\b"
        return re.sub(paths, lambda found: str(places[found[0]]), text)


@pytest.fixture
def machine(java: Path, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    try:
        yield machine
    finally:
        machine.stop()


def test_every_command_line_runs_and_kontrast_reaches_every_server(machine):
    for service in AROUND_KONTRAST:
        machine.run(service)

    def check() -> str:
        checked = subprocess.run([*machine.command("kontrast"), "--check"], capture_output=True, text=True)
        return checked.stdout if checked.returncode == 0 else ""

    checked = eventually(check, lambda said: "3 brokers" in said)
    assert checked.count("ok     ") == len(checked.splitlines()) == 14
    machine.run("kontrast")
    eventually(lambda: machine.asks("9642", "/readyz"), lambda said: said == "ready\n")
    eventually(lambda: machine.asks("9643", "/readyz"), lambda said: said == "ready\n")
    groups = json.loads(machine.asks("9090", "/api/v1/rules"))["data"]["groups"]
    assert {"kontrast-self", "kontrast-cluster"} <= {group["name"] for group in groups}


def test_every_service_has_a_limit_of_memory_and_of_its_log():
    assert all(service["mem_limit"] and service["logging"]["options"]["max-size"] for service in SERVICES.values())


def test_every_file_that_grafana_gets_exists_and_the_boards_are_where_it_looks():
    binds = dict(volume.split(":")[1::-1] for volume in SERVICES["grafana"]["volumes"] if volume.startswith("."))
    assert all((ROOT / "deploy" / "compose" / source).is_dir() for source in binds.values())
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "kontrast.yml").read_text())["providers"]
    assert provider["options"]["path"] in binds
    (source,) = yaml.safe_load((provisioning / "datasources" / "kontrast.yml").read_text())["datasources"]
    assert f"--web.listen-address={source['url'].removeprefix('http://')}" in SERVICES["prometheus"]["command"]


def test_each_image_may_be_named_by_digest_and_only_loopback_is_listened_on():
    for name, service in SERVICES.items():
        assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z/]+(:v?[0-9.]+)?\}", service["image"]), name
        assert service["network_mode"] == "host"
    listening = [line for file in ("broker", "stream") for line in _properties(file) if line.startswith("listeners=")]
    assert all("127.0.0.1" in line for line in listening)
    assert "clientPortAddress=127.0.0.1" in _properties("zookeeper")


def test_java_may_load_libraries_from_the_temporary_directory():
    """Without the word exec, Docker mounts a tmpfs with noexec."""
    assert SERVICES["kontrast"]["tmpfs"] == ["/tmp:exec"]


def _properties(name: str) -> list[str]:
    return (ROOT / "deploy" / "compose" / f"{name}.properties").read_text().splitlines()
