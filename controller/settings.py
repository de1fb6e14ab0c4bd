"""What the brokers' static configuration decides and no znode shows.

Here belong the settings under Kafka's own names, with Kafka's defaults (3.9), and how their text is read.
"""

from __future__ import annotations

import msgspec


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers' settings that the controller's choices and gauges depend on."""

    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    delete_topic_enable: bool = True
    controlled_shutdown_max_retries: int = 3
    controlled_shutdown_retry_backoff_ms: int = 5_000
    zookeeper_session_timeout_ms: int = 18_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: int = 300


class SettingError(ValueError):
    """A setting that is not known, or whose value cannot be read."""


def read_settings(pairs: dict[str, str], defaults: BrokerSettings | None = None) -> BrokerSettings:
    """The settings that these texts give, by Kafka's names with dots; raises SettingError."""
    known = {field.name.replace("_", "."): field for field in msgspec.structs.fields(BrokerSettings)}
    values: dict[str, object] = {}
    for name, text in pairs.items():
        field = known.get(name)
        if field is None:
            raise SettingError(f"{name!r} is no broker setting that Kontrast uses; it uses {', '.join(sorted(known))}")
        try:
            values[field.name] = msgspec.convert(text.strip().lower(), field.type, strict=False)
        except msgspec.ValidationError as error:
            raise SettingError(f"{name}={text}: {error}") from error
    return msgspec.structs.replace(defaults or BrokerSettings(), **values)
