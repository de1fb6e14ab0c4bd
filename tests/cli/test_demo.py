from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


def run_demo(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cli", "demo", "--once", *arguments], capture_output=True, text=True, timeout=120
    )


def test_a_directory_with_something_in_it_is_refused_by_name(tmp_path):
    (tmp_path / "mine").write_text("not to be touched")
    ended = run_demo("--keep", str(tmp_path))
    assert ended.returncode == 2
    assert f"--keep {tmp_path} is not empty" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_port_in_use_ends_the_demo_with_a_sentence(java, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = run_demo("--keep", str(tmp_path), "--port", str(port))
    assert ended.returncode == 1
    assert f"127.0.0.1:{port} is in use: choose another --port" in ended.stdout
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_when_the_demo_is_ended_in_the_middle(java, tmp_path, number):
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "demo", "--keep", str(tmp_path)], stdout=subprocess.DEVNULL
    ) as demo:
        eventually(lambda: any("PythonGatewayServer" in line for line in descendants_of(demo.pid).values()))
        started = descendants_of(demo.pid)
        demo.send_signal(number)
        status = demo.wait(60)
    assert status == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert sum("kafka.Kafka" in line for line in started.values()) == 3
    eventually(lambda: not started.items() & command_lines().items())


def command_lines():
    """Every process that runs, with its command line."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return {pid: line for pid, line in found.items() if line}  # a zombie has none


def descendants_of(ancestor):
    lines = command_lines()
    parents = {}
    for pid in lines:
        with contextlib.suppress(OSError):
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: lines[pid] for pid in found - {ancestor}}


def eventually(holds, timeout_seconds=120):
    deadline = time.monotonic() + timeout_seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.1)
