"""Pass questions to the worker, one at a time, while others wait."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
import msgspec

from cli.mcp_server.tools import Asked, Told
from controller.contract.decoding import JsonDecoder
from streaming.processes import die_with

MOST_BYTES: Final = 4 * 1024**2  # more than an assistant can read
_MOST_ARGUMENT_BYTES: Final = 64 * 1024
TIMEOUT_SECONDS: Final = 120.0  # 200,000 partitions take some ten seconds
_TOLD: Final = JsonDecoder(Told)


class NoAnswerError(Exception):
    """A question has no answer. The message is the reason, in a sentence."""


class Answers:
    """Answers of one source. If a question hangs, its worker is ended, and the next question gets a new worker."""

    def __init__(self, source: Sequence[str]) -> None:
        self._command = (sys.executable, "-m", "cli.mcp_server.worker", *source)
        self._free = anyio.CapacityLimiter(1)
        self._worker: asyncio.subprocess.Process | None = None

    async def ask(self, asked: Asked) -> Told:
        """Ask the worker. If the question is cancelled, end the worker. Raise NoAnswerError."""
        try:
            line = msgspec.json.encode(asked) + b"\n"
            asked.read()
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise NoAnswerError(str(error)) from error
        if len(line) > _MOST_ARGUMENT_BYTES:
            raise NoAnswerError(f"the arguments have {len(line)} bytes, more than {_MOST_ARGUMENT_BYTES}")
        async with self._free:
            told = await self._answer(line)
        if told.content is None:
            raise NoAnswerError(told.refusal)
        return told

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and worker.returncode is None:
            worker.kill()
            with anyio.CancelScope(shield=True):
                await worker.wait()

    async def _answer(self, line: bytes) -> Told:
        told: Told | None = None
        try:
            with anyio.fail_after(TIMEOUT_SECONDS):
                told = await self._told(line)
        except TimeoutError:
            raise NoAnswerError(f"no answer within {TIMEOUT_SECONDS:g} s") from None
        finally:
            if told is None or told.is_last:
                await self._end()
        return told

    async def _told(self, line: bytes) -> Told:
        asks, answers = await self._pipes()
        asks.write(line)
        try:
            told = await answers.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            raise NoAnswerError(f"the answer has more than {MOST_BYTES} bytes: ask about less") from error
        except asyncio.IncompleteReadError as error:
            raise NoAnswerError("the question failed unexpectedly, please report it with the log") from error
        return _TOLD.decode(told)

    async def _pipes(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        """Return the pipes of the worker, and start a worker if none runs. A worker does not outlive this process."""
        if self._worker is None or self._worker.returncode is not None:
            self._worker = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                preexec_fn=partial(die_with, os.getpid()),
                limit=MOST_BYTES,
            )
        asks, answers = self._worker.stdin, self._worker.stdout
        assert asks is not None, "a pipe"
        assert answers is not None, "a pipe"
        return asks, answers
