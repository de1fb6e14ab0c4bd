"""Which Kafka topics Kontrast needs, and the command that makes them where it may not do so itself.

Here belong what a topic must be and the sentence for a person. Asking brokers is up to whoever has a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transport.address import KafkaAddress
from transport.wanted import wanted_topic

PARTITIONS = 1  # the order of what is in a topic is part of what it says


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with one partition; of a compacted one the newest row of each key is kept for good."""

    name: str
    compacted: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """What is set where the broker's defaults do not do."""
        return {"cleanup.policy": "compact"} if self.compacted else {}


def stream_topics(address: KafkaAddress) -> tuple[Topic, ...]:
    """The topic of a stream, and the one beside it in which a complete read is asked for."""
    return Topic(address.topic), Topic(wanted_topic(address))


def output_topic(address: KafkaAddress, output: str) -> str:
    """The topic of an output: the address is the prefix of all of them."""
    return f"{address.topic}.{output}"


def refusal(address: KafkaAddress, topics: Sequence[Topic], reason: str) -> str:
    """One sentence for topics that are missing and that the brokers do not let Kontrast make."""
    names, one = ", ".join(topic.name for topic in topics), len(topics) == 1
    return (
        f"Kafka at {address.bootstrap_servers} lacks the {'topic' if one else 'topics'} {names} and refuses to create "
        f"{'it' if one else 'them'} ({reason.strip().rstrip('.')}): run "
        f"{creation_command(address.bootstrap_servers, topics)}"
    )


def creation_command(bootstrap_servers: str, topics: Iterable[Topic]) -> str:
    """A line for a shell that makes the topics with Kafka's own tool."""
    by_settings: dict[str, list[str]] = {}
    for topic in topics:
        settings = "".join(f" --config {name}={value}" for name, value in topic.settings.items())
        by_settings.setdefault(settings, []).append(topic.name)
    return "; ".join(
        f"for topic in {' '.join(names)}; do kafka-topics.sh --bootstrap-server {bootstrap_servers} --create "
        f"--topic $topic --partitions {PARTITIONS}{settings}; done"
        for settings, names in by_settings.items()
    )
