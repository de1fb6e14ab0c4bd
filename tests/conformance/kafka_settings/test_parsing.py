"""The table of settings is that of the jars, and each release of Kafka parses values as Kontrast does."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError
from controller.rules.releases import read_release
from controller.rules.setting_definitions import BROKER_SETTINGS, TOPIC_SETTINGS
from controller.rules.setting_values import ignored_broker_setting, refused_topic_setting
from tests.cases.test_cases import ask
from tests.conformance.kafka_settings.definitions import CHECKSUM, RELEASES, TABLE, java, main
from tests.older_releases import class_path_of
from tests.waiting import eventually

pytestmark = pytest.mark.nightly

VALUES = (
    *("", " ", "0", "1", "-1", "-2", "+3", "007", "13", "14", "17", "22", "1.5", ".5", "1e3", "1e400", "5f", "0x10"),
    *("2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "99999999999999999999"),
    *("true", "TRUE", " false ", "yes", "NaN", "Infinity", "-Infinity", "delete", "compact,delete", "compact, delete"),
    *("compact,", "compacted", "CreateTime", "createtime", "LogAppendTime", "zstd", "gzip", "uncompressed", "none"),
    *("producer", "*", "0:1", "0:1,1:2", "0:1, 1:2 ", "0:-1", "0:", ":1", "0:1,", "a:b", "2.8", "2.8-IV1", "3.0-IV1"),
    *("0.10.2.1", "0.10.2", "0.10", "0.10.2-IV0", "3.9", "4.0-IV1", "5.0", "3.0-IV1.1", "1.0.0", "required", "TLSv1.2"),
)
_DEFAULTS = {"retention.bytes": "-1", "retention.ms": "604800000"}  # with which Kafka compares a local one
_NOT_VALUES = ("CLASS", "PASSWORD")  # the class path, and secrets


def test_the_table_is_that_of_the_jars():
    before, checksum = TABLE.read_text(), CHECKSUM.read_text()
    try:
        main()
        assert (TABLE.read_text(), CHECKSUM.read_text()) == (before, checksum)
    finally:
        TABLE.write_text(before)
        CHECKSUM.write_text(checksum)


def _asked(seed: int) -> list[tuple[str, str, str]]:
    """Return values of all settings, and mutations of them."""
    draw = random.Random(seed)  # noqa: S311 (a test's values)
    asked = []
    for kind, table in (("topic", TOPIC_SETTINGS), ("broker", BROKER_SETTINGS)):
        for name, definitions in table.items():
            if definitions[-1].type not in _NOT_VALUES:
                mutated = ["".join(draw.choices("0123456789:-+.,* eEd", k=draw.randint(1, 6))) for _ in range(20)]
                asked += [(kind, name, value) for value in (*VALUES, *mutated)]
    return asked


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_parses_a_setting_as_kontrast_does(release, java):
    asked = _asked(seed=RELEASES.index(release))
    at = read_release(release)
    found = kafka_parses(release, asked)
    differ = []
    for (kind, name, value), parsed in zip(asked, found, strict=True):
        if kind == "topic":
            refused = refused_topic_setting(name, value, (at, at), _DEFAULTS)
        else:
            refused = ignored_broker_setting(name, value, (at, at))
        if parsed != (refused is None):
            differ.append((kind, name, value, "Kafka parses it" if parsed else "Kafka refuses it"))
    assert differ == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("unit", ["bytes", "ms"])
def test_kafka_compares_the_retentions_of_a_topic_as_kontrast_does(release, unit):
    kept, allowed = f"local.retention.{unit}", f"retention.{unit}"
    values = ("-2", "-1", "0", "5", "10")
    asked = [("topic", kept, one, allowed, other) for one, other in itertools.product(values, values[1:])]
    at = (read_release(release), read_release(release))
    refused = [refused_topic_setting(kept, one, at, {allowed: other}) is not None for _, _, one, _, other in asked]
    assert refused == [not parsed for parsed in kafka_parses(release, asked)]


def kafka_parses(release: str, asked: Sequence[tuple[str, ...]]) -> list[bool]:
    """Return whether Kafka parses each kind of settings with their names and values."""
    lines = java(release, "parse", text="".join("\t".join(each) + "\n" for each in asked))
    return [line == "parsed" for line in lines]


STARTS = {  # of a broker that hosts no replica: whether it fails
    "topic": ({"/config/topics/t": {"message.timestamp.type": "CreateTimes"}}, {"1.1.1", "2.8.2", "3.5.2", "3.9.2"}),
    "rate": ({"/config/brokers/1": {"leader.replication.throttled.rate": "fast"}}, {"1.1.1", "2.8.2", "3.5.2"}),
    "local": ({"/config/topics/t": {"local.retention.ms": "-1", "retention.ms": "5000"}}, {"3.5.2"}),
    "threads": ({"/config/brokers/1": {"background.threads": "many"}}, set()),
}


@pytest.mark.parametrize("release", ["1.1.1", "2.8.2", "3.5.2", "3.9.2"])
@pytest.mark.parametrize("case", STARTS)
def test_a_broker_fails_where_kontrast_says_so(case, release, shared_chroot, tmp_path: Path):
    settings, failing = STARTS[case]
    client = KazooClient(shared_chroot)
    client.start(timeout=30)
    znodes: dict[str, object] = {"/brokers/topics/t": {"version": 1, "partitions": {"0": [2]}}}
    znodes |= {path: {"version": 1, "config": config} for path, config in settings.items()}
    for path, content in znodes.items():
        client.create(path, json.dumps(content).encode(), makepath=True)
    version = read_release(release)
    flags = f"--kafka-version {version[0]}.{version[1]}"
    try:
        broker = KafkaBroker(1, shared_chroot, tmp_path / "broker", class_path=class_path_of(release))
        (tmp_path / "broker").mkdir()
        _, said = ask(
            f"restartable --broker 2 {flags}" if case in ("topic", "local") else f"check {flags}", shared_chroot
        )
        assert ("fails at its next start" in said) == (release in failing), said
        if release in failing:
            with pytest.raises(EmbeddedError):
                broker.start()
        else:
            broker.start()
            eventually(lambda: client.exists("/brokers/ids/1"))
        broker.kill()
    finally:
        client.stop()
        client.close()
