from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from tests.lanes import in_gate
from tests.processes import command_line_of, descendants
from tests.waiting import eventually

pytestmark = pytest.mark.xdist_group("pipelines")


def run_demo(*arguments):
    return subprocess.run([sys.executable, "-m", "cli", "demo", "--once", *arguments], capture_output=True, text=True)


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
    assert f"127.0.0.1:{port} is in use. Choose another --port" in ended.stdout
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("number", in_gate(signal.SIGKILL, of=[signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
def test_no_process_is_left_when_the_demo_is_ended_in_the_middle(java, tmp_path, number):
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "demo", "--keep", str(tmp_path)], stdout=subprocess.DEVNULL
    ) as demo:

        def still_runs():
            assert demo.poll() is None, "the demo ended by itself"

        spark = "PythonGatewayServer"
        eventually(lambda: any(spark in line for line in below(demo.pid).values()), meanwhile=still_runs)
        started = below(demo.pid)
        demo.send_signal(number)
        status = demo.wait()
    assert status == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert sum("kafka.Kafka" in line for line in started.values()) == 3
    eventually(lambda: not [pid for pid, line in started.items() if command_line_of(pid) == line])


def below(ancestor):
    """Return the command lines of the processes that this one has started."""
    lines = {pid: command_line_of(pid) for pid in descendants(ancestor)}
    return {pid: line for pid, line in lines.items() if line}  # a zombie's command line is empty
