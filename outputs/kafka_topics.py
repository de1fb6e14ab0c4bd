"""Ask brokers, by kafka-python, for the topics that Kontrast needs, and create them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion, KafkaError, NoError, TopicAlreadyExistsError, for_code

from transport.topics import PARTITIONS, SETTINGS, ExistingTopic, RequiredTopic

_NONE: Final[dict[str, Any]] = {}
_THERE_NOW: Final = (NoError, TopicAlreadyExistsError)


def existing_topics(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> list[ExistingTopic]:
    """Return the existing topics with their visible settings. Raise KafkaError."""
    present = set(admin.list_topics())
    there = [topic for topic in topics if topic.name in present]
    if not there:
        return []
    described = {found["name"]: found for found in admin.describe_topics([topic.name for topic in there])}
    settings = _settings(admin, there)
    return [
        ExistingTopic(topic, len(described[topic.name]["partitions"]), settings.get(topic.name, {})) for topic in there
    ]


def create_topics(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> dict[RequiredTopic, KafkaError]:
    """Make the topics with their settings, wait for them, and return the brokers' refusals by topic.

    Raise KafkaError. Raise IncompatibleBrokerVersion before 2.4, where the client would have to choose the replicas.
    """
    wanted = {topic.name: {"num_partitions": PARTITIONS, "configs": topic.settings} for topic in topics}
    answers = {answer["name"]: answer for answer in admin.create_topics(wanted, raise_errors=False)["topics"]}
    errors = {
        topic: for_code(answers[topic.name]["error_code"])(answers[topic.name].get("error_message") or "")
        for topic in topics
    }
    refused = {topic: error for topic, error in errors.items() if not isinstance(error, _THERE_NOW)}
    if made := [topic.name for topic in topics if topic not in refused]:
        admin.wait_for_topics(made)
    return refused


def _settings(admin: KafkaAdminClient, topics: Sequence[RequiredTopic]) -> dict[str, dict[str, str]]:
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
