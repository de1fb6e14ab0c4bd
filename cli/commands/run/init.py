"""Write a configuration for a cluster, by one complete read of its ZooKeeper."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.printing import standard_error
from cli.printing.standard_output import print_document, print_json
from cli.running import ExitCode
from cli.settings.config import ConfigError, Layer, build, read_settings
from cli.settings.keys import keys_of
from cli.settings.options import settings_options
from cli.sources.asking import ask_as_long_as
from cli.sources.zookeeper import where_clusters_are
from controller.contract.job_row import JobRow
from controller.contract.outputs import OUTPUTS
from controller.rules.releases import Release, release_word
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import StoppedError
from questions.question import NotFoundError
from wording.sentences import counted

if TYPE_CHECKING:
    from controller.view.types import Context
    from ingest.complete_read import CompleteRead

_ONLY_OF_WATCHING: Final = keys_of(IngestConfig).keys() - keys_of(ZooKeeperConfig).keys()
_SECTION: Final = "watch"
_TIMEOUT: Final = "connect_timeout_seconds"
_STANDARD_OUTPUT: Final = Path("-")
# One change a second over seven days is proposed. docs/how-to/capacity.md has the same figures for fleets.
_SECONDS: Final = 7 * 86_400
# Megabytes of resident memory, and for each 1,000 partitions, as measured with 2,000 to 200,000 partitions, and for the
# job up to 1,000,000.
_MEMORY_MB: Final = {"watch": (25, 0.7), "stream": (580, 3.1), "serve": (60, 1.6)}
_JAVA_MB: Final = (670, 0.6)  # of `stream`, too
_JAVA_BESIDE_HEAP_MB: Final = 300  # classes, threads and buffers
_LARGE_HEAP_PARTITIONS: Final = 500_000
_HEADROOM: Final = 1.25  # the limit in relation to the measurement
_PEAK_MB: Final = 25  # a complete read needs so much beyond the measurement, as does the process of `up`
# Bytes for each partition of a complete read, and for one change and one heartbeat.
_CHANGES_BYTES: Final = (370, 360 + 230)
_OUTPUTS_BYTES: Final = (615, 3_800 + 3_450)
_KEPT_COMPLETE_READS: Final = 16
_LEAST_RETAIN_BYTES: Final = 256 * 1024**2
_EPILOG: Final = """\b
Examples:
  kontrast init --zookeeper zk1:2181,zk2:2181/kafka --cluster orders
  kontrast init --zookeeper zk1:2181 --cluster orders --out /etc/kontrast.toml
  kontrast init --zookeeper zk9:2181 --cluster audit --out /etc/kontrast.toml --add

\b
Exit codes:
  0  the configuration is written
  2  a flag is wrong, the file exists, or the address has no cluster, or several
  3  ZooKeeper cannot be reached
"""


@click.command(epilog=_EPILOG)
@settings_options("watch", leave_out=_ONLY_OF_WATCHING)
@click.option("--cluster", metavar="NAME", help="The cluster's name in all outputs. By default the end of the chroot.")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=Path("/var/lib/kontrast"),
    show_default=True,
    metavar="DIR",
    help="Directory for changes, outputs and checkpoint.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    default=Path("kontrast.toml"),
    show_default=True,
    metavar="FILE",
    help="New file to write, or - for standard output.",
)
@click.option("--add", is_flag=True, help="Add the cluster to the existing file --out.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON object.")
def init(cluster: str | None, state: Path, out: Path, *, add: bool, as_json: bool, watch: Layer) -> int:  # noqa: PLR0913 (one parameter an option)
    """Write a configuration for a cluster, by one complete read of its ZooKeeper.

    It finds the chroot where the address has none, the brokers' release and racks, and the number of partitions. It
    proposes names, directories, retention and memory. Nothing is written to ZooKeeper.
    """
    _refuse(cluster, out, as_json=as_json, add=add)
    known = read_settings(out, {}).clusters if add else {}
    settings = read_settings(None, os.environ)
    config = build(ZooKeeperConfig, _SECTION, settings.sections[_SECTION], watch)

    def look(stop: threading.Event) -> int:
        found = _find(config, cluster, stop)
        if found.cluster in known:
            raise NotFoundError(f"{out} has cluster {found.cluster} already. Name another one with --cluster")
        table = _table(found, {name: setting.value for name, setting in watch.items()})
        text = (
            f"\n# {found.sentence()}.\n{table}" if add else _configuration(found, state.expanduser().absolute(), table)
        )
        if out == _STANDARD_OUTPUT:
            print_document(text)
        else:
            _write(out, text, add=add)
        if as_json:
            print_json(found.as_json())
        standard_error.say(f"{found.sentence()}. Next run kontrast up --config {out} --check")
        return ExitCode.OK

    return ask_as_long_as(look)


def _refuse(cluster: str | None, out: Path, *, as_json: bool, add: bool) -> None:
    if cluster is not None and len(cluster.split()) != 1:
        raise ConfigError(f"--cluster {cluster!r} is no name. Use one word")
    if as_json and out == _STANDARD_OUTPUT:
        raise ConfigError("--json and --out - both write to standard output. Choose one")
    if not add and out != _STANDARD_OUTPUT and out.exists():
        raise ConfigError(f"{out} exists. Add the cluster to it with --add, or name another file with --out")


@dataclass(frozen=True, slots=True)
class Needs:
    """Memory and disk of Kontrast for one cluster."""

    partitions: int

    @property
    def memory_mb(self) -> int:
        """Return the resident memory of all commands, as measured."""
        return round(sum(self._mb(part) for part in (*_MEMORY_MB.values(), _JAVA_MB)))

    @property
    def memory_limits_mb(self) -> dict[str, int]:
        """Return the memory limit of each command, with a full Java heap. `up` runs all other commands."""
        full = {command: self._mb(part) for command, part in _MEMORY_MB.items()}
        full["stream"] += self.heap_mb + _JAVA_BESIDE_HEAP_MB
        parts = {"up": sum(full.values()), **full}
        return {command: round(size * _HEADROOM) + _PEAK_MB for command, size in parts.items()}

    @property
    def heap_mb(self) -> int:
        """Return the size of Java's heap, for `driver_memory` in [stream]."""
        return 2_048 if self.partitions > _LARGE_HEAP_PARTITIONS else 1_024

    @property
    def changes_bytes(self) -> int:
        """Return the bytes of the stream over the days, its complete reads included."""
        return self._bytes(*_CHANGES_BYTES)

    @property
    def outputs_bytes(self) -> int:
        """Return the bytes of all outputs over the days."""
        return self._bytes(*_OUTPUTS_BYTES)

    @property
    def retain_bytes(self) -> int:
        """Return the bytes of a journal to keep, which are the next power of two for the days' changes."""
        return 1 << (max(_LEAST_RETAIN_BYTES, self.changes_bytes) - 1).bit_length()

    def _mb(self, part: tuple[int, float]) -> float:
        base, each = part
        return base + each * self.partitions / 1_000

    def _bytes(self, a_partition: int, a_second: int) -> int:
        return _KEPT_COMPLETE_READS * self.partitions * a_partition + a_second * _SECONDS


@dataclass(frozen=True, slots=True)
class FoundCluster:
    """The facts about a cluster that its ZooKeeper shows."""

    cluster: str
    zookeeper: str
    releases: tuple[Release, Release]
    racks: Mapping[str, tuple[int, ...]]  # the brokers of each rack, "" for brokers without a rack
    topics: int
    partitions: int

    @property
    def needs(self) -> Needs:
        """Return the needs of this cluster alone."""
        return Needs(self.partitions)

    @property
    def release(self) -> str:
        """Return the release, or the range of releases that write such znodes."""
        oldest, newest = map(release_word, self.releases)
        return oldest if oldest == newest else f"{oldest} to {newest}"

    def sentence(self) -> str:
        """Return the cluster in one line."""
        brokers = sum(map(len, self.racks.values()))
        named = [f"{rack} ({', '.join(map(str, ids))})" for rack, ids in self.racks.items() if rack]
        racks = f" in {counted(len(named), 'rack')}: {', '.join(named)}" if named else ", no racks"
        sizes = f"{counted(self.topics, 'topic')}, {counted(self.partitions, 'partition')}"
        return f"{self.cluster} at {self.zookeeper}: Kafka {self.release}, {counted(brokers, 'broker')}{racks}; {sizes}"

    def as_json(self) -> dict[str, object]:
        """Return the facts as fields of a JSON object."""
        return {
            "cluster": self.cluster,
            "zookeeper": self.zookeeper,
            "releases": [release_word(release) for release in self.releases],
            "racks": self.racks,
            "topics": self.topics,
            "partitions": self.partitions,
            "memory_limits_mb": self.needs.memory_limits_mb,
            "retain_bytes": self.needs.retain_bytes,
        }


def _find(config: ZooKeeperConfig, name: str | None, stop: threading.Event) -> FoundCluster:
    from controller.restore.stored_context import new_context
    from controller.step import steps
    from ingest.complete_read import find_chroots  # not for --help

    read = _read(config, stop)
    if not read.values and not read.forbidden and not config.chroot:
        chroots = [chroot for chroot in find_chroots(config, stop) if chroot != "/"]
        if len(chroots) == 1:
            config = dataclasses.replace(config, zookeeper=f"{config.servers}{chroots[0]}")
            read = _read(config, stop)
    if not read.values:
        if read.forbidden:
            raise NotFoundError(f"{min(read.forbidden)} may not be read. Log in, or give this address read access")
        raise NotFoundError(where_clusters_are(config, stop))
    cluster = name or config.chroot.rpartition("/")[2] or "kafka"
    return _found(config.zookeeper, cluster, steps(new_context(cluster), read.records(cluster)).context)


def _read(config: ZooKeeperConfig, stop: threading.Event) -> CompleteRead:
    from ingest.complete_read import read_once

    with standard_error.progress() as show:
        read = read_once(config, stop, show)
    if stop.is_set():
        raise StoppedError
    return read


def _found(zookeeper: str, cluster: str, context: Context) -> FoundCluster:
    header = context.header
    topics = [topic for _, topic in context.topics if topic.exists]
    racks: dict[str, tuple[int, ...]] = {}
    for broker_id, broker in sorted(header.brokers.items()):
        racks[broker.rack or ""] = (*racks.get(broker.rack or "", ()), broker_id)
    partitions = sum(len(topic.partitions) for topic in topics)
    releases = header.configuration.evidence.releases()
    return FoundCluster(cluster, zookeeper, releases, racks, len(topics), partitions)


def _table(found: FoundCluster, given: Mapping[str, object]) -> str:
    """Return the cluster's own table."""
    login = "".join(
        f"{name} = {json.dumps(value)}\n" for name, value in given.items() if name not in ("zookeeper", _TIMEOUT)
    )
    oldest, newest = found.releases
    release = f'kafka_version = "{release_word(oldest)}"'
    if oldest != newest:
        release = (
            f"# {release}    # The znodes show {found.release}. Set yours, because some rules differ between them."
        )
    return f"[clusters.{json.dumps(found.cluster)}]\nzookeeper = {json.dumps(found.zookeeper)}\n{login}{release}\n"


def _configuration(found: FoundCluster, state: Path, table: str) -> str:
    """Return the text of the file with the changed defaults, each with its reason."""
    needs = found.needs
    changes, outputs = (json.dumps(f"journal:{state / name}") for name in ("changes", "outputs"))
    return f"""\
# {found.sentence()}.
# `kontrast init` wrote this file. docs/reference-config.toml has every other setting with its default.

{table}
[watch]
to = {changes}
metrics_listen = "127.0.0.1:9643"
# One change a second and {found.partitions:,} partitions are {_shown_bytes(needs.changes_bytes)} in seven days.
journal_retain_bytes = {needs.retain_bytes}

[stream]
from = {changes}
to = {outputs}
checkpoint = {json.dumps(str(state / "checkpoint"))}
# Outputs of seven days are {_shown_bytes(needs.outputs_bytes)}. Without an age, each output keeps up to 4 GiB.
output_retain_seconds = {{ {_ages()} }}
# All of Kontrast needs {needs.memory_mb:,} MB. Limit it to {needs.memory_limits_mb["up"]:,} MB.
driver_memory = "{needs.heap_mb}m"

[serve]
from = {outputs}
listen = "127.0.0.1:9642"
"""


def _shown_bytes(count: int) -> str:
    return f"{count / 1000**3:.1f} GB" if count >= 1000**3 else f"{count / 1000**2:.0f} MB"


def _ages() -> str:
    """Return the age limit of each output."""
    return ", ".join(f'{output} = "{_SECONDS}"' for output in (*OUTPUTS, JobRow.output))


def _write(out: Path, text: str, *, add: bool) -> None:
    try:
        with out.open("a" if add else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}") from error
