"""Run of a command in a process of its own, which frees its memory and ends with its question."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import anyio

from cli.mcp_server.tools import Question
from cli.running import ExitCode
from controller.contract.decoding import JsonDecoder
from streaming.processes import die_with

_MOST_BYTES: Final = 4 * 1024**2  # more than an assistant can read
_MOST_ARGUMENT_BYTES: Final = 64 * 1024  # Linux takes up to 128 KiB for an argument
_AT_ONCE: Final = 2  # each computes on one core
_MOST_WAITING: Final = 4  # the last one waits for two others, of 10 to 20 s each with 200,000 partitions
_OBJECT: Final[JsonDecoder[dict[str, Any]]] = JsonDecoder(dict)
_ANSWERED: Final = (ExitCode.OK, ExitCode.FAILED, ExitCode.UNAVAILABLE)  # the last one of a cluster that is not known


class NoAnswerError(Exception):
    """The command has no answer, in a sentence."""


class Answer(NamedTuple):
    """Answer of a command in JSON's types, and its warnings."""

    content: dict[str, Any]
    warnings: str


class _Done(NamedTuple):
    code: int
    printed: bytes
    complaints: bytes


class Commands:
    """Commands that read one source, few at once. Others wait in a short queue."""

    def __init__(self, source: Sequence[str]) -> None:
        self._source = tuple(source)
        self._free = anyio.CapacityLimiter(_AT_ONCE)

    async def ask(self, question: Question) -> Answer:
        """Run the command of the question, and end it with a cancelled question. Raise NoAnswerError."""
        command = [sys.executable, "-m", "cli", question.command, *self._source, *_checked([*question.arguments()])]
        waiting = self._free.statistics().tasks_waiting
        if waiting >= _MOST_WAITING:
            raise NoAnswerError(f"{_AT_ONCE} questions run and {waiting} wait, so ask again in a minute")
        async with self._free:
            try:
                with anyio.fail_after(question.timeout_seconds):
                    done = await _run(command)
            except TimeoutError:
                raise NoAnswerError(f"no answer within {question.timeout_seconds:g} s") from None
        warnings = done.complaints.decode(errors="replace").strip()
        # A command prints its answer also if it found a problem. A usage error prints nothing.
        if done.code not in _ANSWERED or not done.printed.strip():
            raise NoAnswerError(warnings or f"the command ended with exit code {done.code}")
        if len(done.printed) > _MOST_BYTES:
            raise NoAnswerError(f"the answer has {len(done.printed)} bytes, which is too much: ask about less")
        return Answer(_content(question, done.printed), warnings)


async def _run(command: Sequence[str]) -> _Done:
    """Run the command to its end. It does not outlive this process, nor a cancelled call."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(die_with, os.getpid()),
    )
    try:
        printed, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()
    assert process.returncode is not None, "a process that was waited for"
    return _Done(process.returncode, printed, complaints)


def _checked(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments of a command. Raise NoAnswerError for one that no command can take."""
    for argument in arguments:
        try:
            size_bytes = len(argument.encode())
        except UnicodeEncodeError:
            raise NoAnswerError("an argument is no text, because it has half of a character") from None
        if "\0" in argument:
            raise NoAnswerError("an argument has the character NUL, which no name has")
        if size_bytes > _MOST_ARGUMENT_BYTES:
            raise NoAnswerError(f"an argument has {size_bytes} bytes, more than {_MOST_ARGUMENT_BYTES}")
    return arguments


def _content(question: Question, printed: bytes) -> dict[str, Any]:
    if question.prints_lines:
        return {"findings": [_OBJECT.decode(line) for line in printed.splitlines()]}
    return _OBJECT.decode(printed)
