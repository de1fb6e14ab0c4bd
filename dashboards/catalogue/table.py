"""Every metric of the catalogue by subject."""

from __future__ import annotations

from dashboards.catalogue import (
    alert_metrics,
    broker_metrics,
    broker_view_metrics,
    controller_metrics,
    delivery_metrics,
    job_metrics,
    migration_metrics,
    migration_quorum_metrics,
    partition_metrics,
    pipeline_metrics,
    process_metrics,
    watch_metrics,
    zookeeper_metrics,
)
from dashboards.catalogue.metric import Metric

_SUBJECTS = (
    process_metrics,
    pipeline_metrics,
    job_metrics,
    controller_metrics,
    broker_metrics,
    partition_metrics,
    zookeeper_metrics,
    alert_metrics,
    delivery_metrics,
    broker_view_metrics,
    migration_metrics,
    migration_quorum_metrics,
    watch_metrics,
)

CATALOGUE: tuple[Metric, ...] = tuple(
    value for subject in _SUBJECTS for value in tuple(vars(subject).values()) if isinstance(value, Metric)
)
