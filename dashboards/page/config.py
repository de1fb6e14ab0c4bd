"""Settings of the live page."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.alerting.config import STALE_AFTER_SECONDS
from questions.overview.incident_cards import Presentation


@dataclass(frozen=True, slots=True, kw_only=True)
class PageConfig(Presentation):
    """Settings of the page, which include the settings of overviews."""

    source: str = ""  # the outputs in words, for the foot of each page
    stale_after_ms: int = int(STALE_AFTER_SECONDS * 1000)  # age of a heartbeat at which its cluster is unknown
    links: tuple[str, ...] = ()  # other pages that are switched on
