"""Make the job's Kafka topics before the first batch, or refuse with the command that makes or mends them.

The brokers are asked by the client that Spark itself uses.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.kafka_options import java_options
from streaming.separation import StreamBroker
from streaming.sinks.sink import output_topics
from streaming.spark.failure import no_login
from transport.address import KafkaAddress
from transport.kafka_login import host_and_port
from transport.topics import PARTITIONS, SETTINGS, ExistingTopic, RequiredTopic, refusal, stream_topics, unfit

logger = logging.getLogger("kontrast.streaming")

_LOOK_SECONDS = 0.05
_ALREADY_THERE = "TopicExistsException"
_NO_TOPIC = "UnknownTopicOrPartitionException"
_NO_ANSWER = "TimeoutException"
# With a look each 2 s and 2 s for the connection, the log names a silent Kafka within 10 s.
_ASK_MS = 4_000

_Java = Any  # py4j's objects, without types


def prepare_topics(session: SparkSession, config: StreamConfig, stop: threading.Event) -> tuple[StreamBroker, ...]:
    """Create the missing output topics, report missing source topics, and return the asked brokers.

    Raise StreamError if a topic cannot be created, or would lose rows.
    """
    asked: list[StreamBroker] = []
    if isinstance(config.source, KafkaAddress):
        with _Brokers(session, config.source, config.connect_timeout_seconds, stop) as brokers:
            asked += brokers.themselves()
            missing = brokers.missing(stream_topics(config.source))
            brokers.refuse_unfit(stream_topics(config.source))
            if missing:
                names = " and ".join(topic.name for topic in missing)
                logger.warning("%s: topic %s does not exist yet. `kontrast watch` creates it", config.source, names)
    if isinstance(config.sink, KafkaAddress):
        with _Brokers(session, config.sink, config.connect_timeout_seconds, stop) as brokers:
            asked += brokers.themselves()
            brokers.refuse_unfit(output_topics(config.sink))
            brokers.create(brokers.missing(output_topics(config.sink)))
    return tuple(asked)


class AskedKafka:
    """Kafka of an address while the job runs. One thread asks its brokers by one connection."""

    def __init__(self, session: SparkSession, address: KafkaAddress) -> None:
        self._java: _Java = session._jvm
        self._topic = address.topic
        self._admin = _admin(session._jvm, address, _ASK_MS)

    def answers(self) -> bool:
        """Return whether a broker answers. A half-open connection, or a broker that stands still, does not."""
        try:
            self._admin.describeCluster().clusterId().get()
        except Py4JJavaError as error:
            return _NO_ANSWER not in str(error.java_exception)
        except (Py4JError, ConnectionError):  # Java is ending
            return True
        return True

    def has_topic(self) -> bool | None:
        """Return whether the address's topic exists, or None without the brokers' answer."""
        names = self._java.java.util.ArrayList()
        names.add(self._topic)
        try:
            self._admin.describeTopics(names).allTopicNames().get()
        except Py4JJavaError as error:
            return False if _NO_TOPIC in str(error.java_exception) else None
        except (Py4JError, ConnectionError):  # Java is ending
            return None
        return True

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(Py4JError, ConnectionError):
            self._admin.close(self._java.java.time.Duration.ZERO)


class _UnansweredError(Exception):
    """The job was asked to stop before the brokers answered."""


class _Brokers:
    """A connection to the brokers of an address, for questions about topics."""

    def __init__(
        self, session: SparkSession, address: KafkaAddress, timeout_seconds: float, stop: threading.Event
    ) -> None:
        self._java: _Java = session._jvm
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._stop = stop

    def __enter__(self) -> _Brokers:
        self._admin = _admin(self._java, self._address, int(self._timeout_seconds * 1000))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        self._admin.close(self._java.java.time.Duration.ZERO)
        if isinstance(error, Py4JJavaError):
            raise StreamError(
                f"Kafka at {self._address.bootstrap_servers} does not list its topics: {_reason(error)}"
            ) from error
        return isinstance(error, _UnansweredError)

    def themselves(self) -> list[StreamBroker]:
        """Return the brokers that the cluster reports."""
        described = self._admin.describeCluster()
        cluster_id = self._answer(described.clusterId()) or ""
        nodes = self._answer(described.nodes()).toArray()
        return [
            StreamBroker(node.id(), host_and_port(node.host(), node.port()), str(self._address), cluster_id)
            for node in nodes
        ]

    def missing(self, topics: Sequence[RequiredTopic]) -> list[RequiredTopic]:
        """Return the topics that do not exist, or that this client may not see."""
        present = self._answer(self._admin.listTopics().names())
        return [topic for topic in topics if not present.contains(topic.name)]

    def refuse_unfit(self, topics: Sequence[RequiredTopic]) -> None:
        """Raise StreamError if an existing topic loses rows or their order."""
        missing = self.missing(topics)
        wrong = unfit(self._address, self._existing([topic for topic in topics if topic not in missing]))
        if wrong.refused:
            raise StreamError(wrong.refused)
        if wrong.doubted:
            logger.warning("%s", wrong.doubted)

    def _existing(self, topics: Sequence[RequiredTopic]) -> list[ExistingTopic]:
        if not topics:
            return []
        config = self._java.org.apache.kafka.common.config.ConfigResource
        names, resources = self._java.java.util.ArrayList(), self._java.java.util.ArrayList()
        for topic in topics:
            names.add(topic.name)
            resources.add(config(config.Type.TOPIC, topic.name))
        described = self._answer(self._admin.describeTopics(names).allTopicNames())
        settings = self._admin.describeConfigs(resources).values()
        return [
            ExistingTopic(topic, described.get(topic.name).partitions().size(), self._settings(settings.get(resource)))
            for topic, resource in zip(topics, resources, strict=True)
        ]

    def _settings(self, future: _Java) -> dict[str, str]:
        try:
            found = self._answer(future)
        except Py4JJavaError as error:  # an ACL, or brokers before 0.11
            logger.debug("%s: a topic's settings are not known: %s", self._address, _reason(error))
            return {}
        entries = {name: found.get(name) for name in SETTINGS}
        return {name: entry.value() for name, entry in entries.items() if entry is not None}

    def create(self, topics: Sequence[RequiredTopic]) -> None:
        """Create the topics. Raise StreamError with the names of all rejected topics."""
        if not topics:
            return
        util = self._java.java.util
        wanted = util.ArrayList()
        for topic in topics:
            new = self._java.org.apache.kafka.clients.admin.NewTopic(
                topic.name, util.Optional.of(PARTITIONS), util.Optional.empty()
            )
            settings = util.HashMap()
            for name, value in topic.settings.items():
                settings.put(name, value)
            wanted.add(new.configs(settings))
        answers = self._admin.createTopics(wanted).values()
        refused: dict[RequiredTopic, str] = {}
        for topic in topics:
            try:
                self._answer(answers.get(topic.name))
            except Py4JJavaError as error:
                if _ALREADY_THERE not in str(error.java_exception):
                    refused[topic] = _reason(error)
        if refused:
            raise StreamError(refusal(self._address, list(refused), "; ".join(dict.fromkeys(refused.values()))))
        logger.info("created the topics %s", ", ".join(topic.name for topic in topics))

    def _answer(self, future: _Java) -> _Java:
        while not future.isDone():
            if self._stop.wait(_LOOK_SECONDS):
                raise _UnansweredError
        return future.get()


def _admin(java: _Java, address: KafkaAddress, timeout_ms: int) -> _Java:
    """Return a client of Kafka's that asks brokers about topics. Raise StreamError if Spark was given no connector."""
    admin = java.org.apache.kafka.clients.admin.Admin
    if isinstance(admin, JavaPackage):  # py4j's word for a class that is not there
        raise StreamError(
            "Spark has no connector of Kafka. Give spark-submit --jars with the files of dist/jars.txt, or --packages, "
            "as docs/how-to/spark-cluster.md says"
        )
    settings = java.java.util.Properties()
    for name, value in java_options(address).items():
        settings.put(name, value)
    settings.put("default.api.timeout.ms", str(timeout_ms))
    settings.put("request.timeout.ms", str(timeout_ms))
    return admin.create(settings)


def _reason(error: Py4JJavaError) -> str:
    """Return Kafka's own sentence, without the names of Java's exceptions."""
    throwable = error.java_exception
    cause = throwable.getCause() or throwable
    return no_login(str(cause.getMessage())) or f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
