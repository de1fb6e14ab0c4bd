"""Kafka's own readers beside our decoder on variants that no file has."""

from __future__ import annotations

import shutil

import pytest

from tests.conformance.znode_readers.answers import RELEASES, ask, questions
from tests.conformance.znode_readers.comparison import is_known_difference, kafkas, ours

pytestmark = pytest.mark.nightly


def test_other_variants_are_read_alike_too():
    if shutil.which("javac") is None:
        pytest.skip("no JDK (Debian: openjdk-17-jdk-headless), which compiles the reader")
    asked = questions(seed=2)
    told = zip(asked, ask(RELEASES[0], asked), strict=True)
    read = [(kind, content, ours(kind, content), kafkas(kind, answer)) for (kind, content), answer in told]
    assert len(read) > 20_000
    assert [each for each in read if each[2] != each[3] and not is_known_difference(*each[:2])] == []
