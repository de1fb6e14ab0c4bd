"""Settings in /config/topics and /config/brokers that some release cannot parse.

They are kept until their znode changes. Which release the cluster has decides later whether a broker fails at them.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.model.context import Header
from controller.rules.setting_values import may_be_refused


def note(header: Header, path: str, settings: Mapping[str, str]) -> None:
    """Note the settings of a znode, none if it is removed."""
    is_topic = path.startswith("/config/topics/")
    found = {name: text for name, text in settings.items() if may_be_refused(name, text, is_topic=is_topic)}
    noted = header.configuration.unparsable
    if found or path in noted:
        others = {at: kept for at, kept in noted.items() if at != path}
        header.configuration.unparsable = {**others, path: found} if found else others
