"""Checks of `--check`, which connect to everything in a command's settings without starting the command."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cli.followed_outputs import without_messages_of_waiting
from cli.printing.standard_output import print_line
from cli.running import ExitCode, run_until_stopped
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from ingest.config import IngestConfig
from ingest.errors import IngestError
from streaming.config import StreamConfig
from streaming.errors import StreamError
from transport.address import Address, KafkaAddress
from transport.journal_reading import end_offset
from transport.listening import Listening
from transport.segments import JournalError
from transport.topics import RequiredTopic, stream_topics, unfit
from wording.sentences import counted

if TYPE_CHECKING:
    from dashboards.alerting.alertmanager import Alertmanager
    from dashboards.probe.config import KafkaLoginConfig, ProbeConfig
    from ingest.separation import KafkaIdentity

# Name of the checked object, and its check, which returns the finding or raises the fault.
Question: TypeAlias = "tuple[str, Callable[[threading.Event], str]]"

# Raises the fault of a Kafka cluster, which the cluster's own answers show.
Refusal: TypeAlias = "Callable[[KafkaIdentity, threading.Event], None]"

_LARGEST_ANSWER_BYTES = 1024**2  # an answer about brokers or a quorum has some 100 bytes for each node

_CLUSTERS_TO_COMPARE = 10  # of one ensemble

_OUR_ERRORS = (IngestError, StreamError, ServeError, JournalError, OSError)


def check(questions: Iterable[Question]) -> int:
    """Run all checks and print each answer. Return the exit code."""
    failed: list[str] = []

    def run(stop: threading.Event) -> None:
        for what, ask in questions:
            if stop.is_set():
                return
            try:
                print_line(f"ok     {what}: {ask(stop)}")
            except _OUR_ERRORS as error:
                failed.append(what)
                print_line(f"wrong  {what}: {error}")

    code = run_until_stopped({"check": run})
    return code or (ExitCode.UNAVAILABLE if failed else ExitCode.OK)


def of_watch(configs: Sequence[IngestConfig]) -> Iterator[Question]:
    """Return the checks of everything that `kontrast watch` connects to."""
    for config in configs:
        yield f"{config.cluster}: ZooKeeper {config.zookeeper}", partial(_ask_zookeeper, config)
        if config.ensemble_interval_seconds is not None:
            yield f"{config.cluster}: questions to {config.servers}", partial(_ask_ensemble, config)
        yield f"{config.cluster}: stream {config.to}", partial(_ask_stream_to_write, config)
        if config.election_zookeeper is not None:
            yield f"{config.cluster}: election's ZooKeeper {config.election_zookeeper}", partial(_ask_election, config)
        if config.maintenance_file is not None:
            yield (
                f"{config.cluster}: maintenance file {config.maintenance_file}",
                partial(_ask_windows, config.maintenance_file),
            )
    for servers in dict.fromkeys(config.servers for config in configs):
        same = [config for config in configs if config.servers == servers]
        if len(same) >= _CLUSTERS_TO_COMPARE:
            yield f"connections to {servers}", partial(_ask_most_connections, same)
    for listening in {config.listening: None for config in configs if config.listening is not None}:
        yield f"metrics at {listening.listen}", partial(_ask_port, listening)


def of_stream(
    config: StreamConfig,
    watched_into: Callable[[Address, float], Sequence[IngestConfig]] = lambda _stream, _timeout_seconds: (),
) -> Iterator[Question]:
    """Return the checks of everything that `kontrast stream` connects to. Only configured clusters are checked."""
    from streaming.java.installation import find_java
    from streaming.job import check_settings
    from streaming.sinks.sink import output_topics
    from streaming.spark.needs import check_jars, check_libraries

    yield "Java", lambda _: str(find_java())
    yield "jars", lambda _: check_jars(config)
    yield "native libraries", lambda _: check_libraries(config)
    timeout_seconds = config.connect_timeout_seconds
    refuse = _refuse_watched(watched_into(config.source, timeout_seconds), must_reach=False)
    yield f"source {config.source}", partial(_ask_to_read, config.source, timeout_seconds, refuse)
    if isinstance(config.sink, KafkaAddress):
        refuse = _refuse_watched(watched_into(config.sink, timeout_seconds), must_reach=False)
        yield (
            f"sink {config.sink}",
            partial(_ask_kafka, config.sink, output_topics(config.sink), timeout_seconds, refuse=refuse),
        )
    else:
        yield f"sink {config.sink}", partial(_ask_directory, config.sink.directory)
    if config.checkpoint_uri is None:
        yield f"checkpoint {config.checkpoint}", partial(_ask_directory, config.checkpoint_directory)
    yield "checkpoint's settings", lambda _: check_settings(config)


def of_serve(
    config: ServeConfig, *, outputs_exist: bool = True, watched: Sequence[IngestConfig] = ()
) -> Iterator[Question]:
    """Return the checks of everything that `kontrast serve` connects to.

    Outputs may be missing if the job starts together with `kontrast serve`. The ZooKeeper of a watched cluster names
    the brokers to ask.
    """
    from dashboards.alerting.alertmanager import Alertmanager

    for source in config.sources:
        yield f"outputs {source}", partial(_ask_outputs, source, they_exist=outputs_exist)
    yield f"pages at {config.listen}", partial(_ask_port, config.listening)
    for url in config.alertmanager.urls:
        yield f"Alertmanager {url}", partial(_ask_alertmanager, Alertmanager(url, config.alertmanager))
    for cluster, login in (config.probe.clusters or {"probe": config.probe}).items():
        if quorum := login.kafka_quorum:
            yield f"{cluster}: quorum {','.join(quorum)}", partial(_ask_quorum, login, config.probe.timeout_seconds)
    if config.probe.brokers:
        for each in watched:
            yield f"{each.cluster}: brokers to compare", partial(_ask_brokers, each, config.probe)


def _ask_zookeeper(config: IngestConfig, stop: threading.Event) -> str:
    from cli.sources.zookeeper import where_clusters_are
    from ingest.complete_read import read_once

    read = read_once(config, stop)
    if read.forbidden:
        paths = sorted(read.forbidden)
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        raise IngestError(f"the ACL of {paths[0]}{more} denies read access to this session")
    if not read.values:
        raise IngestError(where_clusters_are(config, stop))
    brokers = sum(path.startswith("/brokers/ids/") for path in read.values)
    return f"{counted(brokers, 'broker')}, {counted(len(read.values), 'znode')}"


def _ask_ensemble(config: IngestConfig, _: threading.Event) -> str:
    """Ask each server for its numbers and sessions. A refusal is no fault, because the watcher works without them."""
    from ingest.zookeeper.ensemble import EnsembleQuestions

    servers, port = EnsembleQuestions(config).ask_once(), config.zookeeper_admin_port
    for server in servers:
        if server.trouble and not server.refused:
            raise IngestError(f"{server.address} {server.trouble}")
        if port is not None and "mntr" in server.refused:
            raise IngestError(f"{server.address} does not allow mntr, and has no AdminServer at port {port}")
    refused = sorted({word for server in servers for word in server.refused})
    return "; refused: ".join(filter(None, (f"{counted(len(servers), 'server')} answered", ", ".join(refused))))


def _ask_most_connections(same: Sequence[IngestConfig], _: threading.Event) -> str:
    """Compare the clusters of an ensemble with the connections of one address that any one of its servers accepts."""
    from ingest.zookeeper.ensemble import named_servers
    from ingest.zookeeper.four_letter_words import most_connections
    from ingest.zookeeper.restorable import tls_of

    tls, count = tuple(tls_of(same[0]).items()), len(same)
    allowed = {server: most_connections(server, tls) for server in named_servers(same[0].servers)}
    server, least = min(allowed.items(), key=lambda each: each[1] or math.inf)
    if 0 < least <= count:
        raise IngestError(
            f"{count} clusters need a connection each, and questions one more, but {server} accepts {least} of an "
            f"address. Set maxClientCnxns to {2 * count} at each server, or watch some clusters from another host"
        )
    return f"{count} of {least or 'any number'} that a server accepts"


def _ask_election(config: IngestConfig, stop: threading.Event) -> str:
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    from ingest.separation import refuse_watched_ensemble
    from ingest.zookeeper.restorable import RestorableClient, login_of, tls_of

    election = config.election
    servers = election.servers
    client = RestorableClient(hosts=servers, login=login_of(election), **tls_of(election))
    try:
        client.start(timeout=config.connect_timeout_seconds)
        if config.election_on_watched:
            return "it answers"
        refuse_watched_ensemble(config, client, stop)
    except KazooTimeoutError as error:
        seconds = f"{config.connect_timeout_seconds:g} s"
        why = client.without_ticket or f"ZooKeeper at {servers} could not be reached within {seconds}"
        raise IngestError(why) from error
    except KazooException as error:
        why = str(error) or type(error).__name__
        raise IngestError(f"ZooKeeper at {servers} was lost before it was known: {why}") from error
    finally:
        client.stop()
        client.close()
    return "it answers, and is not the watched one"


def _ask_stream_to_write(config: IngestConfig, stop: threading.Event) -> str:
    to = config.to
    if not isinstance(to, KafkaAddress):
        return _ask_directory(to.directory, stop)
    return _ask_kafka(to, stream_topics(to), config.connect_timeout_seconds, stop, refuse=_refuse_watched([config]))


def _refuse_watched(configs: Sequence[IngestConfig], *, must_reach: bool = True) -> Refusal:
    """Refuse a Kafka that is a watched cluster.

    Without `must_reach`, an unreachable ZooKeeper is no fault, because the job's machine may have no way to it, and the
    job's first batch compares again.
    """

    def refuse(identity: KafkaIdentity, stop: threading.Event) -> None:
        from ingest.separation import WatchedClusterError, refuse_watched_cluster

        for config in configs:
            try:
                refuse_watched_cluster(config, identity, stop)
            except WatchedClusterError:
                raise
            except IngestError:
                if must_reach:
                    raise

    return refuse


def _ask_to_read(source: Address, timeout_seconds: float, refuse: Refusal, stop: threading.Event) -> str:
    if isinstance(source, KafkaAddress):
        topics = stream_topics(source)
        return _ask_kafka(source, topics, timeout_seconds, stop, maker="`kontrast watch`", refuse=refuse)
    directory = source.directory
    end = end_offset(directory)
    return f"{end:,} bytes were written" if directory.exists() else "missing, the job waits for `kontrast watch`"


def _ask_directory(directory: Path, _: threading.Event) -> str:
    existing = directory.expanduser().absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise OSError(f"{existing} is no directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OSError(f"{existing} may not be written by this user")
    return "may be written" if existing == directory.absolute() else f"will be made in {existing}"


def _ask_windows(file: Path, _: threading.Event) -> str:
    from ingest.maintenance import read_windows

    return counted(len(read_windows(file)), "window")


def _ask_port(listening: Listening, _: threading.Event) -> str:
    from starlette.applications import Starlette

    from dashboards.serving.connections import HttpFigures
    from dashboards.serving.http import HttpServer

    HttpServer(Starlette(), listening, HttpFigures()).close()
    return "the port is free"


def _ask_kafka(
    address: KafkaAddress,
    topics: Sequence[RequiredTopic],
    timeout_seconds: float,
    stop: threading.Event,
    *,
    maker: str = "this command",
    refuse: Refusal,
) -> str:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    from ingest.sinks.kafka_sink import identity_of
    from outputs.kafka_connections import client_options, error_in_words, existing_topics

    timeout_ms = int(timeout_seconds * 1000)
    try:
        admin = KafkaAdminClient(
            **client_options(address),
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
        )
        try:
            refuse(identity_of(admin), stop)
            existing = existing_topics(admin, topics)
        finally:
            admin.close()
    except KafkaError as error:
        raise OSError(f"Kafka at {address.bootstrap_servers} does not answer: {error_in_words(error)}") from error
    wrong = unfit(address, existing)
    if wrong.refused:
        raise OSError(wrong.refused)
    present = {found.topic for found in existing}
    missing = [topic.name for topic in topics if topic not in present]
    found = f"{maker} makes {', '.join(missing)} at its start" if missing else "it has the topics"
    return "; ".join(filter(None, ("it answers", found, wrong.doubted)))


def _ask_outputs(address: Address, _: threading.Event, *, they_exist: bool) -> str:
    from outputs import SourceDownError, open_outputs
    from outputs.reading import FOLLOWED_OUTPUTS

    source = open_outputs(address, FOLLOWED_OUTPUTS)
    try:
        with without_messages_of_waiting():
            source.poll()
    except SourceDownError as error:
        raise ServeError(str(error)) from error
    finally:
        source.close()
    if len(source.missing) == len(FOLLOWED_OUTPUTS):
        if not they_exist:
            return "missing, `kontrast stream` creates them"
        raise ServeError("missing. Check the address, and run `kontrast stream`")
    return "they can be read"


def _ask_alertmanager(alertmanager: Alertmanager, _: threading.Event) -> str:
    from dashboards.alerting.alertmanager import NoAlertmanagerError, RefusedError

    try:
        return f"it has {counted(len(alertmanager.alerts()), 'alert')} of Kontrast's"
    except (NoAlertmanagerError, RefusedError) as error:
        raise ServeError(str(error)) from error


def _ask_brokers(config: IngestConfig, probe: ProbeConfig, stop: threading.Event) -> str:
    from kafka.protocol.metadata import MetadataRequest

    from controller.restore.stored_context import new_context
    from controller.step import steps
    from dashboards.probe.broker import ProbeError, choose_endpoint
    from ingest.complete_read import read_once

    read, login = read_once(config, stop, only_topics=()), probe.login_of(config.cluster)
    registered = steps(new_context(config.cluster), read.records(config.cluster)).context.header.brokers
    try:
        addresses = [str(choose_endpoint(broker.endpoints, login)) for broker in registered.values()]
    except ProbeError as error:
        raise ServeError(str(error)) from error
    request = partial(MetadataRequest, topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False)
    return _ask_nodes(addresses, request, login, probe.timeout_seconds)


def _ask_quorum(login: KafkaLoginConfig, timeout_seconds: float, _: threading.Event) -> str:
    from kafka.protocol.admin import DescribeQuorumRequest

    return _ask_nodes(login.kafka_quorum, partial(DescribeQuorumRequest, topics=[]), login, timeout_seconds)


def _ask_nodes(
    addresses: Sequence[str], request: Callable[[], object], login: KafkaLoginConfig, timeout_seconds: float
) -> str:
    """Log in to each node and ask it. Raise ServeError for the first node that does not answer.

    Each node gets a request of its own, because a request keeps the version of the first release that it was sent to.
    """
    from outputs.kafka_node import KafkaNode, NodeError

    for address in addresses:
        node = KafkaNode(
            address,
            login.node_login(),
            timeout_seconds=timeout_seconds,
            largest_answer_bytes=_LARGEST_ANSWER_BYTES,
            client_id="kontrast-check",
        )
        try:
            node.ask(request())
        except NodeError as error:
            raise ServeError(f"{address} does not answer: {error}") from error
        finally:
            node.close()
    return f"{counted(len(addresses), 'node')} answered"
