"""Parse the address of a stream: `journal:DIRECTORY` or `kafka://HOST:PORT[,HOST:PORT…]/TOPIC`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from transport.kafka_login import NO_LOGIN, KafkaLogin


class AddressError(ValueError):
    """An address that cannot be understood."""


@dataclass(frozen=True, slots=True)
class JournalAddress:
    """A journal in a directory. For outputs, the directory contains one journal per output."""

    directory: Path

    def __str__(self) -> str:
        return f"journal:{self.directory}"


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A Kafka topic and the login to its brokers. For outputs, `topic` is the prefix of one topic per output."""

    bootstrap_servers: str
    topic: str
    login: KafkaLogin = field(default=NO_LOGIN, compare=False, repr=False)

    def __str__(self) -> str:
        return f"kafka://{self.bootstrap_servers}/{self.topic}"


Address = JournalAddress | KafkaAddress

_SERVER = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
_KAFKA = re.compile(rf"kafka://(?P<servers>{_SERVER}(?:,{_SERVER})*)/(?P<topic>[A-Za-z0-9._-]{{1,249}})")


def parse_address(text: str) -> Address:
    """Parse an address. Raise AddressError with the expected form."""
    if text.startswith("journal:") and len(text) > len("journal:"):
        return JournalAddress(Path(text.removeprefix("journal:")).expanduser())
    match = _KAFKA.fullmatch(text)
    if match:
        return KafkaAddress(match["servers"], match["topic"])
    raise AddressError(f"{text!r} is no stream address. Give journal:DIRECTORY or kafka://HOST:PORT/TOPIC")
