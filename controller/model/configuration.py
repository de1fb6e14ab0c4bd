"""Release and settings of the brokers, and the evidence for them."""

from __future__ import annotations

import msgspec

from controller.rules.releases import Evidence


class Configuration(msgspec.Struct, array_like=True):
    """Sources of the profile and the settings in force."""

    profile_is_set: bool = False  # by the operator, otherwise it follows from the evidence
    evidence: Evidence = Evidence()
    given: dict[str, bool | int] = {}  # static settings of the brokers, from the operator
    dynamic: dict[str, dict[str, str]] = {}  # the used settings of /config/brokers, by broker id or <default>
    unparsable: dict[str, dict[str, str]] = {}  # by znode, settings in /config that some release cannot parse
    unclean_as_judged: bool = False  # whether unclean elections were allowed when partitions were last judged
