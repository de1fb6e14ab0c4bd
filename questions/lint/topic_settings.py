"""Checks of topics' settings, of throttles, and of the internal topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from controller.contract.znodes import ZnodeError, decode_config
from controller.rules.setting_definitions import TOPIC_SETTINGS
from controller.view.types import THROTTLES
from questions.lint.checks import Linted
from wording.sentences import bracketed, near

_CONFIGS: Final = ("/config/topics", "/config/brokers")
_THROTTLED: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_COMPACTED: Final = ("__consumer_offsets", "__transaction_state")
_DEFAULT_PARTITIONS: Final = 50


def _settings(cluster: Linted, parent: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the readable settings below the parent, by name."""
    begin = f"{parent}/"
    for path, record in sorted(cluster.records.items()):
        if path.startswith(begin):
            try:
                yield path.removeprefix(begin), decode_config(record.raw).config
            except ZnodeError:
                continue  # a check of its own finds it


def unknown_settings(cluster: Linted) -> Iterator[str]:
    """Yield settings of topics whose name no release knows, with the nearest name that Kafka knows."""
    for topic, config in _settings(cluster, _CONFIGS[0]):
        for name in sorted(config.keys() - TOPIC_SETTINGS.keys()):
            of_brokers = name.removeprefix("log.")
            known = [of_brokers] if of_brokers in TOPIC_SETTINGS else near(name, TOPIC_SETTINGS)
            nearest = f", perhaps meant as {known[0]}" if known else ""
            yield f"{name}={config[name][:40]} of topic {topic}{nearest}"


def forgotten_throttles(cluster: Linted) -> Iterator[str]:
    """Yield throttled topics and throttled brokers while nothing is reassigned."""
    header = cluster.picture.header
    if header.triggers.reassign is not None or any(
        partition.reassigning for _, topic in cluster.topics for partition in topic.partitions.values()
    ):
        return
    for parent, names in zip(_CONFIGS, (_THROTTLED, THROTTLES), strict=True):
        for name, config in _settings(cluster, parent):
            if found := [f"{key}={config[key][:40]}" for key in names if config.get(key)]:
                yield f"{', '.join(found)} of {parent}/{name}"


def deleted_internal_topics(cluster: Linted) -> Iterator[str]:
    """Yield internal topics that are not compacted, so that their records are deleted by time."""
    for topic, config in _settings(cluster, _CONFIGS[0]):
        policy = config.get("cleanup.policy", "compact")
        if topic in _COMPACTED and "delete" in policy:
            retention = f", retention.ms={config['retention.ms']}" if "retention.ms" in config else ""
            yield f"{topic} (cleanup.policy={policy}{retention})"


def grown_internal_topics(cluster: Linted) -> Iterator[str]:
    """Yield internal topics with more partitions than the default, because brokers map groups by that number."""
    for name, topic in cluster.topics:
        if name in _COMPACTED and len(topic.partitions) > _DEFAULT_PARTITIONS:
            yield f"{name} ({len(topic.partitions)} partitions)"


def gaps(cluster: Linted) -> Iterator[str]:
    """Yield topics whose partitions are not numbered without a gap."""
    for name, topic in cluster.topics:
        numbers = sorted(topic.partitions)
        if missing := sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)):
            yield f"{name} (without partition {bracketed(missing[:3])}, of {len(numbers)})"
