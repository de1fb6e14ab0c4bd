"""Remove a cluster that is no longer watched from every output and page."""

from __future__ import annotations

import sys
import threading
from typing import Final

import click

from cli.followed_outputs import Where, followed
from cli.printing import standard_error
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import (
    ConfigError,
    Layer,
    Setting,
    Settings,
    known_clusters,
    reached,
)
from cli.settings.keys import keys_of
from cli.settings.options import config_option, settings_options
from controller.contract.records import Record, RecordKind
from ingest import forgetting
from questions.cluster_rows import ClusterSnapshot
from streaming.config import StreamConfig
from transport.address import Address, JournalAddress, KafkaAddress
from wording.sentences import counted
from wording.times import moment

_OUTPUTS: Final = ("job", "alerts", "gauges")
_KEYS: Final = {"from", "to", "connect_timeout_seconds"}
_EPILOG: Final = """\b
Examples:
  kontrast forget orders --config kontrast.toml
  kontrast forget orders --from journal:/var/lib/kontrast/changes --to journal:/var/lib/kontrast/outputs --yes

\b
Exit codes:
  0  the cluster is forgotten, or was already
  1  no change, because the answer was no
  2  a flag or setting is wrong, or the cluster is unknown
  3  `kontrast watch` still forwards it, or the stream or the outputs cannot be used
"""


@click.command(epilog=_EPILOG)
@click.argument("cluster")
@config_option
@settings_options("stream", leave_out=keys_of(StreamConfig).keys() - _KEYS)
@click.option("--yes", is_flag=True, help="Skip the question.")
def forget(cluster: str, settings: Settings, *, yes: bool, stream: Layer) -> int:
    """Drop a cluster that is not watched any more, as after its migration to KRaft is finalized.

    Its open alerts are resolved, and metadata, alerts, gauges, /metrics, pages and `kontrast status` have it no more.
    ZooKeeper and Kafka are not touched. Restart the `kontrast watch` that forwards it without the cluster first.
    """
    known = _ClusterToForget(settings, stream, cluster)
    code = run_until_stopped({"forget": known.read})
    return code if code or known.stopped else _forget(known, settings, yes=yes)


def _forget(known: _ClusterToForget, settings: Settings, *, yes: bool) -> int:
    known.require()
    cluster = known.cluster
    if known.newest is not None and known.newest.kind is RecordKind.FORGOTTEN:
        standard_error.say(f"{cluster} was forgotten already{known.until_applied}")
        return ExitCode.OK
    if not yes and not _confirmed(known):
        standard_error.say(f"{cluster} stays, without a change")
        return ExitCode.FAILED
    code = run_until_stopped({"forget": known.forget})
    if known.stopped:
        standard_error.say(f"{cluster} stays, without a change")
    elif code == ExitCode.OK:
        standard_error.say(f"{cluster} is forgotten, `kontrast stream` drops it with its next batch")
        if cluster in known_clusters(settings):
            standard_error.warn(
                f"{cluster} is still configured. Remove it, or the next `kontrast watch` watches it again"
            )
    return code


class _ClusterToForget:
    """The cluster to forget, with its newest record in the stream and its rows in the outputs."""

    def __init__(self, settings: Settings, flags: Layer, cluster: str) -> None:
        layer = {**settings.sections["stream"], **flags}
        stream, outputs, timeout = (layer.get(name) for name in ("from", "to", "connect_timeout_seconds"))
        if stream is None:
            raise ConfigError(
                "which stream? Give --from ADDRESS, KONTRAST_STREAM__FROM, or from in [stream] of the --config file"
            )
        self.cluster = cluster
        self.newest: Record | None = None
        self.shown: ClusterSnapshot | None = None
        self.stopped = False
        self._others: list[str] = []
        self._stream = reached(settings, _address(stream))
        self._outputs = None if outputs is None else reached(settings, _address(outputs))
        default = keys_of(StreamConfig)["connect_timeout_seconds"].default
        self._timeout_seconds = float(str(timeout.value if timeout else default))

    def read(self, stop: threading.Event) -> None:
        """Read the cluster's rows and records. Raise IngestError or ServeError."""
        self.newest = forgetting.newest_of(self._stream, self.cluster, stop)
        if self._outputs is not None:
            with followed(Where(self._outputs, self._timeout_seconds), _OUTPUTS) as outputs:
                outputs.wait_until_read(stop)
                self.shown = outputs.memory.cluster(self.cluster)
                self._others = [snapshot.cluster for snapshot in outputs.memory.clusters()]
        self.stopped = stop.is_set()

    def require(self) -> None:
        """Raise ConfigError for an unknown cluster."""
        if self.newest is not None or self.shown is not None:
            return
        there = f", {self._outputs} has {', '.join(self._others)}" if self._others else ""
        raise ConfigError(f"there is no cluster {self.cluster!r} in {self._stream}{there}")

    @property
    def until_applied(self) -> str:
        """Return a clause about the job's part, empty if the outputs do not have the cluster."""
        return "" if self.shown is None else ", `kontrast stream` drops it when it runs"

    def sentence(self) -> str:
        """Return the known facts about the cluster as a sentence."""
        parts = []
        if self.newest is not None:
            parts.append(f"last record of {moment(self.newest.observed_ms)}")
        if self.shown is not None:
            gauges = self.shown.gauges
            if gauges is not None:
                parts.append(counted(sum(gauges.partitions_by_state.values()), "partition"))
            parts.append(f"{counted(len(self.shown.open_alerts), 'alert')} open")
        return f"{self.cluster}: {', '.join(parts)}"

    def forget(self, stop: threading.Event) -> None:
        """Append the record that forgets the cluster. Raise IngestError."""
        gauges = None if self.shown is None else self.shown.gauges
        generation = -1 if gauges is None else gauges.generation
        self.stopped = not forgetting.forget(self._stream, self.cluster, generation, stop)


def _address(setting: Setting) -> Address:
    assert isinstance(setting.value, (JournalAddress, KafkaAddress)), setting
    return setting.value


def _confirmed(known: _ClusterToForget) -> bool:
    standard_error.say(known.sentence())
    standard_error.say(
        "this resolves its open alerts, and removes it from metadata, alerts, gauges, /metrics, pages and `kontrast "
        "status`. ZooKeeper, Kafka and its past rows do not change. A later `kontrast watch` begins afresh"
    )
    if not sys.stdin.isatty():
        raise click.UsageError("No person can answer here. Give --yes.")
    return click.confirm(f"Forget {known.cluster}?", err=True)
