"""Kafka sink, which writes records to one topic, keyed by cluster. A cluster's order is its partition's order.

The clusters of a process share the clients of an address, because each client has a thread and connections of its own.
This is the only module of the ingest that knows kafka-python.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
)
from kafka.producer.future import FutureRecordMetadata

from controller.contract.records import BadRecordError, Record, decode_record, encode_record
from ingest.errors import IngestError
from ingest.separation import KafkaIdentity
from ingest.sinks.sink import SinkUnavailableError
from outputs.kafka_connections import client_options, create_topics, error_in_words, existing_topics
from transport.address import KafkaAddress
from transport.kafka_login import host_and_port
from transport.topics import RequiredTopic, refusal, request_topic, stream_topics, unfit

_LOG = logging.getLogger("kontrast.ingest.kafka")

_REQUEST_TIMEOUT_MS = 10_000
_DELIVERY_TIMEOUT_MS = 15_000
_BLOCK_MS = 5_000
_MAX_RECORD_BYTES = 16 * 1024**2  # the broker's own limit applies, while a znode has up to 1 MB, more as JSON
_CLOSE_SECONDS = 1.0
_STOP_CHECK_SECONDS = 0.2
_LOOK_FOR_REQUESTS_SECONDS = 0.5  # the shortest interval, however many clusters ask
_CONNECT_AGAIN_SECONDS = 1.0  # clusters that wait for one connection learn of its failure within milliseconds
# Each watcher sends a heartbeat per second. In a topic of ten clusters, this is the last minute and a half.
_NEWEST_RECORDS = 1_000


class _Clients:
    """The producer of an address, the consumer of its topic of requests, and how many sinks use them.

    The producer is idempotent with acks=all. After a failure of any sink, a new producer sends every sink's records
    again, because the old producer may not have sent them.
    """

    def __init__(self, address: KafkaAddress) -> None:
        self.address = address
        self.users = 0
        self._lock = threading.Lock()
        self._identity: KafkaIdentity | None = None
        self._topics_exist = False
        self._producer: KafkaProducer | None = None
        self._requests: KafkaConsumer | None = None
        self._requested = 0
        self._look_at = 0.0
        self._failure: KafkaError | None = None
        self._connect_again_at = 0.0

    @contextmanager
    def _connecting(self) -> Iterator[None]:
        """Share a failed connection with the clusters that wait for the lock, so that they do not repeat it in turn."""
        if self._failure is not None and time.monotonic() < self._connect_again_at:
            raise self._failure
        try:
            yield
        except KafkaError as error:
            self._failure, self._connect_again_at = error, time.monotonic() + _CONNECT_AGAIN_SECONDS
            raise

    def identity(self) -> KafkaIdentity:
        """Return the identity that the brokers report. Raise KafkaError."""
        with self._lock:
            if self._identity is None:
                with self._connecting(), closing(self._admin()) as admin:
                    self._identity = identity_of(admin)
            return self._identity

    def ensure_topics(self, *, creates: bool) -> None:
        """Create the missing topics if `creates`. Raise IngestError for missing or unfit topics, and KafkaError."""
        with self._lock:
            if self._topics_exist:
                return
            with self._connecting(), closing(self._admin()) as admin:
                existing = existing_topics(admin, stream_topics(self.address))
                wrong = unfit(self.address, existing)
                if wrong.refused:
                    raise IngestError(wrong.refused)
                present = {found.topic for found in existing}
                missing = [topic for topic in stream_topics(self.address) if topic not in present]
                if missing and not creates:
                    raise IngestError(f"{self.address} does not exist. Name the stream that `kontrast stream` reads")
                _create_topics(self.address, admin, missing)
            self._topics_exist = True

    def _admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(
            **client_options(self.address),
            client_id="kontrast-watch",
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            bootstrap_timeout_ms=_BLOCK_MS,
        )

    def producer(self) -> KafkaProducer:
        """Return the producer. Raise KafkaError."""
        with self._lock:
            if self._producer is None:
                with self._connecting():
                    self._producer = KafkaProducer(
                        **client_options(self.address),
                        client_id="kontrast-watch",
                        acks="all",
                        enable_idempotence=True,
                        compression_type="gzip",
                        batch_size=1024**2,
                        max_request_size=_MAX_RECORD_BYTES,
                        request_timeout_ms=_REQUEST_TIMEOUT_MS,
                        delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
                        max_block_ms=_BLOCK_MS,
                        bootstrap_timeout_ms=_BLOCK_MS,
                        reconnect_backoff_max_ms=1000,
                    )
            return self._producer

    def drop(self, producer: KafkaProducer) -> None:
        """End a producer that failed, unless another sink has replaced it already."""
        with self._lock:
            if producer is not self._producer:
                return
            self._producer = None
        _end_at_once(producer)

    def requested(self) -> int:
        """Return how many complete reads were requested since the first sink opened. Raise KafkaError."""
        with self._lock:
            if self._requests is None:
                with self._connecting():
                    self._requests = self._listen_for_requests()
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + _LOOK_FOR_REQUESTS_SECONDS
                self._requested += sum(map(len, self._requests.poll(timeout_ms=0).values()))
            return self._requested

    def _listen_for_requests(self) -> KafkaConsumer:
        consumer = self.consumer()
        partition = TopicPartition(request_topic(self.address), 0)
        consumer.assign([partition])
        consumer.seek(partition, consumer.end_offsets([partition])[partition])
        return consumer

    def consumer(self) -> KafkaConsumer:
        """Return a new consumer. Raise KafkaError."""
        return KafkaConsumer(
            **client_options(self.address),
            client_id="kontrast-watch",
            enable_auto_commit=False,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            bootstrap_timeout_ms=_BLOCK_MS,
            reconnect_backoff_max_ms=1000,
        )

    def close(self) -> None:
        """End all clients. Every append has been acknowledged or has failed."""
        if self._producer is not None:
            self.drop(self._producer)
        if self._requests is not None:
            with suppress(KafkaError):
                self._requests.close(timeout_ms=int(_CLOSE_SECONDS * 1000))


_open_clients: dict[KafkaAddress, _Clients] = {}
_opening = threading.Lock()


class KafkaSink:
    """A Kafka topic, created with one partition if missing, and a second topic for requests of complete reads.

    Readers drop repeated places. `check` sees the identity of the brokers before any write and may raise IngestError.
    Without `creates_topics`, missing topics raise IngestError.
    """

    def __init__(
        self,
        address: KafkaAddress,
        cluster: str,
        stop: threading.Event,
        check: Callable[[KafkaIdentity], None],
        *,
        creates_topics: bool = True,
    ) -> None:
        self._address = address
        self._key = cluster.encode()
        self._stop = stop
        self._check = check
        self._creates_topics = creates_topics
        with _opening:
            self._clients = _open_clients.setdefault(address, _Clients(address))
            self._clients.users += 1
        self._seen = 0
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        self.complete_read_requested()  # the first complete read answers earlier requests

    def append(self, records: Sequence[Record]) -> None:
        """Return when all in-sync replicas of the topic have the records."""
        try:
            producer = self._clients.producer()
        except KafkaError as error:
            raise self._unavailable(error) from error
        try:
            sent = [
                producer.send(self._address.topic, key=self._key, value=encode_record(record)) for record in records
            ]
            for delivery in sent:
                self._wait_for(delivery)
        except (AuthorizationError, MessageSizeTooLargeError) as error:
            self._clients.drop(producer)
            raise IngestError(f"{self._address} refuses records, change the topic's settings: {error}") from error
        except KafkaError as error:
            self._clients.drop(producer)
            raise self._unavailable(error) from error

    def complete_read_requested(self) -> bool:
        """Return whether a reader asked for a complete read since the last call. Return False while Kafka is away."""
        try:
            before, self._seen = self._seen, self._clients.requested()
            return self._seen > before
        except KafkaError as error:
            _LOG.debug("%s: cannot find out whether a complete read is requested (%s)", self._address, error)
            return False

    def newest_generation(self) -> int:
        """Return the generation of the cluster's newest record among the topic's newest, or -1.

        Raise SinkUnavailableError.
        """
        return max((record.generation for record in self._newest_records()), default=-1)

    def newest_record(self) -> Record | None:
        """Return the cluster's last record near the topic's end, if any. Raise SinkUnavailableError."""
        return next(reversed(self._newest_records()), None)

    def _newest_records(self) -> list[Record]:
        try:
            consumer = self._clients.consumer()
        except KafkaError as error:
            raise self._unavailable(error) from error
        try:
            return list(self._read_newest(consumer))
        except KafkaError as error:
            raise self._unavailable(error) from error
        finally:
            with suppress(KafkaError):
                consumer.close(timeout_ms=int(_CLOSE_SECONDS * 1000))

    def _read_newest(self, consumer: KafkaConsumer) -> Iterator[Record]:
        topic, partitions = self._address.topic, self._partitions(consumer)
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        begins = consumer.beginning_offsets(partitions)
        for partition in partitions:
            consumer.seek(partition, max(begins[partition], ends[partition] - _NEWEST_RECORDS))
        give_up_at = time.monotonic() + _BLOCK_MS / 1000
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            if time.monotonic() > give_up_at or self._stop.is_set():
                raise KafkaTimeoutError(f"the newest records of {topic} did not come")
            for messages in consumer.poll(timeout_ms=200).values():
                for message in messages:
                    with suppress(BadRecordError):
                        if message.key == self._key and message.value is not None:
                            yield decode_record(message.value)

    def _partitions(self, consumer: KafkaConsumer) -> list[TopicPartition]:
        topic = self._address.topic
        return [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]

    def close(self) -> None:
        """End the clients with their last user."""
        with _opening:
            self._clients.users -= 1
            if self._clients.users == 0:
                del _open_clients[self._address]
                self._clients.close()

    def _connect(self) -> None:
        try:
            self._check(self._clients.identity())
            self._clients.ensure_topics(creates=self._creates_topics)
            self._clients.producer()
        except AuthorizationError as error:
            raise IngestError(f"{self._address} may not be used: {error}") from error
        except KafkaError as error:
            raise self._unavailable(error) from error

    def _wait_for(self, delivery: FutureRecordMetadata) -> None:
        """Wait for the acknowledgement. A forwarder that stops waits only briefly."""
        given_up_at: float | None = None
        while True:
            try:
                delivery.get(timeout=_STOP_CHECK_SECONDS)
                return
            except KafkaTimeoutError:
                if delivery.is_done:
                    raise
                if self._stop.is_set():
                    given_up_at = given_up_at or time.monotonic() + _CLOSE_SECONDS
                    if time.monotonic() > given_up_at:
                        raise

    def _unavailable(self, error: KafkaError) -> SinkUnavailableError:
        return SinkUnavailableError(f"{self._address}: {error_in_words(error)}")


def _end_at_once(producer: KafkaProducer) -> None:
    # A slow close would leave the sending thread at work, and its late records would come between newer records.
    producer._sender.force_close()
    with suppress(KafkaError):
        producer.close(timeout=_CLOSE_SECONDS)


def _create_topics(address: KafkaAddress, admin: KafkaAdminClient, missing: Sequence[RequiredTopic]) -> None:
    if not missing:
        return
    try:
        refused = create_topics(admin, missing)
    except IncompatibleBrokerVersion as error:  # before 2.4 the client must name the number of replicas
        raise IngestError(refusal(address, missing, str(error))) from error
    for refusing in refused.values():
        if refusing.retriable:
            raise refusing
    if refused:
        reasons = "; ".join(dict.fromkeys(map(str, refused.values())))
        raise IngestError(refusal(address, list(refused), reasons))
    for topic in missing:
        _LOG.info("created the topic %s with one partition", topic.name)


def identity_of(admin: KafkaAdminClient) -> KafkaIdentity:
    """Return the id and addresses that the brokers report. Raise KafkaError."""
    described = admin.describe_cluster()
    addresses = {broker["broker_id"]: host_and_port(broker["host"], broker["port"]) for broker in described["brokers"]}
    return KafkaIdentity(described.get("cluster_id"), addresses)
