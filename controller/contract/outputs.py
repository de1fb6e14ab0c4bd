"""Rows that Kontrast publishes: transitions, requests, metadata, alerts and gauges, their keys and their JSON form.

Each row but the job's own names its cluster and the position of the record that caused it, so a repeated batch writes
the same rows. No number is larger than 64 bits hold: a reader can make a float of it.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Annotated, ClassVar, Final, Union

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.records import Int64

OUTPUT_VERSION = 2

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # only ever grows

# Marks a field as a moment of the cluster's time, which a row shows by the forwarder's wall clock: see `wall_clock`.
MOMENT: Final = {"moment": True}
Moment = Annotated[Int64, msgspec.Meta(extra=MOMENT)]


class Status(Enum):
    """How sure an effect is: expected of the controller, seen in ZooKeeper, or withdrawn because it will not happen."""

    PROVISIONAL = "provisional"
    FINAL = "final"
    WITHDRAWN = "withdrawn"


# Named for themselves: to find a member in its enum takes Python 3.11 0.2 µs.
PROVISIONAL, FINAL, WITHDRAWN = Status


class Severity(Enum):
    """Urgency of an alert: it pages a person, warns, or informs."""

    PAGE = "page"
    WARN = "warn"
    INFO = "info"


class _Versioned(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", gc=False):
    v: Int64 = msgspec.field(default_factory=partial(int, OUTPUT_VERSION))  # a factory: always written, never omitted


class Row(_Versioned, frozen=True, omit_defaults=False, gc=False):
    """Fields of every row: its cluster, the position of its cause, and its place among that cause's effects.

    Rows that come in thousands are made with positional arguments: keywords take five times as long.
    """

    output: ClassVar[str]

    cluster: str
    generation: Int64
    seq: Int64
    ordinal: Int64
    zxid: Int64
    time_ms: Int64  # the record's own wall time, never this machine's

    def subject_key(self) -> str:
        """Key for compaction: the newest row with a key replaces the older ones."""
        return f"{self.cluster}/{self.generation}-{self.seq}-{self.ordinal}"


# The first fields of every row, and of rows about effects of an event: the record's fields, then the effect's.
Stamp = tuple[str, int, int, int, int, int]
EffectStamp = tuple[str, int, int, int, int, int, str, Status, str, int]


class Transition(Row, frozen=True, gc=False, tag="transition", omit_defaults=True):
    """State change of a partition, replica, topic, broker or controller."""

    output: ClassVar[str] = "transitions"

    effect: str  # <controller epoch>-<event>-<ordinal>: the same for the provisional, final and withdrawn rows
    status: Status
    cause: str
    controller_epoch: Int64
    subject: str  # partition | replica | topic | broker | controller
    from_state: str = msgspec.field(name="from")
    to_state: str = msgspec.field(name="to")
    topic: str | None = None
    partition: Int64 | None = None
    broker: Int64 | None = None  # the replica's broker, the broker, or the controller's broker
    leader: Int64 | None = None
    leader_epoch: Int64 | None = None
    isr: tuple[Int64, ...] | None = None


# The controller's requests, by Kafka's names.
LEADER_AND_ISR: Final = "LeaderAndIsr"
UPDATE_METADATA: Final = "UpdateMetadata"
STOP_REPLICA: Final = "StopReplica"


class RequestedState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Partition state in a request, as in Kafka's `LeaderAndIsrPartitionState` and `UpdateMetadataPartitionState`.

    Fields that the request does not have are left out: a StopReplica has only the names, leader epoch and delete flag.
    """

    topic: str
    partition: Int64
    leader: Int64 | None = None  # -1 none; -2 in UpdateMetadata while the topic is being deleted
    leader_epoch: Int64 | None = None  # in StopReplica from 2.6: -2 while the topic is being deleted, -1 unknown
    isr: tuple[Int64, ...] | None = None
    replicas: tuple[Int64, ...] | None = None
    controller_epoch: Int64 | None = None  # of the controller whose write the state is
    partition_epoch: Int64 | None = None  # the state znode's data version, left out where it was not read
    leader_recovery_state: Int64 = 0  # LeaderAndIsr from 3.2; 1: recovering from an unclean election
    is_new: bool = False  # LeaderAndIsr from 1.0
    adding_replicas: tuple[Int64, ...] = ()  # LeaderAndIsr from 2.4
    removing_replicas: tuple[Int64, ...] = ()  # LeaderAndIsr from 2.4
    offline_replicas: tuple[Int64, ...] = ()  # UpdateMetadata from 1.0
    delete_partition: bool = False  # StopReplica from 2.6


class Request(Row, frozen=True, gc=False, tag="request", omit_defaults=True):
    """Request that the controller must send, or a part of a large one.

    LeaderAndIsr and StopReplica go to one broker each; UpdateMetadata goes with the same content to all its brokers. A
    withdrawn request has no partition states.
    """

    output: ClassVar[str] = "requests"

    effect: str  # the same for the provisional row and the final or withdrawn one, and for all parts
    status: Status
    cause: str
    controller_epoch: Int64
    controller: Int64  # the broker that sends it
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[Int64, ...]  # its receivers
    broker_epochs: tuple[Int64, ...] = ()  # theirs, in the same order, from 2.2
    part: Int64 = 1  # of `parts`, which a row of less than a megabyte needs
    parts: Int64 = 1
    live_leaders: tuple[Int64, ...] = ()  # LeaderAndIsr: the live brokers among the leaders
    live_brokers: tuple[Int64, ...] = ()  # UpdateMetadata
    all_partitions: bool = False  # UpdateMetadata of every partition; the states are not listed: see output `metadata`
    delete_partitions: bool = False  # StopReplica up to 2.5
    topic_ids: dict[str, str] = {}  # by topic, LeaderAndIsr and UpdateMetadata from 2.8
    partition_states: tuple[RequestedState, ...] = ()


class PartitionRow(Row, frozen=True, gc=False, tag="partition"):
    """Partition as it is now: its state in ZooKeeper, the controller's next write, and its problem."""

    output: ClassVar[str] = "metadata"

    topic: str
    partition: Int64
    state: str  # NewPartition | OnlinePartition | OfflinePartition | NonExistentPartition (the row's tombstone)
    leader: Int64  # in ZooKeeper: -1 none
    leader_epoch: Int64
    isr: tuple[Int64, ...]
    replicas: tuple[Int64, ...]
    adding_replicas: tuple[Int64, ...] = ()
    removing_replicas: tuple[Int64, ...] = ()
    controller_epoch: Int64 = -1
    partition_epoch: Int64 = -1  # the state znode's data version
    predicted_leader: Int64 | None = None  # set while the controller has a write due
    predicted_leader_epoch: Int64 | None = None
    predicted_isr: tuple[Int64, ...] | None = None
    problem: str | None = None  # why the partition cannot be used, or what it lacks: see `topics.Problem`
    problem_since_ms: Moment | None = None
    reason: str | None = None  # the problem as a sentence that names brokers and zxids
    deleting: bool = False  # its topic is queued for deletion: nothing is wrong with it any more
    writable_acks_all: bool | None = None  # its leader accepts acks=all, as far as ZooKeeper shows; null: not known
    in_sync_lacking: Int64 = 0  # replicas that must still get in sync before its leader accepts acks=all again
    in_sync_candidates: tuple[Int64, ...] = ()  # the replicas that can make up for them

    def subject_key(self) -> str:
        """Key with one row a partition."""
        return f"{self.cluster}/partition/{self.topic}/{self.partition}"


class BrokerRow(Row, frozen=True, kw_only=True, gc=False, tag="broker"):
    """Broker registration as it is now."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    registered: bool
    epoch: Int64  # the czxid of its znode
    since_ms: Moment
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    forgotten: bool = False  # it left a day ago and hosts no replicas: this is its last row

    def subject_key(self) -> str:
        """Key with one row a broker."""
        return f"{self.cluster}/broker/{self.broker}"


class ControllerRow(Row, frozen=True, kw_only=True, gc=False, tag="controller"):
    """Controller of the cluster now; broker -1 when there is none."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    epoch: Int64
    since_ms: Moment

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/controller"


class AlertRow(Row, frozen=True, kw_only=True, gc=False, tag="alert"):
    """Alert that was opened, changed or resolved; while the cluster cannot be seen it is unknown."""

    output: ClassVar[str] = "alerts"

    id: str  # stable while the alert is open: the same problem of the same subject has the same id
    alert: str  # the kind, e.g. BrokerCrashed; see docs/alerts.md
    state: str  # open | unknown | resolved
    severity: Severity
    subject: str  # e.g. broker 3; of an incident with several brokers the first
    group: str  # alerts with one cause share it, e.g. broker 3 is away
    since_ms: Moment
    cause: str  # one sentence
    topic: str | None = None
    partition: Int64 | None = None
    broker: Int64 | None = None  # the first of the incident
    expected: str | None = None  # what the controller is expected to do, and when
    action: str = ""  # what a person can do
    evidence: tuple[str, ...] = ()  # sentences with zxids and positions
    partitions: Int64 = 0  # how many are affected
    examples: tuple[str, ...] = ()  # some of them, e.g. orders-7
    brokers: tuple[Int64, ...] = ()  # all that have been part of it since it opened; the cause names the present ones

    def subject_key(self) -> str:
        """Key with one row an alert."""
        return f"{self.cluster}/{self.id}"


REACTION_BUCKETS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)


_Buckets = Annotated[
    tuple[Count, ...], msgspec.Meta(min_length=len(REACTION_BUCKETS_MS) + 1, max_length=len(REACTION_BUCKETS_MS) + 1)
]


class ReactionTimes(msgspec.Struct, frozen=True):
    """Histograms of the time from an event's cause to its first and to its last write, as ZooKeeper shows them.

    Counts by `REACTION_BUCKETS_MS`, with one bucket more than there are bounds: the last counts longer times.
    """

    first: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    first_sum_ms: Count = 0
    last: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    last_sum_ms: Count = 0


class SlowReaction(msgspec.Struct, frozen=True):
    """One of the controller's slowest reactions: the event, its cause in ZooKeeper, and the times to its writes."""

    event: str
    cause: str
    zxid: Int64
    began_ms: Moment
    controller_epoch: Int64
    first_ms: Int64
    last_ms: Int64


class Maintenance(msgspec.Struct, frozen=True):
    """Maintenance window in force, of these brokers, or of the whole cluster where it names none."""

    brokers: tuple[Int64, ...]
    until_ms: Int64  # by the wall clock, as the operator gave it
    reason: str = ""


class GaugesRow(Row, frozen=True, kw_only=True, gc=False, tag="gauges"):
    """Gauges of a cluster, by Kafka's own definitions where Kafka has the gauge; written at every heartbeat."""

    output: ClassVar[str] = "gauges"

    ready: bool  # a complete read has been applied
    session: str  # the forwarder's ZooKeeper session: connected | suspended | lost | unknown
    watch_mode: str  # persistent | one-shot | unknown
    controller: Int64  # broker id, -1 none
    controller_epoch: Int64
    controller_changes: Count  # since this state was created
    active_brokers: Int64
    topics: Int64
    partitions: Int64  # with a leader and ISR, as GlobalPartitionCount
    partitions_by_state: dict[str, Int64]
    replicas_by_state: dict[str, Int64]
    offline_partitions: Int64
    leaderless_partitions: Int64  # without a live leader now, election due or not
    under_replicated_partitions: Int64
    under_min_isr_partitions: Int64
    at_min_isr_partitions: Int64
    preferred_replica_imbalance: Int64
    topics_to_delete: Int64
    replicas_to_delete: Int64
    topics_ineligible_to_delete: Int64
    replicas_ineligible_to_delete: Int64
    leaders_by_broker: dict[Int64, Int64]
    replicas_by_broker: dict[Int64, Int64]
    under_replicated_by_broker: dict[Int64, Int64] = {}  # by leader, as its ReplicaManager counts
    under_min_isr_by_broker: dict[Int64, Int64] = {}
    at_min_isr_by_broker: dict[Int64, Int64] = {}
    sole_in_sync_by_broker: dict[Int64, Int64] = {}  # partitions whose ISR is this broker alone, live or not
    reassigning_partitions: Int64 = 0
    pending_writes: Int64  # expected writes of the controller that ZooKeeper has not shown yet
    records: dict[str, Count]  # applied, by kind, since this state was created
    elections: dict[str, Count]  # leader elections seen in ZooKeeper, by strategy
    isr_changes: dict[str, Count]  # shrink | expand
    refused: Count  # znodes that could not be read, since this state was created
    divergences: dict[str, Count]  # by kind
    reactions: dict[str, ReactionTimes] = {}  # the controller's, by kind of event
    slowest_reactions: tuple[SlowReaction, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()  # the windows in force

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/gauges"


class RefusedRow(Row, frozen=True, kw_only=True, gc=False, tag="refused"):
    """Znode or record that could not be read, kept whole; the last good value stays in force."""

    output: ClassVar[str] = "refused"

    path: str
    reason: str
    data: str | None = None
    data_base64: str | None = None


class BeginningRow(Row, frozen=True, kw_only=True, gc=False, tag="beginning"):
    """Start of a cluster's state from nothing: all earlier rows of the cluster in this output are void.

    It comes in each of `STANDING_OUTPUTS`, whose rows hold until a newer one of the same key.
    """

    output: ClassVar[str] = "metadata"

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/beginning"


# Within this the forwarder's clock and the job's agree: the newest record may be a heartbeat's second old, and is on
# its way as long as a slow disk or broker takes. It is far below the 30 s that count as late.
CLOCKS_AGREE_WITHIN_MS = 5_000


class ClusterProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one cluster in a batch; lag from the observation of its oldest record until its rows were written.

    `clock_behind_ms` is how far the forwarder's wall clock is behind the job's (below 0: ahead), 0 if they agree.
    """

    records: Int64
    observed_ms: Int64
    lag_ms: Int64
    clock_behind_ms: Int64 = 0


class JobRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """Progress of the job itself, as of its last batch but one; it belongs to no cluster and no record.

    Totals count from the start of the job's process, `began_ms`.
    """

    output: ClassVar[str] = "job"

    v: Int64 = msgspec.field(default_factory=lambda: OUTPUT_VERSION)
    time_ms: Int64  # end of the batch, by the job's clock
    began_ms: Int64
    batch: Int64
    batches: Count  # in all
    records: Count  # in all
    refused: Count  # lines that were no records, in all
    rows: Count  # in all
    phase_ms: dict[str, Int64]  # of the batch, by Spark's names
    total_phase_ms: dict[str, Count]  # in all
    state_bytes: Int64  # in the memory of the state stores
    state_values: Int64
    state_commit_ms: Int64  # of the batch, all tasks together
    clusters: dict[str, ClusterProgress] = {}  # clusters with records in the batch
    version: str = ""  # of the Kontrast that runs the job, empty in a source tree that is not installed

    def subject_key(self) -> str:
        """Key with one row a job."""
        return "job"


OutputRow = Union[  # noqa: UP007 (msgspec needs it at run time on 3.10)
    Transition, Request, PartitionRow, BrokerRow, ControllerRow, AlertRow, GaugesRow, RefusedRow, BeginningRow, JobRow
]

STANDING_OUTPUTS = ("metadata", "alerts", "gauges")
OUTPUTS = ("transitions", "requests", "metadata", "alerts", "gauges", "refused")


class BadRowError(ValueError):
    """Bytes that are no output row, or a row of a version that this Kontrast does not read."""


class NewerRowError(BadRowError):
    """Row of a newer version, which is left out, with its cluster; None: the row belongs to no cluster."""

    def __init__(self, version: int, cluster: str | None) -> None:
        super().__init__(f"output version {version} is newer than this Kontrast's {OUTPUT_VERSION}")
        self.cluster = cluster


class _Envelope(msgspec.Struct):
    """Fields of rows of every version."""

    v: Int64
    cluster: str | None = None


_ENCODER = msgspec.json.Encoder()
_DECODER: JsonDecoder[OutputRow] = JsonDecoder(OutputRow)  # type: ignore[arg-type]  # a union of kinds
_ENVELOPE_DECODER = JsonDecoder(_Envelope)


def encode_row(row: Row | JobRow) -> bytes:
    """Row as one JSON object without line ends."""
    return _ENCODER.encode(row)


def decode_row(line: bytes | str) -> OutputRow:
    """Row that `encode_row` wrote; raises BadRowError."""
    try:
        row = _DECODER.decode(line)
    except UndecodableError as error:
        _refuse_newer(line)  # a newer version may have other kinds and fields
        raise BadRowError(f"not an output row: {error}") from error
    if row.v > OUTPUT_VERSION:
        raise NewerRowError(row.v, None if isinstance(row, JobRow) else row.cluster)
    return row


def _refuse_newer(line: bytes | str) -> None:
    try:
        envelope = _ENVELOPE_DECODER.decode(line)
    except UndecodableError:
        return
    if envelope.v > OUTPUT_VERSION:
        raise NewerRowError(envelope.v, envelope.cluster)
