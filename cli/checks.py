"""`--check`: whether a command could start: everything that its settings name is reached, and nothing is started.

Here belong the questions to each thing that a setting can name. Whether a setting may be is its dataclass's business,
and was decided before.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from cli.running import ExitCode, run_until_stopped
from controller.alerts.conditions import counted
from dashboards.config import ServeConfig
from dashboards.errors import ServeError
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import IngestError
from streaming.config import StreamConfig
from streaming.errors import StreamError
from transport.address import Address, KafkaAddress
from transport.journal import JournalError, end_offset
from transport.listening import Listening
from transport.topics import Topic, stream_topics

if TYPE_CHECKING:
    from dashboards.alerting.alertmanager import Alertmanager

# What is looked at, and the question, which gives what was found or raises what is wrong with it.
Question: TypeAlias = "tuple[str, Callable[[threading.Event], str]]"

_OUR_ERRORS = (IngestError, StreamError, ServeError, JournalError, OSError)


def check(questions: Sequence[Question]) -> ExitCode:
    """Ask all of them and print each answer; the exit code says whether all is well."""
    failed: list[str] = []

    def run(stop: threading.Event) -> None:
        for what, ask in questions:
            if stop.is_set():
                return
            try:
                click.echo(f"ok     {what}: {ask(stop)}")
            except _OUR_ERRORS as error:
                failed.append(what)
                click.echo(f"wrong  {what}: {error}")

    code = run_until_stopped({"check": run})
    return code or (ExitCode.UNAVAILABLE if failed else ExitCode.OK)


def of_watch(configs: Sequence[IngestConfig]) -> Iterator[Question]:
    """What `kontrast watch` needs."""
    for config in configs:
        yield f"{config.cluster}: ZooKeeper {config.zookeeper}", _ask_zookeeper(config)
        yield f"{config.cluster}: stream {config.to}", _ask_stream_to_write(config.to, config.connect_timeout_seconds)
        if config.election_zookeeper is not None:
            election = replace(config, zookeeper=config.election_zookeeper, election_zookeeper=None)
            yield f"{config.cluster}: election's ZooKeeper {config.election_zookeeper}", _reach_zookeeper(election)
        if config.maintenance_file is not None:
            yield f"{config.cluster}: maintenance file {config.maintenance_file}", _ask_windows(config.maintenance_file)
    for listening in {config.listening: None for config in configs if config.listening is not None}:
        yield f"metrics at {listening.listen}", _ask_port(listening)


def of_stream(config: StreamConfig) -> Iterator[Question]:
    """What `kontrast stream` needs."""
    from streaming.java import find_java
    from streaming.job import check_settings
    from streaming.sinks import output_topics

    yield "Java", lambda _: str(find_java())
    yield f"source {config.source}", _ask_to_read(config.source, config.connect_timeout_seconds)
    if isinstance(config.sink, KafkaAddress):
        yield f"sink {config.sink}", _ask_kafka(config.sink, output_topics(config.sink), config.connect_timeout_seconds)
    else:
        yield f"sink {config.sink}", _ask_directory(config.sink.directory)
    yield f"checkpoint {config.checkpoint}", _ask_directory(config.checkpoint_directory)
    yield "checkpoint's settings", lambda _: check_settings(config)


def of_serve(config: ServeConfig) -> Iterator[Question]:
    """What `kontrast serve` needs."""
    from dashboards.alerting.alertmanager import Alertmanager

    yield f"outputs {config.source}", _ask_outputs(config)
    yield f"pages at {config.listen}", _ask_port(config.listening)
    for url in config.alertmanager.urls:
        yield f"Alertmanager {url}", _ask_alertmanager(Alertmanager(url, config.alertmanager))


def _ask_zookeeper(config: IngestConfig) -> Callable[[threading.Event], str]:
    def ask(stop: threading.Event) -> str:
        from ingest.snapshot import find_chroots, read_once

        read = read_once(config, stop)
        if read.forbidden:
            paths = sorted(read.forbidden)
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            raise IngestError(f"{paths[0]}{more} may not be read: the ACL does not let this session in")
        if not read.values:
            others = [f"{config.servers}{chroot.rstrip('/')}" for chroot in find_chroots(config, stop)]
            there_is = f"there is one at {' and at '.join(others)}" if others else "check the address"
            raise IngestError(f"there is nothing of a Kafka cluster: {there_is}")
        brokers = sum(path.startswith("/brokers/ids/") for path in read.values)
        return f"{counted(brokers, 'broker')}, {counted(len(read.values), 'znode')}"

    return ask


def _reach_zookeeper(config: ZooKeeperConfig) -> Callable[[threading.Event], str]:
    def ask(stop: threading.Event) -> str:
        from ingest.snapshot import read_registered_brokers

        read_registered_brokers(config, stop)
        return "it answers"

    return ask


def _ask_stream_to_write(to: Address, timeout_seconds: float) -> Callable[[threading.Event], str]:
    if isinstance(to, KafkaAddress):
        return _ask_kafka(to, stream_topics(to), timeout_seconds)
    return _ask_directory(to.directory)


def _ask_to_read(source: Address, timeout_seconds: float) -> Callable[[threading.Event], str]:
    if isinstance(source, KafkaAddress):
        return _ask_kafka(source, stream_topics(source), timeout_seconds, maker="`kontrast watch`")
    directory = source.directory

    def ask(_: threading.Event) -> str:
        end = end_offset(directory)
        return f"{end:,} bytes were written" if directory.exists() else "not there yet: it waits for `kontrast watch`"

    return ask


def _ask_directory(directory: Path) -> Callable[[threading.Event], str]:
    def ask(_: threading.Event) -> str:
        existing = directory.expanduser().absolute()
        while not existing.exists():
            existing = existing.parent
        if not existing.is_dir():
            raise OSError(f"{existing} is no directory")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise OSError(f"{existing} may not be written by this user")
        return "may be written" if existing == directory.absolute() else f"will be made in {existing}"

    return ask


def _ask_windows(file: Path) -> Callable[[threading.Event], str]:
    def ask(_: threading.Event) -> str:
        from ingest.maintenance import read_windows

        return counted(len(read_windows(file)), "window")

    return ask


def _ask_port(listening: Listening) -> Callable[[threading.Event], str]:
    def ask(_: threading.Event) -> str:
        from starlette.applications import Starlette

        from dashboards.connections import HttpFigures
        from dashboards.http import HttpServer

        HttpServer(Starlette(), listening, HttpFigures()).close()
        return "the port is free"

    return ask


def _ask_kafka(
    address: KafkaAddress, topics: Sequence[Topic], timeout_seconds: float, maker: str = "this command"
) -> Callable[[threading.Event], str]:
    def ask(_: threading.Event) -> str:
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError

        timeout_ms = int(timeout_seconds * 1000)
        try:
            admin = KafkaAdminClient(
                bootstrap_servers=address.bootstrap_servers.split(","),
                request_timeout_ms=timeout_ms,
                bootstrap_timeout_ms=timeout_ms,
            )
            try:
                present = set(admin.list_topics())
            finally:
                admin.close()
        except KafkaError as error:
            raise OSError(f"Kafka at {address.bootstrap_servers} does not answer: {error}") from error
        missing = [topic.name for topic in topics if topic.name not in present]
        return f"it answers; {maker} makes {', '.join(missing)} at its start" if missing else "it has the topics"

    return ask


def _ask_outputs(config: ServeConfig) -> Callable[[threading.Event], str]:
    def ask(_: threading.Event) -> str:
        from dashboards.reading import FOLLOWED_OUTPUTS
        from outputs import SourceDownError, open_outputs

        source = open_outputs(config.source, FOLLOWED_OUTPUTS)
        try:
            source.poll()
        except SourceDownError as error:
            raise ServeError(str(error)) from error
        finally:
            source.close()
        if len(source.missing) == len(FOLLOWED_OUTPUTS):
            raise ServeError("there are none: check the address, and that `kontrast stream` has run")
        return "they can be read"

    return ask


def _ask_alertmanager(alertmanager: Alertmanager) -> Callable[[threading.Event], str]:
    from dashboards.alerting.alertmanager import RefusedError, UnreachableError

    def ask(_: threading.Event) -> str:
        try:
            return f"it has {counted(len(alertmanager.alerts()), 'alert')} of Kontrast's"
        except (UnreachableError, RefusedError) as error:
            raise ServeError(str(error)) from error

    return ask
