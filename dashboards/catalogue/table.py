"""Every metric of the catalogue by subject."""

from __future__ import annotations

from dashboards.catalogue import cluster_metrics, migration_metrics, pipeline_metrics
from dashboards.catalogue.metric import Metric

_SUBJECTS = (pipeline_metrics, cluster_metrics, migration_metrics)

CATALOGUE: tuple[Metric, ...] = tuple(
    value for subject in _SUBJECTS for value in tuple(vars(subject).values()) if isinstance(value, Metric)
)
