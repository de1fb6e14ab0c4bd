"""Settings in ZooKeeper that the brokers of the cluster's release cannot parse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from controller.contract.ids import BrokerId
from controller.model.context import Header
from controller.rules.setting_values import (
    READS_ORPHANS,
    ignored_broker_setting,
    refused_topic_setting,
    stops_its_broker,
)

_TOPICS: Final = "/config/topics/"
_BROKERS: Final = "/config/brokers/"


class Unparsable(msgspec.Struct, frozen=True):
    """A setting that fails Kafka's check. `topic` or `broker` owns the setting."""

    path: str
    setting: str
    value: str  # empty for a broker's setting, which may be secret
    expected: str
    topic: str | None = None
    broker: BrokerId | None = None

    @property
    def sentence(self) -> str:
        """Return the setting with the value and the expectation, as part of a sentence."""
        owner = f"topic {self.topic}" if self.topic is not None else self.path
        value = f"={self.value[:80]}" if self.value else ""
        return f"{self.setting}{value} of {owner} (Kafka expects {self.expected})"


def unparsable_at_start(header: Header, topic_exists: Callable[[str], bool]) -> Iterator[Unparsable]:
    """Yield the settings that end a broker's start. A topic's setting ends the start of every broker."""
    span = header.releases
    for path, settings in sorted(header.configuration.unparsable.items()):
        topic, broker = path.removeprefix(_TOPICS), path.removeprefix(_BROKERS)
        for name, text in sorted(settings.items()):
            if topic != path:
                expected = refused_topic_setting(name, text, span, settings)
                if expected is not None and (span[1] >= READS_ORPHANS or topic_exists(topic)):
                    yield Unparsable(path, name, text, expected, topic=topic)
            elif broker.isdigit() and stops_its_broker(name, text, span):
                yield Unparsable(path, name, "", "a whole number", broker=BrokerId(int(broker)))


def ignored_by_brokers(header: Header) -> Iterator[Unparsable]:
    """Yield the settings in /config/brokers that brokers log as invalid and leave out."""
    for path, settings in sorted(header.configuration.unparsable.items()):
        for name, text in sorted(settings.items()) if path.startswith(_BROKERS) else ():
            expected = ignored_broker_setting(name, text, header.releases)
            if expected is not None:
                yield Unparsable(path, name, "", expected)
