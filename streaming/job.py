"""The job, from the source through the replica to the sink, with its checks, start and end."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controller.contract.decoding import UndecodableError
from streaming.checkpoint.damage import damage_behind
from streaming.checkpoint.directory import (
    BEGINS_AGAIN,
    LOCK_WAIT_SECONDS,
    REBUILDS,
    SHUFFLE_PARTITIONS,
    Checkpoint,
    Fence,
    Settings,
    check_stored,
    damaged_settings,
    settings_of,
    why_begin_again,
)
from streaming.checkpoint.files import (
    CheckpointFiles,
    FruitlessStarts,
    drop_torn,
    fruitless_starts,
    require_checksums,
    source_of,
)
from streaming.checkpoint.place import HadoopPath, Place, hadoop_path
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.progress import JobProgress, observed
from streaming.published import OUTPUT_SCHEMA
from streaming.replica import ReplicaProcessor
from streaming.scratch import NoScratchError
from streaming.separation import StreamBroker
from streaming.sinks.sink import MicroBatch, Sink, open_sink
from streaming.sources.newest_complete_reads import (
    CompleteReadRequests,
    Starts,
    as_text,
    from_text,
    newest_complete_reads,
)
from streaming.sources.records import KafkaReach, check_journal, read_records, wait_for_kafka
from streaming.spark.failure import WaitForRoom, is_full_disk, stream_error
from streaming.spark.needs import jars_before, jars_behind
from streaming.spark.session import java_process, log_nothing_more, spark_session
from streaming.spark.submitted import executors_cores, submitted
from streaming.topics import AskedKafka, prepare_topics
from streaming.watchdog import Watchdog
from transport.address import JournalAddress, KafkaAddress
from transport.disk import no_room
from transport.segments import JournalError, JournalFullError

logger = logging.getLogger("kontrast.streaming")

_LOCAL_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_FIRST_BATCH = "first batch"
_STARTS = "starts"
_LOOK_SECONDS = 0.1
_LOOK_AT_HADOOP_SECONDS = 1.0  # each look reads a file of the checkpoint


def run(
    config: StreamConfig,
    stop: threading.Event,
    *,
    available_now: bool = False,
    rebuild: bool = False,
    started: Callable[[], object] = lambda: None,
) -> None:
    """Run the job until `stop` is set or, with `available_now`, until the source's present end.

    Raise StreamError or NoScratchError. The running batch completes first. Kontrast rejects impossible settings before
    it starts or changes anything. While a disk is full, the job waits for room, also at its start. With `rebuild` it
    drops the checkpoint and begins at the newest complete read in the source. It calls `started` once it reads.
    """
    wait_for_room = WaitForRoom(stop)
    while not stop.is_set():
        try:
            _run(config, stop, available_now=available_now, rebuild=rebuild, started=started)
            return
        except (StreamError, NoScratchError) as error:
            if not is_full_disk(error) or stop.is_set():
                raise
            wait_for_room(str(error))


def _run(
    config: StreamConfig, stop: threading.Event, *, available_now: bool, rebuild: bool, started: Callable[[], object]
) -> None:
    # Only Java can read a file system of Hadoop, and only Spark knows its executors.
    if config.checkpoint_uri is not None or submitted():
        with _stopped_in_order(stop), _session(config, stop) as session:
            place = None if config.checkpoint_uri is None else hadoop_path(session, config.checkpoint_uri)
            cores = executors_cores(session) if submitted() else None
            with prepare(config, stop, place, rebuild=rebuild, cores=cores) as job:
                job.stream(session, stop, available_now=available_now, started=started)
        return
    with prepare(config, stop, rebuild=rebuild) as job:
        if stop.is_set():
            return
        with _stopped_in_order(stop), _session(job.config, stop, job.checkpoint.locks) as session:
            job.stream(session, stop, available_now=available_now, started=started)


@contextlib.contextmanager
def _stopped_in_order(stop: threading.Event) -> Iterator[None]:
    try:
        yield
    except StreamError as error:
        if not stop.is_set():
            raise
        # The sender of the signal may have ended Spark's processes too.
        logger.warning("the last batch was not finished and comes again at the next start: %s", error)


def _session(
    config: StreamConfig, stop: threading.Event, locks: Sequence[int] = ()
) -> contextlib.AbstractContextManager[SparkSession]:
    return spark_session(
        config,
        stop,
        jars=jars_behind(config),
        class_path=jars_before(config),
        inherited_files=locks,
    )


@contextlib.contextmanager
def prepare(
    config: StreamConfig,
    stop: threading.Event,
    place: Place | None = None,
    *,
    lock_wait_seconds: float = LOCK_WAIT_SECONDS,
    rebuild: bool = False,
    cores: int | None = None,
) -> Iterator[Job]:
    """Check everything that needs no query, and hold the checkpoint and the sink. Raise StreamError.

    `place` is the checkpoint's place if this is not its local directory. `cores` is the number of the executors' cores
    if they are not on this machine.
    """
    with Checkpoint(place or config.checkpoint_directory, lock_wait_seconds=lock_wait_seconds) as checkpoint:
        stored = None if rebuild else checkpoint.settings()  # a rebuild works even if these are damaged
        fixed = None if stored is None else checkpoint.number(SHUFFLE_PARTITIONS)
        config = config.with_shuffle_partitions(fixed, cores)
        if stored is not None and (reason := why_begin_again(checkpoint.directory, config, stored)):
            logger.warning("%s %s. %s", checkpoint.directory, reason, BEGINS_AGAIN)
            rebuild = True
        if isinstance(config.source, JournalAddress):
            check_journal(config.source)
        for address in config.kafka_addresses:
            wait_for_kafka(address, config.connect_timeout_seconds, stop)
        with contextlib.closing(open_sink(config)) as sink:
            if stored is None and not rebuild:
                checkpoint.begin({**settings_of(config), _FIRST_BATCH: sink.next_batch})
            journals = [config.sink.directory] if isinstance(config.sink, JournalAddress) else []
            yield Job(config, checkpoint, Fence([checkpoint.directory, *journals]), sink, rebuild)


def check_settings(config: StreamConfig) -> str:
    """Return whether the checkpoint can continue with these settings, without a change. Raise StreamError otherwise."""
    if config.checkpoint_uri is None:
        return check_stored(config.checkpoint_directory, config)
    with _session(config, threading.Event()) as session:
        return check_stored(hadoop_path(session, config.checkpoint_uri), config)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that may start, with its checkpoint and sink, whose fence shuts every earlier driver out."""

    config: StreamConfig
    checkpoint: Checkpoint
    fence: Fence
    sink: Sink
    rebuild: bool

    def stream(
        self,
        session: SparkSession,
        stop: threading.Event,
        *,
        available_now: bool = False,
        started: Callable[[], object] = lambda: None,
    ) -> None:
        """Run the query in this session until `stop` is set or it ends. Raise StreamError."""
        self._configure(session)
        brokers = prepare_topics(session, self.config, stop)
        if stop.is_set():
            return
        if self.rebuild:
            self._rebuild_from_source(session)

        @functools.cache
        def begun() -> None:  # once, though the query starts again after each wait for room
            logger.info("reading %s, writing %s", self.config.source, self.config.sink)
            started()

        wait_for_room = WaitForRoom(stop)
        starts = fruitless_starts(self.checkpoint.directory, self.checkpoint.spark_directory)
        run = functools.partial(self._query, session, stop, brokers, starts, available_now=available_now, started=begun)
        while (failure := run()) is not None:
            self.fence.require()
            if not is_full_disk(failure) or stop.is_set():
                logger.debug("the query failed", exc_info=failure)
                damage = damage_behind(failure, self.checkpoint.spark_directory)
                raise damage or stream_error(failure) from failure
            # The batch repeats, because it counts only when it is completely written.
            wait_for_room(self._full(failure))
        logger.info("stopped between two batches")

    def _configure(self, session: SparkSession) -> None:
        """Give the session the settings that depend on the checkpoint."""
        session.conf.set("spark.sql.shuffle.partitions", str(self.config.shuffle_partitions))
        if isinstance(self.checkpoint.directory, Path):
            # The default starts processes (readlink, chmod) for every file, a third of a batch's time.
            session.conf.set("spark.sql.streaming.checkpointFileManagerClass", _LOCAL_CHECKPOINTING)

    def _full(self, failure: Exception) -> str:
        """Return the sentence that names the disk without room."""
        directory = self.checkpoint.directory
        if isinstance(failure, JournalFullError) or isinstance(directory, HadoopPath):
            return str(stream_error(failure))
        return f"checkpoint {directory}: {no_room(directory)}"

    def _query(
        self,
        session: SparkSession,
        stop: threading.Event,
        brokers: Sequence[StreamBroker],
        starts: FruitlessStarts,
        *,
        available_now: bool,
        started: Callable[[], object],
    ) -> Exception | None:
        """Run a query until `stop` is set or it ends. Return its failure, if any."""
        failures: list[Exception] = []  # raised during a batch's write, which Spark would report as Java's error
        java = java_process(session)
        progress = JobProgress(self._name, self.config, self.checkpoint.spark_directory, java)
        session.streams.addListener(progress)
        try:
            replica = ReplicaProcessor(run=uuid.uuid4().hex, config=self.config, stream_brokers=brokers)
            query = self._start(session, stop, replica, failures, progress, available_now=available_now)
            started()
            requests = CompleteReadRequests(session, self.config.source)
            with self._reach(session) as reach, self._watchdog(java, reach, starts).watching() as watchdog:

                def look() -> None:
                    self.fence.require()
                    requests.look(progress.lacking)
                    self._write_idle(progress, session)

                pause = _LOOK_SECONDS if isinstance(self.checkpoint.directory, Path) else _LOOK_AT_HADOOP_SECONDS
                _wait(query, stop, pause, watchdog.java_answered, look)
            failures += filter(None, [query.exception()])
        except (PySparkException, Py4JJavaError) as error:
            failures.append(error)
        finally:
            with contextlib.suppress(Py4JError, ConnectionError):
                session.streams.removeListener(progress)
        # A batch that began after the stop is not written. Its query ends with _StoppedError, and the batch repeats.
        return failures[0] if failures and not isinstance(failures[0], _StoppedError) else None

    def _watchdog(self, java: int, reach: KafkaReach, starts: FruitlessStarts) -> Watchdog:
        return Watchdog(self.config, self.checkpoint.spark_directory, java, reach.is_away, starts)

    def _write_idle(self, progress: JobProgress, session: SparkSession) -> None:
        """Write the job's row if no batch is there to write it."""
        row = progress.take_idle_row()
        if row is not None:
            try:
                self.sink.write_idle(row, session)
            except (JournalError, PySparkException, Py4JJavaError) as error:  # the next batch reports the failure
                logger.debug("the row of the idle job was not written: %s", error)

    @contextlib.contextmanager
    def _reach(self, session: SparkSession) -> Iterator[KafkaReach]:
        """While the body runs, log if a Kafka of the job is away or silent, or if the source's topic is deleted."""
        source, addresses = self.config.source, self.config.kafka_addresses
        with contextlib.ExitStack() as stack:
            # The source comes last, so that its topic counts if one Kafka has both ends.
            asked = {address.bootstrap_servers: AskedKafka(session, address) for address in reversed(addresses)}
            for kafka in asked.values():
                stack.callback(kafka.close)
            answers = {servers: kafka.answers for servers, kafka in asked.items()}
            reach = KafkaReach(addresses, answers=answers)
            if isinstance(source, KafkaAddress):
                reach = KafkaReach(addresses, str(source), asked[source.bootstrap_servers].has_topic, answers)
            stack.enter_context(reach.watched())
            yield reach

    def _rebuild_from_source(self, session: SparkSession) -> None:
        """Replace the checkpoint by a beginning at the newest complete reads, all at once."""
        starts = newest_complete_reads(session, self.config)
        chosen = {**settings_of(self.config), _FIRST_BATCH: self.sink.next_batch}
        self.fence.require()
        self.checkpoint.begin({**chosen, REBUILDS: self.checkpoint.next_rebuild, _STARTS: as_text(starts)})
        logger.info("rebuild begins at the newest complete reads of %s", self.config.source)

    def _starts(self, stored: Settings) -> Starts:
        """Return the places in the source from which a rebuild reads."""
        try:
            return from_text(str(stored.get(_STARTS, "{}")))
        except UndecodableError as error:
            raise damaged_settings(self.checkpoint.directory, f"its {_STARTS} are none") from error

    @property
    def _name(self) -> str:
        return f"kontrast {self.checkpoint.directory}"

    def _start(
        self,
        session: SparkSession,
        stop: threading.Event,
        replica: ReplicaProcessor,
        failures: list[Exception],
        progress: JobProgress,
        *,
        available_now: bool,
    ) -> StreamingQuery:
        stored = self.checkpoint.settings()
        assert stored is not None, "a job without a beginning"
        self.fence.require()
        drop_torn(self.checkpoint.spark_directory)
        require_checksums(self.checkpoint.spark_directory)
        files = CheckpointFiles(self.checkpoint.directory)
        first_batch = self.checkpoint.number(_FIRST_BATCH)  # the sink's number of Spark's batch 0

        def write(rows: DataFrame, batch: int) -> None:
            began = time.monotonic()
            try:
                if stop.is_set():
                    log_nothing_more(session)
                    raise _StoppedError
                self.fence.require()
                source = source_of(self.checkpoint.spark_directory, batch)
                number, row = first_batch + batch, progress.take_row()
                self.sink.write(rows, MicroBatch(number, source, batch > 0, row, files.force, self.fence))
                progress.written(batch)
            except Exception as error:
                failures.append(error)
                raise
            logger.debug("batch %d took %.3f seconds", batch, time.monotonic() - began)

        rows = (
            read_records(session, self.config, self._starts(stored))
            .groupBy("cluster")
            .transformWithState(replica, outputStructType=OUTPUT_SCHEMA, outputMode="Append", timeMode="None")
        )
        writer = (
            observed(rows)
            .writeStream.queryName(self._name)
            .option("checkpointLocation", str(self.checkpoint.spark_directory))
            .foreachBatch(write)
        )
        trigger = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")
        return trigger.start()


class _StoppedError(Exception):
    """Error that ends the query before a batch that must not begin any more."""


def _wait(
    query: StreamingQuery,
    stop: threading.Event,
    look_seconds: float,
    java_answered: Callable[[], None],
    look: Callable[[], None],
) -> None:
    """Wait for the query's end and do due work meanwhile. After `stop`, end the query between two batches."""
    while query.isActive and not stop.wait(look_seconds):
        java_answered()
        look()
    while query.isActive and query.status["isDataAvailable"]:
        java_answered()
        time.sleep(_LOOK_SECONDS)
    query.stop()
