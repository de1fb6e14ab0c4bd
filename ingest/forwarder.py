"""Forwarder of one cluster's changes from ZooKeeper into a sink, across lost connections and new leaders.

It connects, watches, reads everything, then forwards windows of events and heartbeats. After a lost connection
all of this is repeated.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing

import msgspec

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import RecordKind
from ingest.besides import Besides
from ingest.complete_read import Sweep, read_everything, wait_for_connection
from ingest.config import IngestConfig
from ingest.election import ForwardingTerm, open_terms
from ingest.errors import IngestError, StoppedError, UnreachableError
from ingest.maintenance import MaintenanceFile
from ingest.observed.inbox import Inbox, SessionState
from ingest.observed.observations import Observation, Value, ZnodeEvent, observe_window
from ingest.observed.paths import WATCHED
from ingest.observed.tree import complete
from ingest.publisher import DeposedError, MachineClocks, Publisher
from ingest.sinks.journal_sink import open_sink
from ingest.sinks.sink import Sink, SinkFullError, SinkUnavailableError
from ingest.zookeeper.client import WatchedZooKeeper
from ingest.zookeeper.ensemble import EnsembleQuestions
from ingest.zookeeper.reading import ConnectionLostError
from transport.forwarding import Forwarding, ReadReason
from wording.sentences import counted

_LOG = logging.getLogger("kontrast.ingest.forwarder")

_STOP_CHECK_SECONDS = 0.5  # each check of an idle cluster takes 0.1 ms of processor time
_STILL_TRYING_SECONDS = 2.0
_SINK_RETRY_SECONDS = 0.5
_LOOK_FOR_READERS_SECONDS = 1.0
_READ_AGAIN_SECONDS = 0.1
_MAX_READS_A_WINDOW = 5
_READ_WHEN_QUIET = "/controller_epoch"
_READ_REASONS = {SessionState.SUSPENDED: ReadReason.SUSPENDED, SessionState.LOST: ReadReason.LOST}


class _RolledBackError(Exception):
    """ZooKeeper has lost changes that were published."""


class Forwarder:
    """Forwarder of one cluster."""

    def __init__(
        self, config: IngestConfig, forwarding: Forwarding | None = None, clocks: MachineClocks | None = None
    ) -> None:
        self._config = config
        self._clocks = clocks or MachineClocks()
        self._forwarding = forwarding or Forwarding(config.cluster)
        self._maintenance = MaintenanceFile(config.maintenance_file, self._forwarding)
        self._has_connected = False

    def run(self, stop: threading.Event) -> None:
        """Forward until asked to stop. Raise IngestError for faults that a person must fix."""
        sink = self._open_sink(stop)
        if sink is None:
            return
        self._forwarding.stands_for_election = self._config.election_zookeeper is not None
        with closing(sink), closing(open_terms(self._config, stop, sink.newest_generation)) as terms:
            reason = ReadReason.START
            while (term := terms.next_term()) is not None:
                reason = self._serve(term, sink, stop, reason)

    def _serve(self, term: ForwardingTerm, sink: Sink, stop: threading.Event, reason: ReadReason) -> ReadReason:
        """Forward until the term ends or asked to stop. Return the reason for a complete read in the next term."""
        inbox = Inbox()
        zookeeper = WatchedZooKeeper(self._config, inbox, stop, self._forwarding)
        questions = EnsembleQuestions(self._config)
        publisher = Publisher(sink, term, stop, self._forwarding, self._maintenance, self._clocks)
        self._forwarding.leads, self._forwarding.generation = True, term.generation
        try:
            zookeeper.start()
            if not self._has_connected:
                self._connect(zookeeper, inbox, stop)
            watch = _Watch(self._config, zookeeper, questions, inbox, publisher, stop, self._forwarding)
            if watch.run(reason, sink.complete_read_requested):
                _LOG.warning(
                    "%s: readers of %s lack records, so everything is read again", self._config.cluster, self._config.to
                )
                return ReadReason.ASKED
        except _RolledBackError:
            return ReadReason.ROLLED_BACK
        except StoppedError:
            _LOG.warning("%s: stopped while the sink was unavailable", self._config.cluster)
        except DeposedError:
            if not stop.is_set():
                _LOG.warning(
                    "%s: this forwarder is no longer the leader. It stops and waits for its turn", self._config.cluster
                )
        finally:
            self._forwarding.leads = False
            questions.stop()
            zookeeper.close()
        return ReadReason.START

    def _open_sink(self, stop: threading.Event) -> Sink | None:
        deadline = time.monotonic() + self._config.connect_timeout_seconds
        is_told = False
        while not stop.is_set():
            try:
                return open_sink(self._config, stop)
            except UnreachableError as error:  # without ZooKeeper, the stream's cluster cannot be compared
                self._goes_on(error)
                deadline = time.monotonic() + self._config.connect_timeout_seconds
            except SinkUnavailableError as error:
                waits_for_room = isinstance(error, SinkFullError)  # meanwhile its page and metrics are up
                if time.monotonic() >= deadline and not waits_for_room:
                    raise IngestError(
                        f"{self._config.to} could not be reached within {self._config.connect_timeout_seconds:g} s. "
                        f"Check that it runs and that the address is right ({error})"
                    ) from error
                self._forwarding.goes_on_trying |= waits_for_room
                level = logging.DEBUG if is_told else logging.WARNING
                until = "there is room" if waits_for_room else f"{self._config.connect_timeout_seconds:g} s have passed"
                _LOG.log(level, "%s takes no records, trying again until %s: %s", self._config.to, until, error)
                is_told = True
            stop.wait(_SINK_RETRY_SECONDS)
        return None

    def _goes_on(self, error: UnreachableError) -> None:
        self._forwarding.goes_on_trying = True
        _LOG.error("%s: %s. Kontrast goes on trying", self._config.cluster, error)

    def _connect(self, zookeeper: WatchedZooKeeper, inbox: Inbox, stop: threading.Event) -> None:
        """Wait for a readable ZooKeeper, however long that takes. The first state is a connected session.

        A watcher that gave up would stay blind when the ensemble comes back, because nobody starts it again while its
        process forwards other clusters.
        """
        _LOG.info("%s: connecting to ZooKeeper at %s", self._config.cluster, self._config.zookeeper)
        while not stop.is_set():
            try:
                wait_for_connection(self._config, zookeeper, inbox, stop, _STILL_TRYING_SECONDS)
                break
            except UnreachableError as error:
                self._goes_on(error)
        self._has_connected = True


class _Watch:
    """The work of a forwarder that has been connected once."""

    def __init__(  # noqa: PLR0913 (its parts)
        self,
        config: IngestConfig,
        zookeeper: WatchedZooKeeper,
        questions: EnsembleQuestions,
        inbox: Inbox,
        publisher: Publisher,
        stop: threading.Event,
        forwarding: Forwarding,
    ) -> None:
        self._config = config
        self._forwarding = forwarding
        self._zookeeper = zookeeper
        self._questions = questions
        self._inbox = inbox
        self._publisher = publisher
        self._stop = stop
        self._state = SessionState.SUSPENDED
        self._in_step = False  # watches are set, and everything was read after that
        self._has_complete_read = False
        self._reason = ReadReason.START  # why the next complete read is due
        self._zxid = UNKNOWN_ZXID
        self._sweep = Sweep(config, zookeeper, publisher.tree)
        self._besides = Besides(zookeeper)
        self._session_id = 0  # of the newest complete read
        self._heartbeat_at = self._look_at = self._read_at = time.monotonic()

    def run(self, reason: ReadReason, complete_read_requested: Callable[[], bool]) -> bool:
        """Forward until asked to stop, or until a complete read is due, which begins a new generation.

        Raise _RolledBackError if ZooKeeper is the reason.
        """
        self._reason = reason
        while not self._stop.is_set():
            until_heartbeat = max(0.0, self._heartbeat_at - time.monotonic())
            has_news = self._inbox.wait(min(until_heartbeat, _STOP_CHECK_SECONDS))
            self._take_states()
            self._questions.begin_if_due()
            self._zookeeper.restart_if_dead()
            try:
                self._forward(has_news)
            except ConnectionLostError:
                self._in_step, self._forwarding.goes_on_trying = False, True
                self._stop.wait(_READ_AGAIN_SECONDS)
            if self._in_step and time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + _LOOK_FOR_READERS_SECONDS
                if complete_read_requested():
                    return True
        return False

    def _forward(self, has_news: bool) -> None:
        if dropped := self._inbox.take_dropped():
            _LOG.warning("%s: more changes came than are kept, everything is read again", self._config.cluster)
            self._forwarding.events_dropped += dropped
            self._fall_out_of_step(ReadReason.OVERFLOW)
        if self._state is SessionState.CONNECTED and not self._in_step and time.monotonic() >= self._read_at:
            self._get_in_step()
        elif self._in_step and has_news:
            self._stop.wait(self._config.coalesce_ms / 1000)
            self._forward_window()
        if self._has_complete_read and time.monotonic() >= self._heartbeat_at:
            self._heartbeat()

    def _take_states(self) -> None:
        for state in self._inbox.take_states():
            if state is SessionState.CONNECTED:
                _LOG.info("%s: connected to ZooKeeper at %s", self._config.cluster, self._config.zookeeper)
                self._put_off_reading()
            else:
                _LOG.warning("%s: the ZooKeeper session is %s", self._config.cluster, state.value)
                self._questions.ask_now()
                self._fall_out_of_step(_READ_REASONS[state])
                self._publish_session(state)
            self._in_step = False
            self._state = state
            self._forwarding.is_connected = state is SessionState.CONNECTED

    def _put_off_reading(self) -> None:
        """Delay the complete read by a random time, so that watchers of an ensemble do not all read at once."""
        if self._has_complete_read:
            jitter_seconds = random.uniform(0, self._config.resync_jitter_seconds)
            self._forwarding.jitter_wait_seconds += jitter_seconds
            self._read_at = time.monotonic() + jitter_seconds

    def _fall_out_of_step(self, reason: ReadReason) -> None:
        """Publish the creations and deletions among the waiting events. The next step is a complete read."""
        events = self._inbox.take_events()
        if self._in_step:  # otherwise events may not fit the known znodes
            self._publish_unread(events)
        self._in_step = False
        if self._has_complete_read:
            self._reason = reason

    def _get_in_step(self) -> None:
        """Set the watches, read everything, and publish all values, or their differences from the published values."""
        started = time.monotonic()
        connections = self._zookeeper.connections
        self._zookeeper.catch_up()  # before the watches, because watches on a lagging server would show known changes
        self._zookeeper.add_watches(WATCHED)
        self._questions.learn(self._zookeeper.read_configuration())
        zxid = self._zookeeper.read_values([_READ_WHEN_QUIET]).zxid
        values = read_everything(self._zookeeper)
        if self._zookeeper.connections != connections:
            raise ConnectionLostError
        if self._has_complete_read:
            self._refuse_older_data(values, zxid)
            published = self._publisher.tree.differences(values)
            self._publisher.publish(published)
            self._forwarding.differences += len(published)
        else:
            published = self._first_complete_read(values, zxid)
        self._zxid = max(self._zxid, zxid)
        self._session_id = self._zookeeper.session_id
        self._in_step = True
        self._forwarding.complete_reads[self._reason] += 1
        self._forwarding.watch_mode = self._zookeeper.watch_mode.value
        self._publish_session(SessionState.CONNECTED)
        _LOG.info(
            "%s: read %s, published %d, in %.2f s",
            self._config.cluster,
            counted(len(values), "znode"),
            len(published),
            time.monotonic() - started,
        )

    def _refuse_older_data(self, values: Mapping[str, Value], zxid: Zxid) -> None:
        """Raise _RolledBackError if ZooKeeper was restored from a backup, or has lost its data.

        A restored server has a smaller zxid. If its ensemble began a newer epoch, only its znodes have smaller zxids.
        """
        lost_zxid = self._zxid if zxid < self._zxid else self._publisher.tree.newest_lost_zxid(values)
        if lost_zxid < 0:
            return
        if self._zookeeper.session_id == self._session_id:
            # A leader that its ensemble has left shows older data too. It cannot begin a session.
            self._zookeeper.start_new_session()
            raise ConnectionLostError
        _LOG.error(
            "%s: ZooKeeper at %s came back with older data, from zxid %#x to %#x. Everything is read again",
            self._config.cluster,
            self._config.zookeeper,
            lost_zxid,
            zxid,
        )
        self._zxid = zxid
        self._publish_session(SessionState.CONNECTED, lost_zxid)
        raise _RolledBackError

    def _first_complete_read(self, values: dict[str, Value], zxid: Zxid) -> list[Observation]:
        if not values:
            _LOG.warning(
                "%s: no Kafka cluster is at %s yet. Check the address with its chroot",
                self._config.cluster,
                self._config.zookeeper,
            )
        observations = complete(values)
        self._publisher.publish_complete_read(observations, zxid)
        self._has_complete_read = True
        return observations

    def _forward_window(self, swept: Sequence[str] = ()) -> None:
        """Publish the waiting events, with values that were read after them, and unnoticed changes of swept paths.

        A window ends with the answer to a read. By then the server has sent every event of its changes, so the window
        splits no change. Events during the read belong to the window and are read in turn. A window without a natural
        end ends after a limit.
        """
        new = self._inbox.take_events()
        events: list[ZnodeEvent] = []
        values: dict[str, Value | None] = {}
        try:
            for reads in range(_MAX_READS_A_WINDOW):
                named, new = self._zookeeper.name(new), []
                events += named
                paths = dict.fromkeys([event.path for event in named] + list(() if reads else swept))
                reading = self._zookeeper.read_values(list(paths) or [_READ_WHEN_QUIET])
                values.update(reading.values)
                if reads + 1 < _MAX_READS_A_WINDOW:  # otherwise the next window handles the later events
                    new = self._inbox.take_events(reading.position)
                    self._zxid = max(self._zxid, reading.zxid)
                if not new:
                    break
        except ConnectionLostError:
            self._publish_unread([*events, *new])
            raise
        self._publisher.publish(observe_window(events, values, self._publisher.tree.known))
        self._measure(events, values)
        if not new:  # otherwise a waiting event may announce a difference
            self._publish_unnoticed(values.keys() & set(swept) - {event.path for event in events}, values)

    def _publish_unnoticed(self, paths: Collection[str], values: Mapping[str, Value | None]) -> None:
        """Publish the differences at these paths, about which no event came."""
        found = self._publisher.tree.differences_at({path: values[path] for path in paths})
        if found:
            changed = f"{counted(len(found), 'znode')} (the first is {found[0].path})"
            _LOG.warning("%s: no watch reported a change of %s. It is published now", self._config.cluster, changed)
            self._publisher.publish(found)
            self._forwarding.differences += len(found)

    def _measure(self, events: list[ZnodeEvent], values: Mapping[str, Value | None]) -> None:
        now, at_seconds = time.monotonic(), time.time()
        for event in events:
            if event.received_at:  # otherwise a list of children showed the change
                value = values.get(event.path)
                # Before 3.9 an event does not name its change, so the newest change of its znode counts.
                zxid = event.zxid if event.zxid > 0 or value is None else value.mzxid
                lag = self._forwarding.lag
                self._forwarding.lag = lag.observe(now - event.received_at, zxid=zxid, at_seconds=at_seconds)
        self._forwarding.events += len(events)
        self._forwarding.windows += bool(events)

    def _publish_unread(self, events: list[ZnodeEvent]) -> None:
        """Publish at least creations and deletions. The values follow with the complete read."""
        self._publisher.publish(observe_window(events, {}, self._publisher.tree.known))

    def _publish_session(self, state: SessionState, lost_zxid: Zxid = UNKNOWN_ZXID) -> None:
        if self._has_complete_read:
            self._publisher.publish_state(
                RecordKind.SESSION, state, self._zookeeper.watch_mode, self._zxid, lost_zxid=lost_zxid
            )

    def _heartbeat(self) -> None:
        """Publish a heartbeat, by which everything up to its zxid has been published, or the connection is lost."""
        if self._in_step:
            self._forward_window(self._sweep.next_paths())
        state = self._state if self._in_step or self._state is not SessionState.CONNECTED else SessionState.SUSPENDED
        flaws = self._besides.look_if_due() if self._in_step else None
        ensemble = self._questions.take()
        if ensemble is not None:
            ensemble = msgspec.structs.replace(ensemble, large_znodes=self._publisher.tree.largest())
        self._publisher.publish_state(
            RecordKind.HEARTBEAT, state, self._zookeeper.watch_mode, self._zxid, ensemble=ensemble, flaws=flaws
        )
        # All clusters of a process share their moments, because a request to Kafka then has all heartbeats, and so has
        # a batch of the job, which costs 0.25 s of processor time. Each delays a change by up to 1.4 ms.
        interval = self._config.heartbeat_seconds
        self._heartbeat_at = round(max(self._heartbeat_at + interval, time.monotonic()) / interval) * interval
