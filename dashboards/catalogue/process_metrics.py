"""What every process with pages exports: its version and what its HTTP server refused."""

from __future__ import annotations

from dashboards.catalogue.metric import Metric, MetricType

BUILD_INFO = Metric(
    name="kontrast_build_info",
    help="The running Kontrast; always 1.",
    type=MetricType.INFO,
    labels=("version", "python"),
    before_ready=True,
    of_pages=True,
)
HTTP_WRONG_LOGINS = Metric(
    name="kontrast_http_wrong_logins_total",
    help="Requests with a login that is not the one that was set; each is answered a second late.",
    type=MetricType.COUNTER,
    labels=(),
    before_ready=True,
    of_pages=True,
)
HTTP_DROPPED = Metric(
    name="kontrast_http_dropped_connections_total",
    help="Connections that were ended: the oldest of too many (limit), or one whose request did not come or whose "
    "answer was not taken in time (timeout).",
    type=MetricType.COUNTER,
    labels=("reason",),
    before_ready=True,
    of_pages=True,
)
