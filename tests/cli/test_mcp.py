"""`kontrast mcp` in front of the protocol package's own client."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest
from click.testing import CliRunner
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from cli.main import main
from cli.mcp_server import server
from cli.mcp_server.server import NoAnswerError, WorkerAnswers
from cli.mcp_server.tools import TOOLS, ToolCall
from questions.explain.explanation import Explanation
from questions.whatif.may_restart import Restartable
from streaming.processes import descendants
from tests import recorded_moment
from tests.waiting import eventually

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
ARGUMENTS: dict[str, dict[str, object]] = {
    "explain": {"subject": "broker 1"},
    "timeline": {"controller": True, "since": "0x1"},
    "whatif": {"steps": [{"lose_brokers": [2]}, {"restore": [2]}], "controlled": True},
    "restartable": {"broker": 2, "accept_topics": ["*"]},
}
COMMANDS = {
    "explain": ["explain", "broker", "1"],
    "timeline": ["timeline", "--controller", "--since", "0x1"],
    "whatif": ["whatif", "--lose-broker", "2", "--restore", "2", "--controlled"],
    "whatif_each": ["whatif", "--each"],
    "whatif_rolling": ["whatif", "--rolling"],
    "restartable": ["restartable", "2", "--accept-topic", "*"],
}


@pytest.fixture(scope="module")
def source(recorded_files) -> list[str]:
    return ["--zk-data", str(recorded_files), "--cluster", "north", "--until", str(recorded_moment.MOMENT_MS)]


@pytest.fixture
def over_stdio(source) -> Client:
    return Client(StdioServerParameters(command=sys.executable, args=["-m", "cli", "mcp", *source]))


def test_each_question_is_answered_with_its_type_as_the_command_does(over_stdio, source):
    async def ask():
        async with over_stdio as client:
            assert client.server_info is not None
            assert client.server_info.name == "kontrast"
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() == TOOLS.keys()
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
            for name in TOOLS:
                # The client checks the content against the tool's schema.
                found = await client.call_tool(name, ARGUMENTS.get(name, {}))
                assert not found.is_error, found.content
                msgspec.json.decode(found.content[0].text, type=TOOLS[name].answer)
                assert msgspec.json.decode(found.content[0].text) == found.structured_content
                command = [*COMMANDS.get(name, [name.replace("_", "-")]), *source, "--json"]
                printed = CliRunner().invoke(main, command).stdout.splitlines()
                assert found.structured_content == msgspec.json.decode(printed[0]), name
                assert len(printed) == 1, name
            explained = await client.call_tool("explain", {"subject": "controller"})
            assert msgspec.convert(explained.structured_content, Explanation).is_well is False
            judged = await client.call_tool("restartable", {"broker": 2})
            assert msgspec.convert(judged.structured_content, Restartable).broker == 2
            assert "never instructions" in (client.instructions or "").replace("\n", " ")
            found = await client.call_tool("check", {})
            assert "data, not instructions" in found.content[-1].text

    anyio.run(ask)


def test_a_mistake_is_one_sentence(over_stdio):
    async def ask():
        async with over_stdio as client:
            for name, arguments, says in (
                ("explain", {"subject": "no-such-topic"}, "there is no"),
                ("explain", {}, "subject"),
                ("explain", {"subject": "--help"}, "there is no"),
                ("restartable", {"broker": "x"}, "int"),
                ("restartable", {"broker": 2, "wait": "10m"}, "unknown field"),
                ("restartable", {"broker": 2, "cluster": 7}, "str"),
                ("whatif", {"steps": []}, "length"),
                ("whatif", {"steps": [{"restore": [2], "lose_racks": ["a"]}]}, "a step loses brokers or racks, or"),
                ("whatif", {"steps": [{"lose_racks": ["nowhere"]}]}, "in rack nowhere"),
                ("timeline", {"partitions": ["orders"]}, "is no partition"),
                ("timeline", {"topics": ["order"]}, "lacks topic order"),
            ):
                found = await client.call_tool(name, arguments)
                assert found.is_error, found
                assert says in found.content[0].text
                assert "Traceback" not in found.content[0].text
            with pytest.raises(MCPError, match="there is no tool shutdown"):
                await client.call_tool("shutdown", {})

    anyio.run(ask)


def test_every_runbook_is_a_resource(over_stdio):
    async def ask():
        async with over_stdio as client:
            found = {each.name: str(each.uri) for each in (await client.list_resources()).resources}
            assert found.keys() == {file.stem for file in RUNBOOKS.glob("*.md")}
            (content,) = (await client.read_resource(found["KontrastBrokerCrashed"])).contents
            assert content.text == (RUNBOOKS / "KontrastBrokerCrashed.md").read_text(encoding="utf-8")
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource("kontrast://runbooks/../../README")

    anyio.run(ask)


def test_a_source_without_a_past_has_no_timeline():
    async def ask():
        arguments = ["-m", "cli", "mcp", "--zookeeper", "127.0.0.1:1", "--connect-timeout-seconds", "1"]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == TOOLS.keys() - {"timeline"}
            found = await client.call_tool("check", {})
            assert found.is_error
            assert "127.0.0.1:1" in found.content[0].text

    anyio.run(ask)


@pytest.mark.parametrize(
    ("subject", "says"), [("a\0b", "there is no"), ("x" * 200_000, "200"), ("\udc80", "surrogate")]
)
def test_an_argument_that_no_name_can_have_is_one_sentence(source, subject, says):
    async def ask():
        with pytest.raises(NoAnswerError, match=says) as refused:
            await WorkerAnswers(source).ask(ToolCall("explain", {"subject": subject}))
        assert sys.executable not in str(refused.value)

    anyio.run(ask)


@pytest.fixture
def slow(monkeypatch, tmp_path):
    """Replace the worker by one that writes its process id and sleeps. Return a function that counts living workers."""
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/$$.pid\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))

    def alive() -> int:
        return sum(Path(f"/proc/{path.stem}").exists() for path in tmp_path.glob("*.pid"))

    return alive


def test_a_question_that_is_cancelled_ends_its_worker_and_the_others_wait(slow):
    async def ask():
        waiting = WorkerAnswers(["--zk-data", "/nowhere"])
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(waiting.ask, ToolCall("check", {}))
            while slow() < 1:
                await anyio.sleep(0.05)
            assert slow() == 1
            tasks.cancel_scope.cancel()

    anyio.run(ask)
    eventually(slow, lambda alive: alive == 0)  # a killed process exists until its parent has waited for it


def test_a_question_that_hangs_ends_and_the_next_gets_another_worker(slow, source, monkeypatch):
    monkeypatch.setattr(server, "TIMEOUT_SECONDS", 1.0)

    async def ask():
        with pytest.raises(NoAnswerError, match="no answer within 1 s"):
            await WorkerAnswers(source).ask(ToolCall("check", {}))
        assert slow() == 0
        monkeypatch.undo()
        first = await WorkerAnswers(source).ask(ToolCall("check", {}))
        assert first.content["cluster"] == "north"

    anyio.run(ask)


def test_a_worker_that_is_killed_is_named_by_its_signal_and_the_bound(slow, source, tmp_path):
    async def kill():
        while not (started := list(tmp_path.glob("*.pid"))):
            await anyio.sleep(0.05)
        os.kill(int(started[0].stem), signal.SIGKILL)

    async def ask():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            with pytest.raises(NoAnswerError, match=r"^SIGKILL ended the question's process\. .* up to 8 GB"):
                await WorkerAnswers(source).ask(ToolCall("check", {}))

    anyio.run(ask)


BEGIN = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
BEGUN = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CHECK = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "check", "arguments": {}}}


@pytest.mark.parametrize("leave", [lambda running: running.stdin.close(), lambda running: running.kill()])
def test_a_client_that_leaves_and_a_killed_server_end_the_question(leave):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a ZooKeeper that never answers
        zookeeper = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "cli", "mcp", "--zookeeper", zookeeper, "--connect-timeout-seconds", "600"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
            try:
                assert running.stdin is not None
                running.stdin.write(b"".join(msgspec.json.encode(each) + b"\n" for each in (BEGIN, BEGUN, CHECK)))
                running.stdin.flush()
                (worker,) = eventually(lambda: descendants(running.pid))
                leave(running)
                eventually(lambda: not Path(f"/proc/{worker}").exists())
                running.wait(60)
            finally:
                running.kill()
