"""Reader of outputs from Kafka topics, one topic per output, named PREFIX.output."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from outputs.kafka_connections import client_options, error_in_words
from outputs.source import Chunk, OutputsSource, SourceDownError
from transport.address import KafkaAddress
from transport.topics import output_topic

_logger = logging.getLogger("kontrast.outputs")

_POLL_MS = 200
_POLL_ROWS = 5000
_BOOTSTRAP_MS = 5000
_LOOK_SECONDS = 5.0  # for new topics and partitions, and whether the brokers still answer


class KafkaSource(OutputsSource):
    """Reader of topics from their beginning. A missing topic has no rows.

    `late` outputs are not read before all others were. `topics` maps topics to outputs if their names are not
    PREFIX.output.
    """

    def __init__(
        self,
        address: KafkaAddress,
        wanted: Sequence[str],
        topics: Mapping[str, str] | None = None,
        late: Collection[str] = (),
    ) -> None:
        self._address = address
        self.wanted = tuple(wanted)
        self._early = frozenset(wanted).difference(late)
        self._topics = topics or {output_topic(address, output): output for output in wanted}
        self._consumer: KafkaConsumer | None = None
        self._next_look = 0.0
        self._live_from: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._connected_once = False
        self._dropped: set[TopicPartition] = set()
        self._next_offsets: dict[TopicPartition, int] = {}
        self.missing: tuple[str, ...] = ()

    def has_read(self, outputs: Collection[str]) -> bool:
        """Return whether all rows of these outputs that existed at the first poll have been returned."""
        return self._connected_once and all(
            self._positions.get(partition, 0) >= offset
            for partition, offset in self._live_from.items()
            if self._topics[partition.topic] in outputs
        )

    def lacking(self, ends: Mapping[str, tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG002 (of journals)
        """Return no output, because the job does not learn the ends of topics."""
        return ()

    def poll(self) -> Sequence[Chunk]:
        """Wait a moment for new rows and return them."""
        try:
            if self._consumer is None:
                self._consumer = self._connect()
            if time.monotonic() >= self._next_look:
                self._look(self._consumer)
            return self._read(self._consumer) if self._live_from else ()
        except (KafkaError, OSError) as error:
            raise SourceDownError(
                f"Kafka at {self._address.bootstrap_servers} does not answer: {error_in_words(error)}"
            ) from error

    def close(self) -> None:
        """Close the connections to the brokers."""
        if self._consumer is not None:
            self._consumer.close()

    def _connect(self) -> KafkaConsumer:
        return KafkaConsumer(
            **client_options(self._address),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
            reconnect_backoff_max_ms=2000,
            # Checking the sums in Python took a third of a start. The job's rows are gzip, which has a sum of its own.
            check_crcs=False,
        )

    def _look(self, consumer: KafkaConsumer) -> None:
        """Assign new topics. The first look determines which rows existed before."""
        found = {
            TopicPartition(topic, partition)
            for topic in self._topics
            for partition in consumer.partitions_for_topic(topic)
        }
        self._tell_missing({partition.topic for partition in found})
        if found:
            ends = consumer.end_offsets(sorted(found), timeout_ms=_BOOTSTRAP_MS)
            begins = consumer.beginning_offsets(sorted(found), timeout_ms=_BOOTSTRAP_MS)
            for partition in found - self._live_from.keys():
                self._live_from[partition] = 0 if self._connected_once else ends[partition]
            # A compacted topic keeps its first offset. If the first offset moves, the topic has dropped current rows.
            self._dropped |= {partition for partition in found if begins[partition] > self._positions.get(partition, 0)}
        self._connected_once = True
        self._next_look = time.monotonic() + _LOOK_SECONDS

    def _tell_missing(self, present: set[str]) -> None:
        missing = [topic for topic in self._topics if topic not in present]
        if missing and not self._connected_once:
            _logger.warning(
                "Kafka at %s has no topic %s yet. Waiting for `kontrast stream` to create the missing topics. "
                "Check the address if it runs",
                self._address.bootstrap_servers,
                ", ".join(missing),
            )
        self.missing = tuple(self._topics[topic] for topic in missing)

    def _read(self, consumer: KafkaConsumer) -> list[Chunk]:
        followed = set(self._live_from)
        if not self.has_read(self._early):
            followed = {each for each in followed if self._topics[each.topic] in self._early}
        if followed != consumer.assignment():
            consumer.assign(sorted(followed))  # which keeps the positions of those that it had
        # Ask for positions before the poll, because a failure after the poll would lose the polled rows.
        self._positions |= {
            partition: consumer.position(partition, timeout_ms=_BOOTSTRAP_MS) or 0 for partition in followed
        }
        chunks: list[Chunk] = []
        polled = consumer.poll(timeout_ms=_POLL_MS, max_records=_POLL_ROWS)
        for partition, messages in polled.items():
            live_from, thinned = self._live_from[partition], self._is_thinned(partition, messages)
            for live in (False, True):
                # A compacted topic's tombstone has no value. Kontrast skips tombstones, because its own rows report
                # removals.
                lines = [
                    message.value
                    for message in messages
                    if message.value is not None and (message.offset >= live_from) is live
                ]
                if lines:
                    after_gap = partition in self._dropped
                    self._dropped.discard(partition)
                    output = self._topics[partition.topic]
                    chunk = Chunk(output=output, lines=lines, live=live, after_gap=after_gap, thinned=thinned)
                    chunks.append(chunk)
        return sorted(chunks, key=lambda chunk: self.wanted.index(chunk.output))

    def _is_thinned(self, partition: TopicPartition, messages: Sequence[Any]) -> bool:
        """Return whether offsets before or between these messages are missing, because compaction leaves gaps."""
        following = self._next_offsets.get(partition, 0)
        self._next_offsets[partition] = messages[-1].offset + 1
        return bool(messages[-1].offset + 1 - following != len(messages))
