"""Process that answers the questions of assistants, one after the other.

The worker is separate from the server, so that a question that hangs can be ended at its time limit while the server
goes on, and so that the memory of a large answer is freed.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from typing import Final

import click
import msgspec

from cli.mcp_server.tools import WORKER_BYTES, Told, ToolCall
from cli.printing import standard_error
from cli.settings.config import ConfigError
from cli.sources.asking import answer_of, warn_of_doubts
from cli.sources.options import read_source_flags
from controller.contract.decoding import JsonDecoder
from dashboards.errors import ServeError
from ingest.errors import IngestError
from questions.question import NotFoundError, Question

# A read of 200,000 partitions takes up to 1 GB. A worker that grew beyond this limit ends after its answer.
_KEPT_BYTES: Final = 1024**3
_NEVER: Final = threading.Event()
_ASKED: Final = JsonDecoder(ToolCall)


def main(source: Sequence[str]) -> None:
    """Answer each line of standard input with a line on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the server
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not come between answers
    standard_error.configure()
    resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for line in sys.stdin.buffer:
        question, cluster = _ASKED.decode(line).read()
        told = _told(question, source, cluster)
        is_last = _resident_bytes() > _KEPT_BYTES
        answers.write(msgspec.json.encode(msgspec.structs.replace(told, is_last=is_last)) + b"\n")
        answers.flush()
        if is_last:
            return


def _told(question: Question, where: Sequence[str], cluster: str | None) -> Told:
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            chosen = read_source_flags(where)
            source = replace(chosen, cluster=cluster or chosen.cluster).source()
            answer, picture = answer_of(source, question, chosen.settings, _NEVER)
            warn_of_doubts(picture)
    except (NotFoundError, ConfigError, IngestError, ServeError) as error:
        return Told(refusal=str(error))
    except click.UsageError as error:
        return Told(refusal=error.format_message())
    except MemoryError:
        return Told(refusal=f"the answer needs more than {WORKER_BYTES} bytes of memory")
    return Told(answer, said.getvalue().strip())


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1:])
