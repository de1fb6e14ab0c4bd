"""Pages of subjects, by the words that `kontrast explain` and alerts use."""

from __future__ import annotations

from questions.explain.subject import Subject, read_subject
from questions.memory import Memory


def page_of(memory: Memory, cluster: str, words: str, at_ms: int | None = None) -> tuple[str, ...] | None:
    """Return the path of a subject's page: orders-7, partition orders-7, topic orders, broker 3, controller 1.

    Return None if the name is unknown at the kept moment, by default now. An alert's other subjects have the cluster's
    own page.
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
    found = memory.cluster(cluster, at_ms, {subject.topic, *([tp.topic] if tp is not None else [])})
    topics = {} if found is None else found.topics
    if tp is not None and tp.topic in topics and tp.partition in topics[tp.topic].partitions:
        return (*page, "topics", tp.topic, str(tp.partition))
    if subject.topic in topics and topics[subject.topic].partitions:
        return (*page, "topics", subject.topic)
    alerts = () if found is None else found.open_alerts
    return page if any(row.subject == subject.words for row in alerts) else None


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
