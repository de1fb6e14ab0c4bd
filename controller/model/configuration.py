"""What is known of the brokers' release and settings."""

from __future__ import annotations

import msgspec

from controller.rules.releases import Evidence


class Configuration(msgspec.Struct, array_like=True):
    """Where the profile and the settings that are in force come from."""

    profile_is_set: bool = False  # by a person; else it follows from the evidence
    evidence: Evidence = Evidence()
    given: dict[str, bool | int] = {}  # what a person said of the brokers' static settings
    dynamic: dict[str, dict[str, str]] = {}  # /config/brokers by broker id or <default>, what is used of it
    unclean_as_judged: bool = False  # whether unclean elections were allowed when partitions were last judged by it
