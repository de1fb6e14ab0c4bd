"""Metrics of every process with pages: its version, its live memory, and the refusals of its HTTP server."""

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
SMALL_OBJECTS = Metric(
    name="kontrast_process_small_objects",
    help="Objects of up to 512 bytes that Python holds. They and the heap grow with a leak, while resident memory also"
    " grows with gaps between objects.",
    labels=(),
    before_ready=True,
    of_pages=True,
)
HEAP_BYTES = Metric(
    name="kontrast_process_heap_bytes",
    help="Size of the larger objects, which the process holds in the heap of glibc. Absent with another C library.",
    labels=(),
    unit="bytes",
    before_ready=True,
    of_pages=True,
)
HTTP_WRONG_LOGINS = Metric(
    name="kontrast_http_wrong_logins_total",
    help="Requests with a wrong login. Each is answered a second late.",
    type=MetricType.COUNTER,
    labels=(),
    before_ready=True,
    of_pages=True,
)
HTTP_DROPPED = Metric(
    name="kontrast_http_dropped_connections_total",
    help="Closed connections, the oldest beyond the limit (limit), or those with a late request or a slow reader"
    " (timeout).",
    type=MetricType.COUNTER,
    labels=("reason",),
    before_ready=True,
    of_pages=True,
)
