"""ZooKeeper's values of each comparable subject, from a tree of znodes. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

import msgspec

from migration.comparison.view import (
    DEFAULT,
    NOT_SHOWN,
    CopiedKey,
    CopiedSubject,
    acl_text,
    entity_text,
    leadership_text,
    quota_text,
    replicas_text,
    resource_text,
)
from migration.preflight.tree import BROKER_CONFIGS, TOPIC_CONFIGS, TOPICS, USERS, Tree

CLIENTS, IPS = "/config/clients", "/config/ips"
LITERAL_ACLS, OTHER_ACLS = "/kafka-acl", "/kafka-acl-extended"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
UNREADABLE = "a znode that cannot be decoded"

# The znodes of each subject. If the session may not read one, the subject is not compared.
PLACES: Mapping[CopiedSubject, tuple[str, ...]] = {
    CopiedSubject.TOPICS: (TOPICS,),
    CopiedSubject.REPLICAS: (TOPICS,),
    CopiedSubject.PARTITIONS: (TOPICS,),
    CopiedSubject.TOPIC_CONFIGS: (TOPIC_CONFIGS,),
    CopiedSubject.BROKER_CONFIGS: (BROKER_CONFIGS,),
    CopiedSubject.QUOTAS: (USERS, CLIENTS, IPS),
    CopiedSubject.SCRAM: (USERS,),
    CopiedSubject.ACLS: (LITERAL_ACLS, OTHER_ACLS),
}


def zookeeper_values(tree: Tree, plain: Mapping[CopiedSubject, Collection[str]]) -> dict[CopiedKey, str]:
    """Return all compared values. A setting's value is visible only if its name is plain."""
    return {
        **dict(_topics(tree)),
        **dict(_settings(tree, CopiedSubject.TOPIC_CONFIGS, TOPIC_CONFIGS, plain)),
        **dict(_settings(tree, CopiedSubject.BROKER_CONFIGS, BROKER_CONFIGS, plain)),
        **dict(_quotas(tree)),
        **dict(_scram(tree)),
        **dict(_acls(tree)),
    }


def forbidden_subjects(tree: Tree) -> dict[CopiedSubject, str]:
    """Return the subjects with an unreadable znode, with the reason."""
    found = {}
    for subject, places in PLACES.items():
        paths = sorted(path for path in tree.unreadable if any(f"{path}/".startswith(f"{place}/") for place in places))
        if paths:
            found[subject] = f"{paths[0]} may not be read, because its ACL does not let this session in"
    return found


def _topics(tree: Tree) -> Iterator[tuple[CopiedKey, str]]:
    for name, topic in tree.topics.items():
        if topic is None:
            yield CopiedKey(CopiedSubject.TOPICS, name), UNREADABLE
            continue
        yield CopiedKey(CopiedSubject.TOPICS, name), f"id {topic.topic_id or 'none'}"
        for number, replicas in topic.partitions.items():
            adding, removing = topic.adding_replicas.get(number, ()), topic.removing_replicas.get(number, ())
            yield CopiedKey(CopiedSubject.REPLICAS, name, str(number)), replicas_text(replicas, adding, removing)
    for partition in tree.partitions:
        state = partition.state
        text = "no state" if state is None else leadership_text(state.leader, state.leader_epoch, state.isr)
        yield CopiedKey(CopiedSubject.PARTITIONS, partition.topic, str(partition.number)), text


def _settings(
    tree: Tree, subject: CopiedSubject, parent: str, plain: Mapping[CopiedSubject, Collection[str]]
) -> Iterator[tuple[CopiedKey, str]]:
    shown = plain.get(subject, ())
    for path, settings in _configurations(tree, parent):
        group = path.rpartition("/")[2]
        if settings is None:
            yield CopiedKey(subject, group), UNREADABLE
            continue
        for name, value in settings.items():
            yield CopiedKey(subject, group, name), _text(value) if name in shown else NOT_SHOWN


def _configurations(tree: Tree, parent: str) -> Iterator[tuple[str, Mapping[str, str] | None]]:
    """Yield each znode's name with its settings. Settings that are no text stay as they are in the JSON."""
    for path, settings in tree.configurations(parent):
        if settings is None:
            yield path, None
        else:
            yield path, {name: one if isinstance(one, str) else UNREADABLE for name, one in settings.items()}


def _quotas(tree: Tree) -> Iterator[tuple[CopiedKey, str]]:
    for entity, settings in _entities(tree):
        group = entity_text(entity)
        if settings is None:
            yield CopiedKey(CopiedSubject.QUOTAS, group), UNREADABLE
            continue
        for name, value in settings.items():
            if name not in SCRAM_MECHANISMS:
                yield CopiedKey(CopiedSubject.QUOTAS, group, name), _quota(_text(value))


def _entities(tree: Tree) -> Iterator[tuple[dict[str, str | None], Mapping[str, object] | None]]:
    """Yield each znode of quotas, with its entity."""
    for kind, parent in (("user", USERS), ("client-id", CLIENTS), ("ip", IPS)):
        for path, settings in _configurations(tree, parent):
            yield {kind: _name(path)}, settings
    for user in tree.children(USERS):
        parent = f"{USERS}/{user}"
        for path, settings in _configurations(tree, f"{parent}/clients"):
            yield {"user": _name(parent), "client-id": _name(path)}, settings


def _scram(tree: Tree) -> Iterator[tuple[CopiedKey, str]]:
    for path, settings in _configurations(tree, USERS):
        for mechanism in SCRAM_MECHANISMS:
            if settings is not None and mechanism in settings:
                yield (
                    CopiedKey(CopiedSubject.SCRAM, _name(path) or DEFAULT, mechanism),
                    _iterations(_text(settings[mechanism])),
                )


def _acls(tree: Tree) -> Iterator[tuple[CopiedKey, str]]:
    patterns = [("LITERAL", LITERAL_ACLS), *((name, f"{OTHER_ACLS}/{name}") for name in tree.children(OTHER_ACLS))]
    for pattern, parent in patterns:
        for kind in tree.children(parent):
            for name in tree.children(f"{parent}/{kind}"):
                group = resource_text(kind, pattern, name)
                for entry in _entries(tree.data(f"{parent}/{kind}/{name}")):
                    yield CopiedKey(CopiedSubject.ACLS, group, entry), "there"


def _entries(data: bytes | None) -> Iterator[str]:
    if not data:
        return
    try:
        for acl in json.loads(data)["acls"]:
            yield acl_text(*(str(acl[key]) for key in ("principal", "permissionType", "operation", "host")))
    except (ValueError, TypeError, KeyError, RecursionError):
        yield UNREADABLE


def _name(path: str) -> str | None:
    """Return the name in a znode of /config/users, clients or ips (`Sanitizer`, Kafka 3.9). The default has no name."""
    name = path.rpartition("/")[2]
    return None if name == DEFAULT else unquote(name)


def _text(value: object) -> str:
    """Return a setting as text. Its value may be any JSON, because people write it by hand."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _quota(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return "no number"
    return quota_text(value) if math.isfinite(value) else "no number"


def _iterations(credential: str) -> str:
    """Return a credential's iterations, the only part that both sides have and that is not secret."""
    parts = dict(part.partition("=")[::2] for part in credential.split(","))
    iterations = parts.get("iterations", "")
    return f"iterations {iterations}" if iterations.isdecimal() else UNREADABLE
