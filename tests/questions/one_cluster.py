"""One moment of a recorded cluster in each source, and the answers to every question about the moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette

from cli.followed_outputs import Where
from cli.sources.records import FilesSource
from cli.sources.stream import StreamSource
from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.contract.outputs import encode_row
from controller.contract.records import Record, RecordKind, encode_record
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.rules.placement import PlacementError
from controller.step import steps
from controller.view.metadata import Metadata, Znode, cluster_metadata
from dashboards.page.interface import API
from dashboards.page.newest_pages import PageConfig
from dashboards.page.routes import LivePage
from ingest.complete_read import CompleteRead
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from ingest.observed.observations import Value
from outputs.reading import ReadingCounts
from outputs.transitions import Transitions
from questions.check.check import check
from questions.everywhere.lint import Lint
from questions.explain.key import ExplainKey
from questions.explain.subject import read_subject
from questions.gathering import Gathering
from questions.known_brokers import UnknownBrokersError
from questions.memory import Memory
from questions.picture import Picture
from questions.question import Scope
from questions.timeline.events import HistorySpan, Selection, TimelineRows
from questions.timeline.timeline import timeline_of
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.may_restart import restartable
from questions.whatif.placement import Goal, UnplaceableError, least_movement, placed_by_kafka
from questions.whatif.rolling import rank_losses, rolling_order
from questions.whatif.scenario import Step, StepKind, brokers_in, play
from streaming.config import BrokersConfig
from tests.archives import extract
from tests.rows import NEVER_STALE_MS
from transport.address import JournalAddress
from transport.journal import JournalWriter

Answers = Mapping[str, Any]

CLUSTER: Final = "shop"
NO_RACKS: Final[Mapping[int, str]] = {}
_PAST: Final = Scope(past=True, keeps=lambda _: True, past_outputs=("transitions", "metadata", "alerts"))
_REFUSED: Final = (UnknownBrokersError, NoControllerError, UnplaceableError, PlacementError)
_ARCHIVES: Final = Path(__file__).parents[1] / "conformance" / "recordings"
_BROKERS: Final = "/brokers/ids/"
_NO_STOP: Final = threading.Event()


def unpacked(name: str, directory: Path) -> Path:
    """Return the dataDir of the recorded cluster's ZooKeeper, unpacked there."""
    data = directory / name / "zk"
    if not data.exists():
        extract(_ARCHIVES / f"{name}.tar.xz", directory, f"{name}/zk/")
    return data


class Cluster:
    """A recorded cluster at a moment, with these racks added. Each source reads Kontrast's output up to then."""

    def __init__(self, data: Path, at_ms: int, directory: Path, racks: Mapping[int, str] = NO_RACKS) -> None:
        self._data, self._directory, self._until, self._racks = data, directory, Until(time_ms=at_ms), racks
        history = FileHistory((data,), CLUSTER, until=self._until).records()
        self.records = [self._in_rack(record) for record in history]
        self.rows = steps(new_context(CLUSTER), self.records).effects

    def from_files(self) -> Picture:
        """Answer as --zk-data does, with the added racks."""
        if self._racks:
            gathering = Gathering(new_context(CLUSTER), _PAST.keeps)
            gathering.take(self.records)
            return gathering.picture()
        return FilesSource((self._data,), "/", self._until, CLUSTER, BrokersConfig()).picture(_PAST, _NO_STOP)

    def from_changes(self) -> Picture:
        """Answer as --from does on the changes of `kontrast watch`."""
        with JournalWriter(self._directory / "changes") as journal:
            journal.append([encode_record(record) for record in self.records])
        return self._from(self._directory / "changes")

    def from_derived(self) -> Picture:
        """Answer as --from does on the outputs of `kontrast stream`."""
        derived = self._directory / "derived"
        for output in dict.fromkeys(row.output for row in self.rows):
            with JournalWriter(derived / output, batches=True) as journal:
                journal.append_batch(1, [encode_row(row) for row in self.rows if row.output == output])
        return self._from(derived)

    def from_zookeeper(self) -> Picture:
        """Answer as --zookeeper does, from the znodes of that moment."""
        read = self._read()
        now_ms = self.records[-1].observed_ms
        records = [replace(record, observed_ms=now_ms) for record in read.records(CLUSTER)]
        return Gathering(new_context(CLUSTER)).look(records, read.written_ms)

    def snapshot(self) -> list[Metadata]:
        """Answer as `kontrast snapshot` does."""
        records = self._read().records(CLUSTER)
        return list(cluster_metadata(Znode(record.path, record.raw, record.czxid) for record in records if record.path))

    def page(self) -> Starlette:
        """Return the page that follows the rows."""
        memory, reading = Memory(), ReadingCounts()
        for row in self.rows:
            memory.apply(row)
        reading.source_is(up=True)
        reading.caught_up()
        transitions = _Stored([JournalAddress(Path("none"))], 1.0, memory)
        page = LivePage(memory, reading, transitions, PageConfig(stale_after_ms=NEVER_STALE_MS), _NO_STOP, str)
        return Starlette(routes=page.routes())

    def _read(self) -> CompleteRead:
        """Read the znodes that exist at the moment, as ZooKeeper would answer."""
        values: dict[str, Value] = {}
        for record in self.records:
            if record.kind is RecordKind.DELETED:
                values.pop(record.path, None)
            elif record.kind is RecordKind.NODE:
                created_ms = values[record.path].ctime_ms if record.path in values else record.observed_ms
                stat = (record.czxid, record.mzxid, record.version, record.ephemeral_owner)
                values[record.path] = Value(record.raw, *stat, record.observed_ms, created_ms)
        return CompleteRead(values)

    def _in_rack(self, record: Record) -> Record:
        rack = self._racks.get(int(record.path.rpartition("/")[2])) if record.path.startswith(_BROKERS) else None
        if rack is None or record.data is None:
            return record
        return replace(record, data=json.dumps({**json.loads(record.data), "rack": rack}))

    def _from(self, directory: Path) -> Picture:
        where = Where(JournalAddress(directory), 5.0, NEVER_STALE_MS)
        return StreamSource(where, CLUSTER, BrokersConfig()).picture(_PAST, _NO_STOP)


class _Stored(Transitions):
    """Transitions that the memory has already, so nothing is read."""

    def follow(self) -> str | None:
        return None


def answers(picture: Picture) -> Answers:
    """Ask every question of a picture. Return each answer as --json prints it, or the sentence of its refusal."""
    asked: dict[str, Callable[[], Any]] = {
        "check": lambda: check(picture),
        "lint": lambda: Lint().ask(picture).findings,
    }
    for words in subjects(picture):
        asked[f"explain {words}"] = lambda words=words: _explained(picture, words)  # type: ignore[misc]
    for name in list(_topics(picture.context))[:2]:
        asked[f"key of {name}"] = lambda name=name: ExplainKey(topic=name, key="4711").ask(picture)  # type: ignore[misc]
    asked |= _hypothetical(picture.context)
    for broker in _chosen(picture.context):
        asked[f"restartable {broker}"] = lambda broker=broker: restartable(picture, broker).reasons  # type: ignore[misc]
    asked["timeline"] = lambda: timeline_of(_keeping(picture, TimelineRows()), Selection(), HistorySpan())
    return {question: _said(answer) for question, answer in asked.items()}


def page_answers(page: Starlette, picture: Picture) -> Answers:
    """Ask the page's JSON interface the same questions, as far as it answers them."""
    at = f"{API}/clusters/{CLUSTER}"
    paths: dict[str, tuple[str, str | None]] = {"check": (at, "health")}
    for words in subjects(picture):
        subject = read_subject(words.split())
        if subject.is_controller:
            paths[f"explain {words}"] = (f"{at}/controller", None)
        elif subject.broker is not None:
            paths[f"explain {words}"] = (f"{at}/brokers/{subject.broker}", "explanation")
        elif subject.partition is not None:
            paths[f"explain {words}"] = (f"{at}/topics/{subject.partition.topic}/{subject.partition.partition}", None)
        else:
            paths[f"explain {words}"] = (f"{at}/topics/{words}", "explanation")
    for broker in _chosen(picture.context):
        paths[f"restartable {broker}"] = (f"{at}/restartable?broker={broker}", "reasons")
        paths[f"whatif lose {broker}"] = (f"{at}/consequences?broker={broker}", "scenario")
        paths[f"whatif shut down {broker}"] = (f"{at}/consequences?broker={broker}&controlled=1", "scenario")
    paths["timeline"] = (f"{at}/timeline?window=604800", "timeline")
    return anyio.run(_asked, page, paths)


async def _asked(page: Starlette, paths: Mapping[str, tuple[str, str | None]]) -> Answers:
    found = {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url="http://page") as client:
        for question, (path, field) in paths.items():
            answer = (await client.get(path)).json()
            found[question] = (
                answer if field is None else answer[field] if answer[field] is not None else answer.get("refused")
            )
    return found


def subjects(picture: Picture) -> Iterator[str]:
    """Yield everything that can be explained."""
    yield "controller"
    yield from (f"broker {broker}" for broker in sorted(_hosts(picture.context) | picture.header.brokers.keys()))
    for name in _topics(picture.context):
        yield name
        yield from (f"{name}-{number}" for number in sorted(picture.context.topics[name].partitions))


def _hypothetical(context: Context) -> dict[str, Callable[[], Any]]:
    asked: dict[str, Callable[[], Any]] = {
        "whatif each": lambda: rank_losses(context),
        "whatif rolling": lambda: rolling_order(context),
        "whatif rolling one at once": lambda: rolling_order(context, at_once=1),
    }
    for rack in _racks(context):
        asked[f"whatif rack {rack}"] = lambda rack=rack: play(  # type: ignore[misc]
            context, [Step(StepKind.CRASH, brokers_in(context, rack))]
        )
    for broker in _chosen(context):
        crash, shutdown = Step(StepKind.CRASH, (broker,)), Step(StepKind.SHUT_DOWN, (broker,))
        asked[f"whatif lose {broker}"] = lambda step=crash: play(context, [step])  # type: ignore[misc]
        asked[f"whatif shut down {broker}"] = lambda step=shutdown: play(context, [step])  # type: ignore[misc]
    away = tuple(sorted(_hosts(context) - context.header.brokers.keys()))
    asked["whatif restore"] = lambda: play(context, [Step(StepKind.RESTORE, away)])
    live = tuple(sorted(context.header.brokers))
    targets = {TopicPartition(name, PartitionId(0)): live[:2] for name in _topics(context)}
    asked["whatif reassign"] = lambda: play(context, [Step(StepKind.REASSIGN, targets=targets)])
    first, second = live[:1], live[1:2]
    in_turn = [Step(StepKind.CRASH, first), Step(StepKind.SHUT_DOWN, second), Step(StepKind.RESTORE, first)]
    asked["whatif in turn"] = lambda: play(context, in_turn)
    topics = tuple(_topics(context))
    asked["place"] = lambda: _listed(placed_by_kafka(context, topics, live, rack_aware=None, start_index=0, shift=0))
    goals = {"drain": Goal(drain=frozenset(first)), "racks": Goal(rack_aware=True), "two": Goal(replication_factor=2)}
    for name, goal in goals.items():
        asked[f"place {name}"] = lambda goal=goal: _listed(  # type: ignore[misc]
            least_movement(context, topics, (), goal).targets
        )
    return asked


def _explained(picture: Picture, words: str) -> Any:  # noqa: ANN401 (an explanation)
    subject = read_subject(words.split())
    return subject.explain(_keeping(picture, subject.keeps))


def _keeping(picture: Picture, keeps: Callable[[Row], bool]) -> Picture:
    return picture if picture.story is None else replace(picture, story=tuple(filter(keeps, picture.story)))


def _said(answer: Callable[[], Any]) -> Any:  # noqa: ANN401 (JSON)
    try:
        return msgspec.json.decode(msgspec.json.encode(answer()))
    except _REFUSED as error:
        return str(error)


def _listed(targets: Mapping[TopicPartition, tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(tp), replicas) for tp, replicas in sorted(targets.items())]


def _topics(context: Context) -> Iterator[str]:
    return (name for name, topic in sorted(context.topics) if topic.exists)


def _hosts(context: Context) -> set[BrokerId]:
    partitions = (partition for _, topic in context.topics for partition in topic.partitions.values())
    return {broker for partition in partitions for broker in partition.replicas}


def _racks(context: Context) -> list[str]:
    """Return the racks of registered brokers and of those that left."""
    registered = {broker.rack for broker in context.header.brokers.values()}
    return sorted(filter(None, registered | {departed.rack for departed in context.header.departures.last.values()}))


def _chosen(context: Context) -> tuple[BrokerId, ...]:
    """Return two brokers to lose, the controller among them."""
    brokers = sorted(context.header.brokers, key=lambda broker: (broker != context.header.controller, broker))
    return tuple(brokers[:2])
