"""Kafka's own readers, asked in a JVM of each release, and the file with their answers."""

from __future__ import annotations

import base64
import json
import lzma
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from streaming.java.installation import find_java
from tests.conformance.znode_readers.variants import SAMPLES, variants
from tests.older_releases import class_path_of

RELEASES: Final = ("3.9.2", "2.8.2", "1.1.1")
VECTORS: Final = Path(__file__).parents[2] / "controller" / "vectors" / "znodes.jsonl.xz"
A_KIND: Final = 2_200
"Variants of each kind of znode."
_SEED: Final = 1
_READER: Final = Path(__file__).with_name("KafkaZnodes.java")
UNKNOWN: Final = "unknown"  # answer for a release that has no reader of this kind


class Question(NamedTuple):
    """Content of a znode of one kind."""

    kind: str
    content: bytes | None


class Answered(NamedTuple):
    """A question with the answer of each release."""

    question: Question
    answers: tuple[str, ...]


def questions(seed: int, a_kind: int = A_KIND) -> list[Question]:
    """Return the variants of every kind."""
    return [Question(kind, content) for kind in SAMPLES for content in variants(kind, seed, a_kind)]


def ask(release: str, asked: Sequence[Question]) -> list[str]:
    """Return the answers of a release's readers."""
    class_path = ":".join(map(str, class_path_of(release)))
    lines = "".join(f"{kind} {_encoded(content)}\n" for kind, content in asked)
    command = [str(find_java()), "-cp", class_path, str(_READER)]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=300, check=True)
    return run.stdout.splitlines()


def _encoded(content: bytes | None) -> str:
    return "null" if content is None else base64.b64encode(content).decode()


def write_vectors() -> None:
    """Ask every release, and write the file."""
    asked = questions(_SEED)
    answers = zip(*(ask(release, asked) for release in RELEASES), strict=True)
    with lzma.open(VECTORS, "wt", encoding="ascii", preset=9) as file:
        for question, told in zip(asked, answers, strict=True):
            content = None if question.content is None else question.content.decode("latin-1")
            file.write(json.dumps([question.kind, content, *told]) + "\n")


def read_vectors() -> Iterator[Answered]:
    """Yield the questions and answers in the file."""
    with lzma.open(VECTORS, "rt", encoding="ascii") as lines:
        for kind, content, *told in map(json.loads, lines):
            yield Answered(Question(kind, None if content is None else content.encode("latin-1")), tuple(told))
