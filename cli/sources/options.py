"""Options that select a question's cluster and its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from cli.settings.config import (
    ConfigError,
    Setting,
    Settings,
    brokers_config,
    known_clusters,
    reached,
    read_flags,
    read_settings,
    snapshot_config,
)
from cli.settings.keys import keys_of
from cli.settings.options import config_option, settings_options
from cli.settings.parameters import MomentParameter, chroot_option
from cli.sources.source import UNNAMED, Source
from ingest.config import IngestConfig, ZooKeeperConfig
from questions.moments import TIMES
from streaming.config import StreamConfig
from transport.address import Address, AddressError, parse_address

_ONLY_OF_WATCHING: Final = keys_of(IngestConfig).keys() - keys_of(ZooKeeperConfig).keys()
_ONLY_OF_THE_JOB: Final = keys_of(StreamConfig).keys() - {"broker_config", "kafka_version"}
_GROUP: Final = "Where the cluster comes from"
_CONNECT_TIMEOUT: Final = "connect_timeout_seconds"


def _read_address(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Address | None:
    try:
        return None if text is None else parse_address(text)
    except AddressError as error:
        raise click.BadParameter(f"{error}.") from error


_OPTIONS: Final = (
    config_option,
    click.option(
        "--cluster",
        metavar="NAME",
        help="Name of the cluster. Optional if the file or stream has only one.",
    ),
    settings_options("watch", leave_out=_ONLY_OF_WATCHING),
    click.option(
        "--zk-data",
        "directories",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="DIR",
        help="Read the files of a ZooKeeper server instead, its dataDir and its separate dataLogDir.",
    ),
    chroot_option("In --zk-data, the znode that contains Kafka's znodes."),
    click.option(
        "--until",
        type=MomentParameter(),
        help=f"Moment in --zk-data or --from, in UTC or with an ending local: 0x1f, {TIMES}.",
    ),
    click.option(
        "--from",
        "stream",
        callback=_read_address,
        metavar="ADDRESS",
        help="Read Kontrast's data instead, the changes of `kontrast watch` or the outputs of `kontrast "
        "stream`, as journal:DIRECTORY or kafka://HOST:PORT/TOPIC.",
    ),
    settings_options("stream", leave_out=_ONLY_OF_THE_JOB),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a source to a grouped command. `source_of` reads their values."""
    own = len(getattr(command, "__click_params__", ()))
    for option in reversed(_OPTIONS):
        command = option(command)
    for parameter in command.__click_params__[own:]:  # type: ignore[attr-defined]  # click's own
        parameter.group = _GROUP
    return command


@click.command("mcp")
@source_options
def source_flags(**flags: Any) -> Mapping[str, Any]:  # noqa: ANN401 (click's own)
    """Return the given flags as a source needs them."""
    return flags


def read_source_flags(arguments: Sequence[str]) -> Mapping[str, Any]:
    """Return the flags of a source from a command line that has only these. Raise UsageError."""
    with source_flags.make_context("kontrast mcp", list(arguments)) as context:
        found: Mapping[str, Any] = source_flags.invoke(context)
        return found


def source_of(flags: Mapping[str, Any], *, patience_seconds: float | None = None) -> Source:
    """Return the source that the options of `source_options` name. Raise ConfigError.

    `patience_seconds` replaces the default of connect_timeout_seconds.
    """
    settings = read_settings(flags["config_file"], os.environ)
    if patience_seconds is not None:
        watch = {_CONNECT_TIMEOUT: Setting(patience_seconds, "default"), **settings.sections["watch"]}
        settings = replace(settings, sections={**settings.sections, "watch": watch})
    directories, stream = flags["directories"], flags["stream"]
    zookeeper = read_flags("watch", flags)
    given = {"--zookeeper": "zookeeper" in zookeeper, "--zk-data": bool(directories), "--from": stream is not None}
    if sum(given.values()) > 1:
        raise ConfigError(f"{' and '.join(name for name, is_given in given.items() if is_given)} exclude each other")
    if directories or stream:
        return _written_source(settings, flags, patience_seconds)
    if flags["until"] is not None:
        raise ConfigError("--until needs --zk-data or --from, because ZooKeeper has only the present")
    if not zookeeper and "zookeeper" not in settings.sections["watch"] and not settings.clusters:
        raise ConfigError(
            "which cluster? Give --zookeeper HOST:PORT[/CHROOT], --zk-data DIR, --from ADDRESS, or a --config file"
        )
    from cli.sources.zookeeper import ZooKeeperSource  # each source brings libraries that other sources do not need

    config, brokers = snapshot_config(settings, flags["cluster"], zookeeper, read_flags("stream", flags))
    return ZooKeeperSource(config, flags["cluster"] or _only_cluster(settings) or UNNAMED, brokers)


def source_of_all(flags: Mapping[str, Any], *, patience_seconds: float | None = None) -> Source:
    """Return the source, which is the configured outputs if several clusters are configured and none is named."""
    settings = read_settings(flags["config_file"], os.environ)
    named = flags["cluster"], flags["directories"], flags["stream"], "zookeeper" in read_flags("watch", flags)
    if len(settings.clusters) > 1 and not any(named):
        from cli.followed_outputs import where_outputs_are

        flags = {**flags, "stream": where_outputs_are(settings, {}).address}
    return source_of(flags, patience_seconds=patience_seconds)


def _written_source(settings: Settings, flags: Mapping[str, Any], patience_seconds: float | None) -> Source:
    cluster: str | None = flags["cluster"]
    own = settings.clusters.get(cluster, {}) if cluster else {}
    brokers = brokers_config(settings, own, read_flags("stream", flags))
    if flags["directories"]:
        from cli.sources.files import FilesSource

        return FilesSource(flags["directories"], flags["chroot"], flags["until"], cluster or UNNAMED, brokers)
    from cli.followed_outputs import Where, stale_after_ms_of
    from cli.sources.stream import StreamSource

    default = patience_seconds or keys_of(ZooKeeperConfig)[_CONNECT_TIMEOUT].default
    timeout_seconds = flags[_CONNECT_TIMEOUT] or default
    where = Where(reached(settings, flags["stream"]), float(str(timeout_seconds)), stale_after_ms_of(settings))
    configured = {
        name: brokers_config(settings, settings.clusters.get(name, {}), read_flags("stream", flags))
        for name in known_clusters(settings)
        if cluster is None
    }
    return StreamSource(where, cluster, brokers, flags["until"], configured)


def _only_cluster(settings: Settings) -> str | None:
    return next(iter(settings.clusters)) if len(settings.clusters) == 1 else None
