"""Pages of subjects, by the words that `kontrast explain` and alerts use."""

from __future__ import annotations

from controller.contract.ids import TopicPartition
from dashboards.kept_rows.cluster_at import cluster_at
from dashboards.kept_rows.view import View
from questions.explain.subject import Subject, read_subject


def page_of(view: View, cluster: str, words: str, at_ms: int | None = None) -> tuple[str, ...] | None:
    """Return the path of a subject's page: orders-7, partition orders-7, topic orders, broker 3, controller 1.

    Return None if the name is unknown at the kept moment, by default now. The cluster's own page explains an alert's
    other subjects.
    """
    page, subject = ("clusters", cluster), subject_of(words)
    if subject is None:
        return None if words.strip() else page
    if subject.is_controller:
        return (*page, "controller")
    if subject.broker is not None:
        return (*page, "brokers", str(subject.broker))
    assert subject.topic is not None, "a subject that is nothing"
    tp = subject.partition
    if tp is not None and tp in _partitions_of(view, cluster, tp.topic, at_ms):
        return (*page, "topics", tp.topic, str(tp.partition))
    found = cluster_at(view, cluster, at_ms)
    if _partitions_of(view, cluster, subject.topic, at_ms):
        return (*page, "topics", subject.topic)
    alerts = () if found is None else found.snapshot.open_alerts
    return page if any(row.subject == subject.words for row in alerts) else None


def _partitions_of(view: View, cluster: str, topic: str, at_ms: int | None) -> set[TopicPartition]:
    found = cluster_at(view, cluster, at_ms, view.partitions_of(cluster, topic).values())
    rows = () if found is None else found.partitions
    return {TopicPartition(row.topic, row.partition) for row in rows if row.topic == topic}


def subject_of(words: str) -> Subject | None:
    """Return the subject that the words name, if they name one."""
    words = words.strip()
    kind, _, name = words.partition(" ")
    try:
        if kind == "controller":
            return read_subject([kind])
        if kind == "broker":
            return read_subject([kind, name])
        if kind in ("partition", "topic") and name:
            return read_subject([name], is_topic=kind == "topic")
        return read_subject([words]) if words else None
    except ValueError:
        return None
