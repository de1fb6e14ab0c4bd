"""Topics and their deletion."""

from __future__ import annotations

from dashboards.catalogue.metric import of_cluster

TOPICS = of_cluster("topics", "Topics, as Kafka's GlobalTopicCount.")
TOPICS_TO_DELETE = of_cluster("topics_to_delete", "Topics whose deletion is queued.")
REPLICAS_TO_DELETE = of_cluster("replicas_to_delete", "Replicas whose deletion is queued.")
TOPICS_INELIGIBLE = of_cluster("topics_ineligible_to_delete", "Topics whose deletion cannot go on for now.")
REPLICAS_INELIGIBLE = of_cluster("replicas_ineligible_to_delete", "Replicas whose deletion cannot go on for now.")
