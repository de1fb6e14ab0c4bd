"""Messages to a service manager, once when ready, then while alive, then at the stop."""

from __future__ import annotations

import socket
import time

import pytest

from cli import running
from cli.running import Service, StopRequest, notify
from tests.waiting import eventually


@pytest.fixture
def manager(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as listening:
        listening.bind(str(tmp_path / "manager"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "manager"))
        yield listening


def heard(manager: socket.socket) -> list[bytes]:
    states = []
    while True:
        try:
            states.append(manager.recv(100))
        except BlockingIOError:
            return states


def test_it_is_ready_once_each_part_that_runs_works_and_says_so_once(manager):
    works = {"a": False, "b": False, "failed": False}
    own = Service({name: lambda name=name: works[name] for name in works}, {name: StopRequest() for name in works})
    own.look(ended=["failed"])
    works["a"] = True
    own.look(ended=["failed"])
    assert heard(manager) == []
    works["b"] = True
    own.look(ended=["failed"])
    own.look(ended=["failed"])
    assert heard(manager) == [b"READY=1"]
    own.stop()
    own.stop()
    assert heard(manager) == [b"STOPPING=1"]


def test_it_is_alive_while_each_part_looks_whether_to_stop(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    stops = {"waits": StopRequest(), "hangs": StopRequest(), "page": StopRequest()}
    own = Service({"waits": lambda: False}, stops)

    def reports_while(*looking: str) -> list[bytes]:
        for name in looking:
            stops[name].is_set()
        own.look(ended=["page"])
        return heard(manager)

    eventually(lambda: reports_while("waits", "hangs"), lambda states: states == [b"WATCHDOG=1"])
    time.sleep(0.25)
    assert reports_while("waits") == []
    own.stop()
    own.look(ended=["page"])
    assert heard(manager) == [b"STOPPING=1", b"WATCHDOG=1"]


def test_a_part_that_waits_for_its_end_is_alive():
    request = StopRequest()
    request.wait(timeout=0)
    request.set()
    request.wait()
    assert request.looked_at == float("inf")


def test_a_command_that_is_no_service_reports_nothing(manager):
    own = Service({}, {"check": StopRequest()})
    own.look(ended=[])
    own.stop()
    assert heard(manager) == []


def test_a_manager_may_have_an_abstract_address_or_be_gone(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + str(tmp_path))
        monkeypatch.setenv(running.SOCKET_VARIABLE, f"@{tmp_path}")
        notify("READY=1")
        assert listening.recv(100) == b"READY=1"
    notify("READY=1")
