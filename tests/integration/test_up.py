"""`kontrast up` with the file of `kontrast init` on real brokers. Each child is killed once, then all end cleanly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess, free_port
from tests.integration.conftest import create
from tests.processes import command_line_of, descendants, is_running
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines")]

KONTRAST = (sys.executable, "-m", "cli")
COMMANDS = ("watch", "stream", "serve")


@pytest.fixture
def cluster(start_kafka_cluster):
    return start_kafka_cluster(broker_ids=(1, 2, 3))


@pytest.fixture
def listen():
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def config(cluster, listen, tmp_path) -> Path:
    """Return the file that `kontrast init` writes, but for its ports."""
    file = tmp_path / "kontrast.toml"
    options = ("--zookeeper", cluster.zookeeper.connect_string, "--cluster", "c", "--state", tmp_path, "--out", file)
    subprocess.run([*KONTRAST, "init", *options], check=True)
    text = file.read_text()
    assert "3 brokers" in text
    for port, free in (("127.0.0.1:9642", listen), ("127.0.0.1:9643", f"127.0.0.1:{free_port()}")):
        assert text.count(port) == 1
        text = text.replace(port, free)
    file.write_text(text)
    return file


def child_of(up: ChildProcess, command: str) -> int:
    """Return the process id of the child that runs this command."""
    assert up.pid is not None
    (pid,) = [
        pid for pid in descendants(up.pid) if f" -m cli --log-level info {command} --config " in command_line_of(pid)
    ]
    return pid


def partitions_at(listen: str) -> float:
    with suppress(OSError), urllib.request.urlopen(f"http://{listen}/metrics", timeout=5) as answer:  # noqa: S310
        found = re.search(r'^kontrast_partitions\{.*state="online"\} (\S+)$', answer.read().decode(), re.MULTILINE)
        return float(found[1]) if found else -1
    return -1


def test_each_child_that_is_killed_starts_again_and_all_end_in_order(config, cluster, listen, tmp_path):
    checked = subprocess.run([*KONTRAST, "up", "--config", config, "--check"], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout.count("ok     ")) == (0, 13), checked.stdout
    assert "missing, `kontrast stream` creates them" in checked.stdout

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.bind(str(tmp_path / "s"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
        environment["NOTIFY_SOCKET"] = str(tmp_path / "s")
        up = ChildProcess("up", [*KONTRAST, "up", "--config", str(config)], tmp_path / "log", environment=environment)
        up.launch()
        try:
            kill_each(up, cluster, listen)
            assert manager.recv(100) == b"READY=1"
            everything = descendants(up.pid)
            up.ask_to_stop()
            assert eventually(lambda: up.exit_status, lambda status: status is not None) == 0, up.log_tail()
        finally:
            up.kill()
    assert not [pid for pid in everything if is_running(pid)]
    log = up.log.read_text()
    assert "Traceback" not in log
    assert "stream | " in log
    ends = [log.rindex(f"{command:6} | kontrast: stopping on SIGTERM") for command in COMMANDS]
    assert ends == sorted(ends)


def kill_each(up: ChildProcess, cluster, listen: str) -> None:
    """Kill the children in turn. After each kill, new events must arrive."""

    def runs() -> None:
        assert up.running, up.describe("ended by itself")

    def is_up(times: int) -> bool:
        return up.log.read_text().count("kontrast: watch, stream, serve are up") == times

    eventually(lambda: is_up(1), meanwhile=runs)
    for count, command in enumerate(COMMANDS, start=1):
        os.kill(child_of(up, command), signal.SIGKILL)
        eventually(lambda: is_up(count + 1), meanwhile=runs)  # noqa: B023 (asked before the next round)
        assert f"kontrast: {command} was ended by SIGKILL, and starts again in 1 s" in up.log.read_text()
        create(cluster, **{f"topic-{count}": {0: [1, 2, 3]}})
        eventually(lambda: partitions_at(listen), lambda online: online == count, meanwhile=runs)  # noqa: B023
