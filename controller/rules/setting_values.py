"""Values of the settings in /config/topics and /config/brokers as Kafka parses them (`ConfigDef.parseType`, 3.9).

A broker parses the settings of all topics before it loads its logs, and fails at a value that it cannot parse. Tried
with 0.10.2, 1.1, 2.8 and 3.9: it fails whether it hosts the topic or not. Settings in /config/brokers are only logged
and left out, but for a throttle's rate that is no number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from controller.rules.releases import Release
from controller.rules.setting_definitions import (
    BROKER_SETTINGS,
    MESSAGE_FORMATS,
    RELEASES,
    TOPIC_SETTINGS,
    Definition,
)

Span = tuple[Release, Release]

# A broker up to 3.5 fails at a rate in its own znode that is no number. 3.9 logs it.
_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LOGS_A_RATE: Final[Release] = (3, 9)
# From 3.0 to 3.5 the constructor of LogConfig compares settings of a topic, although no broker uses the first of each.
# -1 is no limit, but counts as the smallest one, and -2 is always allowed.
_COMPARED: Final[Mapping[str, str]] = {"local.retention.bytes": "retention.bytes", "local.retention.ms": "retention.ms"}
_COMPARED_FROM: Final[Release] = (3, 0)
_COMPARED_UNTIL: Final[Release] = (3, 5)
# 3.9 parses settings whose topic is gone, too. Up to 3.5 nobody reads them.
READS_ORPHANS: Final[Release] = (3, 9)

_INTEGER: Final = re.compile(r"[+-]?\d{1,20}")
_DOUBLE: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
_REPLICA: Final = re.compile(r"([0-9]+):([0-9]+)")
_JAVA_SPACES: Final = "".join(map(chr, range(33)))
_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}
_RANGE: Final = re.compile(r"(-?[0-9.]+) \.\.(?: (-?[0-9.]+))?(?: or (-?[0-9]+))?")


def refused_topic_setting(
    name: str, text: str, span: Span, others: Mapping[str, str] = MappingProxyType({})
) -> str | None:
    """Return the expectation that a topic's setting fails in each release of the span, if it does.

    `others` are the topic's other settings.
    """
    expected = _refused(TOPIC_SETTINGS, name, text, span)
    all_compare = span[0] >= _COMPARED_FROM and span[1] <= _COMPARED_UNTIL
    if expected is None and all_compare and name in _COMPARED and name in beyond_another({**others, name: text}):
        return f"-2 with {_COMPARED[name]}={others[_COMPARED[name]]}"
    return expected


def beyond_another(settings: Mapping[str, str]) -> frozenset[str]:
    """Return the settings of a topic of which one exceeds the other, for releases that compare them."""
    found: list[str] = []
    for name, limit in _COMPARED.items():
        if name in settings and limit in settings:  # which few topics have
            kept, allowed = _number("LONG", settings[name]), _number("LONG", settings[limit])
            if kept not in (None, -2) and allowed is not None and (kept > allowed or (kept == -1 and allowed != -1)):
                found += (name, limit)
    return frozenset(found)


@lru_cache(1 << 12)  # most topics have the same settings
def may_be_refused(name: str, text: str, *, is_topic: bool) -> bool:
    """Return whether a release refuses a setting in /config/topics, or in /config/brokers."""
    definitions = (TOPIC_SETTINGS if is_topic else BROKER_SETTINGS).get(name, ())
    return any(_expected(definition, text) is not None for definition in definitions)


def ignored_broker_setting(name: str, text: str, span: Span) -> str | None:
    """Return the expectation that a setting in /config/brokers fails in each release, so that brokers leave it out."""
    return _refused(BROKER_SETTINGS, name, text, span)


def stops_its_broker(name: str, text: str, span: Span) -> bool:
    """Return whether the broker of a znode in /config/brokers may fail at its start because of this setting."""
    return name in _RATES and span[0] < _LOGS_A_RATE and _number("LONG", text) is None


def _refused(table: Mapping[str, tuple[Definition, ...]], name: str, text: str, span: Span) -> str | None:
    definitions = table.get(name)
    if definitions is None:
        return None
    expected = None
    for release in _releases(span):
        found = next((each for each in definitions if each.first <= release <= each.last), None)
        expected = None if found is None else _expected(found, text)
        if expected is None:
            return None
    return expected


def _releases(span: Span) -> list[Release]:
    oldest = max((release for release in RELEASES if release <= span[0]), default=RELEASES[0])
    return [release for release in RELEASES if oldest <= release <= span[1]]


def _expected(definition: Definition, text: str) -> str | None:
    """Return the expectation that the text does not meet, in half a sentence."""
    text = text.strip(_JAVA_SPACES)
    if definition.type == "BOOLEAN":
        return None if text.lower() in ("true", "false") else "true or false"
    if definition.type in (*_BITS, "DOUBLE"):
        return _unmet_range(definition, text)
    word, _, rest = definition.check.partition(" ")
    unmet = _CHECKS.get(word)
    return None if unmet is None else unmet(rest, text)


def _unmet_range(definition: Definition, text: str) -> str | None:
    kind = "a number" if definition.type == "DOUBLE" else "a whole number"
    number = _number(definition.type, text)
    found = _RANGE.fullmatch(definition.check)
    if found is None:
        return None if number is not None else kind
    least, most, other = found.groups()
    outside = number is None or number < float(least) or number > float(most or "inf")
    if not outside or (other is not None and number == int(other)):
        return None
    bounds = f"{kind} from {least}" + (f" to {most}" if most else "")
    return f"{bounds}, or {other}" if other else bounds


def _number(kind: str, text: str) -> float | None:
    text = text.strip(_JAVA_SPACES)
    if kind == "DOUBLE":
        return float(text.rstrip("fFdD").replace("Infinity", "inf")) if _DOUBLE.fullmatch(text) else None
    limit = 1 << (_BITS[kind] - 1)
    return int(text) if _INTEGER.fullmatch(text) and -limit <= int(text) < limit else None


def _elements(text: str) -> list[str]:
    return _COMMA.split(text) if text else []


def _unmet_choice(choices: str, text: str) -> str | None:
    allowed = choices.split()
    return None if text in allowed else f"one of {', '.join(allowed)}"


def _unmet_choices(choices: str, text: str) -> str | None:
    allowed = choices.removeprefix("of ").split()
    return None if all(each in allowed for each in _elements(text)) else f"a list of {', '.join(allowed)}"


def _unmet_replicas(_: str, text: str) -> str | None:
    elements = _elements(text)
    matches = [_REPLICA.fullmatch(each) for each in elements if each]
    fit = all(found is not None and max(map(int, found.groups())) < 1 << 31 for found in matches)
    return None if text == "*" or fit else "* or a list of PARTITION:BROKER"


def _unmet_version(newest: str, text: str) -> str | None:
    """Check a version as `MetadataVersion.fromVersionString` does, which ignores a fourth number, like 0.10.2.1."""
    known = MESSAGE_FORMATS[: MESSAGE_FORMATS.index(newest.removeprefix("up to ")) + 1]
    key = ".".join(text.split(".")[: 3 if text.startswith("0.") else 2])
    short = {version.partition("-")[0] for version in known}
    return None if key in known or key in short else f"a version up to {known[-1]}"


_CHECKS: Final[Mapping[str, Callable[[str, str], str | None]]] = {
    "of": _unmet_choice,
    "list": _unmet_choices,
    "replicas": _unmet_replicas,
    "version": _unmet_version,
}
