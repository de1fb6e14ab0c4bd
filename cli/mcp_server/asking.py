"""Run of a command in a process of its own, which frees its memory and ends with its question."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import anyio

from cli.mcp_server.tools import Question
from cli.running import ExitCode
from controller.contract.decoding import JsonDecoder

_MOST_BYTES: Final = 4 * 1024**2  # more than an assistant can read
_AT_ONCE: Final = 2  # each computes on one core
_OBJECT: Final[JsonDecoder[dict[str, Any]]] = JsonDecoder(dict)
_ANSWERED: Final = (ExitCode.OK, ExitCode.FAILED, ExitCode.UNAVAILABLE)  # the last one of a cluster that is not known


class NoAnswerError(Exception):
    """The command has no answer, in a sentence."""


class Answer(NamedTuple):
    """Answer of a command in JSON's types, and its warnings."""

    content: dict[str, Any]
    warnings: str


class Commands:
    """Commands that read one source."""

    def __init__(self, source: Sequence[str]) -> None:
        self._source = tuple(source)
        self._free = anyio.CapacityLimiter(_AT_ONCE)

    async def ask(self, question: Question) -> Answer:
        """Run the command of the question. Raise NoAnswerError."""
        command = [sys.executable, "-m", "cli", question.command, *self._source, *question.arguments()]
        async with self._free:
            try:
                with anyio.fail_after(question.timeout_seconds):
                    done = await anyio.run_process(command, stdin=subprocess.DEVNULL, check=False)
            except TimeoutError:
                raise NoAnswerError(f"no answer within {question.timeout_seconds:g} s") from None
        warnings = done.stderr.decode(errors="replace").strip()
        # A command prints its answer also if it found a problem. A usage error prints nothing.
        if done.returncode not in _ANSWERED or not done.stdout.strip():
            raise NoAnswerError(warnings or f"the command ended with exit code {done.returncode}")
        if len(done.stdout) > _MOST_BYTES:
            raise NoAnswerError(f"the answer has {len(done.stdout)} bytes, which is too much: ask about less")
        return Answer(_content(question, done.stdout), warnings)


def _content(question: Question, printed: bytes) -> dict[str, Any]:
    if question.prints_lines:
        return {"findings": [_OBJECT.decode(line) for line in printed.splitlines()]}
    return _OBJECT.decode(printed)
