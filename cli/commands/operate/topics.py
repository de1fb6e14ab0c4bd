"""Command `kontrast topics`, which compares the Kafka topics of stream and outputs with the needed ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cli.capacity import DAY_MS
from cli.printing.rows import row_options
from cli.printing.standard_output import print_json, print_said
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import ConfigError, Settings, reached, read_settings
from cli.settings.options import config_option
from dashboards.errors import ServeError
from transport.address import KafkaAddress
from transport.topics import (
    CLEANUP_POLICY,
    PARTITIONS,
    RETENTION_MS,
    ExistingTopic,
    RequiredTopic,
    refusal,
    stream_topics,
    unfit,
)
from wording.said import Table, line

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

_OK: Final = "ok"
_TIMEOUT_MS: Final = 10_000
_COLUMNS: Final = ("topic", "state", "partitions", CLEANUP_POLICY, RETENTION_MS, "the brokers have")
_EPILOG: Final = """\b
Examples:
  kontrast topics --config kontrast.toml
  kontrast topics --config kontrast.toml --days 7 --apply

\b
Exit codes:
  0  every topic exists and keeps its rows
  1  the printed topics are missing or lose rows
  2  a setting is wrong, or neither stream nor outputs are in Kafka
  3  the brokers do not answer, or refuse
"""


class Compared(NamedTuple):
    """Comparison of a needed topic with the existing one."""

    topic: str
    state: str  # ok, missing or wrong
    partitions: int
    cleanup_policy: str
    retention_ms: str  # empty if any retention is right
    exists: str
    sentence: str  # the defect, and the command that fixes it


@click.command(epilog=_EPILOG)
@config_option
@click.option(
    "--days",
    type=click.FloatRange(min=0.1),
    metavar="N",
    help="How far back the topic of changes reaches, as for `kontrast size`. Any retention is right without it.",
)
@click.option("--apply", is_flag=True, help="Make missing topics, and mend the settings of wrong ones.")
@row_options("Print one JSON object a topic.")
def topics(config_file: Path | None, days: float | None, *, apply: bool, as_json: bool) -> int:
    """Compare the Kafka topics of stream and outputs with the brokers, and make or mend them.

    A topic with too many partitions is named only: its rows would be lost with it.
    """
    needed = _needed(read_settings(config_file, os.environ), None if days is None else round(days * DAY_MS))
    compared: list[Compared] = []

    def run(_: threading.Event) -> None:
        for address, of_address in needed.items():
            compared.extend(_compare(address, of_address, apply=apply))

    code = run_until_stopped({"topics": run})
    if as_json:
        for topic in compared:
            print_json(topic._asdict())
    elif compared:
        cells = (tuple(map(str, each[: len(_COLUMNS)])) for each in compared)
        print_said([Table(_COLUMNS, cells, below=1), *(line(each.sentence) for each in compared if each.sentence)])
    return code or (ExitCode.FAILED if any(each.state != _OK for each in compared) else ExitCode.OK)


def _needed(settings: Settings, retention_ms: int | None) -> Mapping[KafkaAddress, Sequence[RequiredTopic]]:
    """Return the topics by address, for each cluster's stream, the job's source, and the outputs."""
    from streaming.sinks.sink import output_topics  # brings pyspark

    layers = [settings.sections["watch"], *settings.clusters.values()]
    streams = [layer["to"].value for layer in layers if "to" in layer]
    job = settings.sections["stream"]
    streams += [job["from"].value] if "from" in job else []
    needed: dict[KafkaAddress, list[RequiredTopic]] = {}
    for stream in dict.fromkeys(streams):
        if isinstance(stream, KafkaAddress):
            needed.setdefault(stream, []).extend(stream_topics(stream, retention_ms))
    outputs = job["to"].value if "to" in job else None
    if isinstance(outputs, KafkaAddress):
        needed.setdefault(outputs, []).extend(output_topics(outputs))
    if not needed:
        raise ConfigError(
            "neither stream nor outputs are in Kafka. Neither to of [watch] nor from and to of [stream] begin with kafka://"
        )
    return {
        address: found
        for given, found in needed.items()
        if isinstance(address := reached(settings, given), KafkaAddress)
    }


def _compare(address: KafkaAddress, needed: Sequence[RequiredTopic], *, apply: bool) -> Iterator[Compared]:
    """Compare the topics. With `apply`, create missing topics and fix settings before. Raise ServeError."""
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    from outputs.kafka_connections import client_options, error_in_words
    from outputs.kafka_topics import existing_topics

    limits = {"request_timeout_ms": _TIMEOUT_MS, "bootstrap_timeout_ms": _TIMEOUT_MS}
    try:
        with closing(KafkaAdminClient(**client_options(address), **limits)) as admin:
            existing = existing_topics(admin, needed)
            if apply and _mend(admin, address, needed, existing):
                existing = existing_topics(admin, needed)
    except KafkaError as error:
        raise ServeError(f"Kafka at {address.bootstrap_servers} does not answer: {error_in_words(error)}") from error
    found = {each.topic: each for each in existing}
    for topic in needed:
        yield _row(address, topic, found.get(topic))


def _row(address: KafkaAddress, topic: RequiredTopic, existing: ExistingTopic | None) -> Compared:
    wanted = PARTITIONS, topic.settings[CLEANUP_POLICY], topic.settings.get(RETENTION_MS, "")
    if existing is None:
        return Compared(topic.name, "missing", *wanted, "", "")
    wrong = unfit(address, [existing])
    settings = " ".join(f"{name}={value}" for name, value in existing.settings.items())
    has = f"{existing.partitions} {settings}".strip()
    state = "wrong" if wrong.refused or wrong.doubted else _OK
    return Compared(topic.name, state, *wanted, has, wrong.refused or wrong.doubted)


def _mend(
    admin: KafkaAdminClient, address: KafkaAddress, needed: Sequence[RequiredTopic], existing: Sequence[ExistingTopic]
) -> bool:
    """Create missing topics and fix lossy settings. Return whether anything changed. Raise KafkaError, ServeError."""
    from outputs.kafka_topics import create_topics, set_topic_settings

    present = {each.topic for each in existing}
    missing = [topic for topic in needed if topic not in present]
    other = [each.topic for each in existing if _row(address, each.topic, each).state != _OK]
    refused = create_topics(admin, missing) if missing else {}
    if refused:
        raise ServeError(refusal(address, list(refused), "; ".join(dict.fromkeys(map(str, refused.values())))))
    for topic, reason in (set_topic_settings(admin, other) if other else {}).items():
        raise ServeError(f"Kafka at {address.bootstrap_servers} refuses to change the topic {topic.name}: {reason}")
    return bool(missing or other)
