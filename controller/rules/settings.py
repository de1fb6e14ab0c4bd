"""Static broker settings that no znode shows, with Kafka's names, each release's defaults, and the parsing of texts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from controller.rules.releases import NEWEST, Release

# The operator's settings, by Kafka's names with dots. The release's defaults apply to the rest.
GivenSettings = Mapping[str, bool | int]

# Kafka's INT. Settings that are a LONG there need no more, because 2**31 ms are 24 days.
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: name.replace("_", ".")):
    """Broker settings that the controller's choices and gauges depend on. The defaults are those of Kafka 3.9."""

    unclean_leader_election_enable: bool = False
    min_insync_replicas: _AtLeast1 = 1
    delete_topic_enable: bool = True
    controlled_shutdown_enable: bool = True  # a broker asks the controller before it closes
    controlled_shutdown_max_retries: _AtLeast0 = 3
    controlled_shutdown_retry_backoff_ms: _AtLeast0 = 5_000
    zookeeper_session_timeout_ms: _AtLeast1 = 18_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: _AtLeast0 = 10
    leader_imbalance_check_interval_seconds: _AtLeast1 = 300


# Before the release, the default of KEY was VALUE.
DEFAULT_BEFORE: Final[Mapping[str, tuple[Release, bool | int]]] = MappingProxyType(
    {
        "unclean.leader.election.enable": ((0, 11), True),
        "delete.topic.enable": ((1, 0), False),
        "zookeeper.session.timeout.ms": ((2, 5), 6_000),
    }
)

_FIELDS: Final = {field.encode_name: field for field in msgspec.structs.fields(BrokerSettings)}
SETTING_NAMES: Final = frozenset(_FIELDS)


class SettingError(ValueError):
    """Setting that is not known, or whose value cannot be read."""


def settings_in_force(given: GivenSettings, release: Release = NEWEST) -> BrokerSettings:
    """Return the settings in force on a broker of this release with the given configuration."""
    of_release = {name: value for name, (until, value) in DEFAULT_BEFORE.items() if release < until}
    return msgspec.convert({**of_release, **given}, BrokerSettings)


def read_settings(texts: Mapping[str, str]) -> dict[str, bool | int]:
    """Read settings from their texts, by Kafka's names with dots. Raise SettingError."""
    return {name: _read_setting(name, text) for name, text in texts.items()}


def _read_setting(name: str, text: str) -> bool | int:
    field = _FIELDS.get(name)
    if field is None:
        raise SettingError(
            f"{name!r} is no broker setting that Kontrast uses. Give one of {', '.join(sorted(_FIELDS))}"
        )
    try:
        value: bool | int = msgspec.convert(text.strip().lower(), field.type, strict=False)
    except msgspec.ValidationError:
        (bound,) = getattr(field.type, "__metadata__", (None,))
        expected = "true or false" if bound is None else f"a whole number from {bound.ge} to {bound.lt - 1}"
        raise SettingError(f"{name}={text}: expected {expected}") from None
    return value
