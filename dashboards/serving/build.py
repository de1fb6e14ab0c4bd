"""Collector of the version of the running Kontrast."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dashboards.catalogue import process_metrics
from dashboards.catalogue.families import family


class BuildCollector(Collector):
    """Answers each scrape with the version of this process."""

    def collect(self) -> Iterator[Family]:
        """Yield the one family."""
        yield family(process_metrics.BUILD_INFO, [((_build_version(), platform.python_version()), 1)])


def _build_version() -> str:
    try:
        return version("kontrast")
    except PackageNotFoundError:
        return "unknown"  # a source tree that is not installed
