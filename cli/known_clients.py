"""Consumer groups and teams for a question, from the file of `kontrast serve` or from its API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cli.settings.config import ConfigError, Settings, read_settings
from cli.sources.source import NotFoundError
from dashboards.errors import ServeError
from questions.clients.groups import Clients
from questions.clients.known_groups import NO_GROUPS, KnownGroups
from questions.picture import Picture

_PROBE = "serve.probe"


def with_clients(picture: Picture, flags: Mapping[str, Any]) -> Picture:
    """Return the picture with the groups and the teams that the settings lead to. Raise ConfigError.

    A serve that is not asked, does not answer or does not know the cluster leaves the groups unknown, because it is no
    part of the question.
    """
    settings = read_settings(flags["config_file"], os.environ)
    return replace(picture, clients=Clients(_known(settings, picture.header.cluster), settings.teams))


def _known(settings: Settings, cluster: str) -> KnownGroups:
    layer = settings.sections[_PROBE]
    if "groups" not in layer or not layer["groups"].value:
        return NO_GROUPS
    directory = layer["groups_directory"].value if "groups_directory" in layer else None
    if isinstance(directory, Path):
        from dashboards.probe.kept_groups import kept_groups  # not for --help

        kept = kept_groups(directory, cluster)
        if kept.asked_ms:
            return kept
    from cli.served_cluster import ServedCluster, serve_url

    try:
        return ServedCluster(serve_url(settings), settings, cluster, "", None).groups()
    except (ServeError, NotFoundError, ConfigError):
        return NO_GROUPS
