"""Options that select a question's cluster and its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cli.settings.config import (
    ConfigError,
    Layer,
    Setting,
    Settings,
    brokers_config,
    known_clusters,
    reached,
    snapshot_config,
)
from cli.settings.keys import keys_of
from cli.settings.options import brokers_options, config_option, zookeeper_options
from cli.settings.parameters import MOMENT, Parsed, chroot_option, files_option
from cli.sources import PROBE_PATIENCE_SECONDS, UNNAMED, Source
from ingest.config import ZooKeeperConfig
from questions.moments import TIMES
from streaming.config import BrokersConfig
from transport.address import Address, parse_address

if TYPE_CHECKING:
    from cli.sources.stream import StreamSource
    from ingest.files.data_directory import Until

_GROUP: Final = "Where the cluster comes from"
_CONNECT_TIMEOUT: Final = "connect_timeout_seconds"


_OPTIONS: Final = (
    config_option,
    click.option(
        "--cluster",
        metavar="NAME",
        help="Name of the cluster. Optional if the file or stream has only one.",
    ),
    zookeeper_options,
    files_option("Read the files of a ZooKeeper server instead, its dataDir and its separate dataLogDir."),
    chroot_option("In --zk-data, the znode that contains Kafka's znodes."),
    click.option(
        "--until",
        type=MOMENT,
        help=f"Moment in --zk-data or --from, in UTC or with an ending local: 0x1f, {TIMES}.",
    ),
    click.option(
        "--from",
        "stream",
        type=Parsed("ADDRESS", parse_address),
        metavar="ADDRESS",
        help="Read Kontrast's data instead, the changes of `kontrast watch` or the outputs of `kontrast "
        "stream`, as journal:DIRECTORY or kafka://HOST:PORT/TOPIC.",
    ),
    brokers_options,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The source and the cluster that a command's options choose, with the settings of file and environment."""

    settings: Settings
    cluster: str | None
    directories: tuple[Path, ...]
    chroot: str
    until: Until | None
    stream: Address | None
    of_session: Layer
    of_brokers: Layer

    def of_all(self) -> Chosen:
        """Return the configured outputs instead, if several clusters are configured and none is named."""
        return self if self.cluster or len(self.settings.clusters) < 2 else self.of_outputs()

    def of_outputs(self) -> Chosen:
        """Return the configured outputs instead, unless another source is named."""
        from cli.followed_outputs import configured_outputs

        where = configured_outputs(self.settings)
        named = self.directories or self.stream or "zookeeper" in self.of_session
        return self if named or where is None else replace(self, stream=where.address)

    def source(self, *, patience_seconds: float | None = None) -> Source:
        """Return the source. `patience_seconds` replaces the default of connect_timeout_seconds. Raise ConfigError."""
        settings = self.settings
        each = {"--zookeeper": "zookeeper" in self.of_session, "--zk-data": self.directories, "--from": self.stream}
        given = [name for name, value in each.items() if value]
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(given)} exclude each other")
        if self.directories:
            from cli.sources.records import FilesSource  # each source brings libraries that other sources do not need

            name, brokers = self.cluster or UNNAMED, self._brokers(self.cluster)
            return FilesSource(self.directories, self.chroot, self.until, name, brokers)
        if self.stream is not None:
            return self._stream_source(self.stream, patience_seconds)
        if self.until is not None:
            raise ConfigError("--until needs --zk-data or --from, because ZooKeeper has only the present")
        if not self.of_session and "zookeeper" not in settings.sections["watch"] and not settings.clusters:
            raise ConfigError(
                "which cluster? Give --zookeeper HOST:PORT[/CHROOT], --zk-data DIR, --from ADDRESS, or a --config file"
            )
        from cli.sources.zookeeper import ZooKeeperSource

        patience = {} if patience_seconds is None else {_CONNECT_TIMEOUT: Setting(patience_seconds, "default")}
        sections = {**settings.sections, "watch": {**patience, **settings.sections["watch"]}}
        with_default = replace(settings, sections=sections)
        config, brokers = snapshot_config(with_default, self.cluster, self.of_session, self.of_brokers)
        known = known_clusters(settings)
        only = self.cluster or (known[0] if len(known) == 1 else None)
        zookeeper = ZooKeeperSource(config, only or UNNAMED, brokers)
        running = replace(self.of_outputs(), cluster=only)
        if running.stream is None or self.of_brokers:
            return zookeeper
        from cli.sources.stream import ConfiguredSource

        return ConfiguredSource(running._stream_source(running.stream, PROBE_PATIENCE_SECONDS), zookeeper)

    def _stream_source(self, stream: Address, patience_seconds: float | None) -> StreamSource:
        from cli.followed_outputs import Where, stale_after_ms_of
        from cli.sources.stream import StreamSource

        default = Setting(patience_seconds or keys_of(ZooKeeperConfig)[_CONNECT_TIMEOUT].default, "default")
        timeout_seconds = float(str(self.of_session.get(_CONNECT_TIMEOUT, default).value))
        where = Where(reached(self.settings, stream), timeout_seconds, stale_after_ms_of(self.settings))
        known = known_clusters(self.settings) if self.cluster is None else ()
        configured = {name: self._brokers(name) for name in known}
        return StreamSource(where, self.cluster, self._brokers(self.cluster), self.until, configured)

    def _brokers(self, cluster: str | None) -> BrokersConfig:
        return brokers_config(self.settings, self.settings.clusters.get(cluster or "", {}), self.of_brokers)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a source to a grouped command, which gets all their values as one, `chosen`."""

    @wraps(command)
    def decorated(*arguments: Any, **given: Any) -> Any:  # noqa: ANN401 (click's own)
        chosen = Chosen(**{each.name: given.pop(each.name) for each in fields(Chosen)})
        return command(*arguments, chosen=chosen, **given)

    own = len(getattr(command, "__click_params__", ()))
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    for parameter in decorated.__click_params__[own:]:  # type: ignore[attr-defined]  # click's own
        parameter.group = _GROUP
    return decorated


@click.command("mcp")
@source_options
def source_flags(chosen: Chosen) -> Chosen:
    """Return what the given flags choose."""
    return chosen


def read_source_flags(arguments: Sequence[str]) -> Chosen:
    """Return what a command line with only the flags of a source chooses. Raise UsageError and ConfigError."""
    with source_flags.make_context("kontrast mcp", list(arguments)) as context:
        found: Chosen = source_flags.invoke(context)
        return found
