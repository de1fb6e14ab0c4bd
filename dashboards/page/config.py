"""Settings of the live page."""

from __future__ import annotations

from dataclasses import dataclass, field

from dashboards.alerting.config import STALE_AFTER_SECONDS
from dashboards.alerting.message import NAME_PREFIX
from questions.teams import Teams


@dataclass(frozen=True, slots=True, kw_only=True)
class PageConfig:
    """Settings that decide the order of topics, commands and links on the page."""

    source: str = ""  # the outputs, named at the foot of each page
    teams: Teams = field(default_factory=Teams)
    start_command: str = "ssh {host} sudo systemctl start kafka"  # {host} and {broker} are replaced
    runbook_url: str = "docs/runbooks"
    alertmanager_url: str | None = None  # where an alert can be silenced
    has_login: bool = False  # else only requests of this machine change leases
    leases_at: str | None = None  # the host of the serve that grants leases, if it is another one
    stale_after_ms: int = int(STALE_AFTER_SECONDS * 1000)  # a cluster is not known without a newer heartbeat
    links: tuple[str, ...] = ()  # other pages that are switched on

    def runbook(self, alert: str) -> str:
        """Return the address or path of the alert's runbook."""
        return f"{self.runbook_url.rstrip('/')}/{NAME_PREFIX}{alert}.md"
