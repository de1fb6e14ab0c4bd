"""Settings of the live page."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.alerting.config import STALE_AFTER_SECONDS
from questions.overview.incident_cards import Presentation


@dataclass(frozen=True, slots=True, kw_only=True)
class PageConfig(Presentation):
    """Settings of the page beside those of its overviews."""

    source: str = ""  # the outputs, named at the foot of each page
    has_login: bool = False  # else only requests of this machine change leases
    leases_at: str | None = None  # the host of the serve that grants leases, if it is another one
    stale_after_ms: int = int(STALE_AFTER_SECONDS * 1000)  # a cluster is not known without a newer heartbeat
    links: tuple[str, ...] = ()  # other pages that are switched on
