"""Reject contradicting settings of clusters. Shared settings must be equal."""

from __future__ import annotations

from collections.abc import Sequence

from cli.settings.errors import ConfigError
from cli.settings.keys import keys_of
from dashboards.exporter.config import ServeConfig
from ingest.config import IngestConfig
from streaming.config import StreamConfig
from transport.address import JournalAddress


def refuse_disagreements(configs: Sequence[IngestConfig]) -> None:
    """Raise ConfigError if clusters share a ZooKeeper, or share a journal or an address with different settings."""
    _refuse_shared_zookeeper(configs)
    _refuse_disagreement_about_a_journal(configs)
    _refuse_disagreement_about_metrics(configs)


def refuse_parted_pipeline(configs: Sequence[IngestConfig], stream: StreamConfig, serve: ServeConfig) -> None:
    """Raise ConfigError if a command does not read the output of the one before it."""
    for config in configs:
        if config.to != stream.source:
            raise ConfigError(
                f"cluster {config.cluster} is forwarded to {config.to}, and [stream] reads {stream.source}. "
                "One pipeline needs the same address for both"
            )
    if stream.sink not in serve.sources:
        raise ConfigError(
            f"[stream] writes {stream.sink}, and [serve] reads {serve.named_sources}. "
            "One pipeline needs the same address for both"
        )


def _refuse_shared_zookeeper(configs: Sequence[IngestConfig]) -> None:
    first_by_zookeeper: dict[str, str] = {}
    for config in configs:
        first = first_by_zookeeper.setdefault(config.zookeeper, config.cluster)
        if first != config.cluster:
            raise ConfigError(
                f"the clusters {first} and {config.cluster} have the same zookeeper {config.zookeeper}. "
                "Give each its own, or choose one with --cluster"
            )


def _refuse_disagreement_about_a_journal(configs: Sequence[IngestConfig]) -> None:
    # A journal has one writer in a process, so clusters that share the journal share its settings.
    first_by_journal: dict[JournalAddress, IngestConfig] = {}
    for config in configs:
        if not isinstance(config.to, JournalAddress):
            continue
        first = first_by_journal.setdefault(config.to, config)
        for name in keys_of(IngestConfig):
            if name.startswith("journal_") and getattr(config, name) != getattr(first, name):
                raise ConfigError(
                    f"the clusters {first.cluster} and {config.cluster} write the same {config.to} with a different "
                    f"{name}. Set it in [watch] for both, or give each its own journal"
                )


def _refuse_disagreement_about_metrics(configs: Sequence[IngestConfig]) -> None:
    # An address has one server with one certificate and one password, so clusters that share it must agree.
    first_by_listen: dict[str, IngestConfig] = {}
    for config in configs:
        if config.metrics_listen is None:
            continue
        first = first_by_listen.setdefault(config.metrics_listen, config)
        if first.listening != config.listening:
            raise ConfigError(
                f"the clusters {first.cluster} and {config.cluster} have the same metrics_listen "
                f"{config.metrics_listen} with different certificates or logins. Set these in [watch] for both"
            )
