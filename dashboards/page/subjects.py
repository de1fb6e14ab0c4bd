"""Find the page of what words name, as `kontrast explain` and alerts name it."""

from __future__ import annotations

from dashboards.following.view import View
from questions.explain.subject import Subject, read_subject


def page_of(view: View, cluster: str, words: str) -> tuple[str, ...]:
    """The parts of the page's path: of orders-7, partition orders-7, topic orders, broker 3, controller 1.

    An alert's subject that is nothing of these is explained by the cluster's own page.
    """
    page, subject = ("clusters", cluster), subject_of(words)
    if subject is None:
        return page
    if subject.is_controller:
        return (*page, "controller")
    if subject.broker is not None:
        return (*page, "brokers", str(subject.broker))
    assert subject.topic is not None, "a subject that is nothing"
    tp = subject.partition
    if tp is not None and tp.partition in view.partitions_of(cluster, tp.topic):
        return (*page, "topics", tp.topic, str(tp.partition))
    found = view.cluster(cluster)
    is_of_an_alert = found is not None and any(row.subject == subject.words for row in found.open_alerts)
    if is_of_an_alert and not view.partitions_of(cluster, subject.topic):
        return page
    return (*page, "topics", subject.topic)


def subject_of(words: str) -> Subject | None:
    """What the words name, None where they name nothing that can be explained."""
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
