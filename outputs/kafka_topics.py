"""Ask brokers, by kafka-python, for the topics that Kontrast needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion

from transport.topics import SETTINGS, ExistingTopic, Topic

_NONE: Final[dict[str, Any]] = {}


def existing_topics(admin: KafkaAdminClient, topics: Sequence[Topic]) -> list[ExistingTopic]:
    """The topics that exist, with the settings that may be seen. Raises KafkaError."""
    present = set(admin.list_topics())
    there = [topic for topic in topics if topic.name in present]
    if not there:
        return []
    described = {found["name"]: found for found in admin.describe_topics([topic.name for topic in there])}
    settings = _settings(admin, there)
    return [
        ExistingTopic(topic, len(described[topic.name]["partitions"]), settings.get(topic.name, {})) for topic in there
    ]


def _settings(admin: KafkaAdminClient, topics: Sequence[Topic]) -> dict[str, dict[str, str]]:
    """Return settings by topic, without topics whose settings an ACL hides."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name, list(SETTINGS)) for topic in topics]
    try:
        answers = admin.describe_configs(resources, config_filter="all").get("topic", _NONE)
    except IncompatibleBrokerVersion:  # before 0.11
        return {}
    return {
        name: {key: found["value"] for key, found in values.items() if found.get("value") is not None}
        for name, values in answers.items()
    }
