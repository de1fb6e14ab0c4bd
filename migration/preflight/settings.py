"""Checks of what is below /config and /kafka-acl, and of the producer ids; a finding has a setting's name, no value."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from migration.preflight.check import Finding
from migration.preflight.tree import BROKER_CONFIGS, TOPIC_CONFIGS, USERS, Tree

CLIENTS = "/config/clients"
IPS = "/config/ips"
ACLS = ("/kafka-acl", "/kafka-acl-extended")
PRODUCER_IDS = "/latest_producer_id_block"

_SCRAM = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_SCRAM_KEYS = frozenset({"salt", "stored_key", "server_key", "iterations"})
# What `QuotaConfigs` (3.9) has: the key, and whether its type is a whole number.
_OF_CLIENTS = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}
_OF_IPS = {"connection_creation_rate": True}
_ROUNDING = 1e-6  # ZkConfigMigrationClient.writeClientQuotas
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_PASSWORDS = (
    ".password",
    "jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)


class _Acls(msgspec.Struct, frozen=True):
    acls: list[dict[str, Any]]
    version: int = 1


class _ProducerIds(msgspec.Struct, frozen=True):
    version: int
    broker: int
    block_start: str
    block_end: str


_ACLS = JsonDecoder(_Acls)
_PRODUCER_IDS = JsonDecoder(_ProducerIds)


def _quotas(tree: Tree) -> Iterator[tuple[str, str, str, Mapping[str, bool]]]:
    """The znode, key and value of each quota, and the keys that its kind may have."""
    of_users = [USERS, *(f"{USERS}/{user}/clients" for user in tree.children(USERS))]
    for parent, known in (*((parent, _OF_CLIENTS) for parent in (*of_users, CLIENTS)), (IPS, _OF_IPS)):
        for path, settings in tree.configurations(parent):
            for key, value in (settings or {}).items():
                if not (parent == USERS and key in _SCRAM):
                    yield path, key, value, known


def quotas_that_are_no_number(tree: Tree) -> Iterator[Finding]:
    """The quotas that Java's Double.parseDouble refuses."""
    for path, key, value, _ in _quotas(tree):
        if _number(value) is None:
            yield Finding(path, f"{key} is no number")


def unknown_quotas(tree: Tree) -> Iterator[Finding]:
    """The quota keys that Kafka does not know there."""
    for path, key, value, known in _quotas(tree):
        if _number(value) is not None and key not in known:
            yield Finding(path, f"{key} is none of {', '.join(known)}")


def fractional_quotas(tree: Tree) -> Iterator[Finding]:
    """The quotas with a fraction where Kafka's type is a whole number."""
    for path, key, value, known in _quotas(tree):
        number = _number(value)
        if number is not None and known.get(key) and abs(number - round(number)) > _ROUNDING:
            yield Finding(path, f"{key} has a fraction: {value}")


def _number(value: str) -> float | None:
    text = value.strip()
    if not _DOUBLE.fullmatch(text):
        return None
    number = float(text.rstrip("fFdD")) if not text.endswith(("NaN", "Infinity")) else 0.0
    return number if abs(number) < 2**63 else 0.0  # no fraction that a double could have


def malformed_scram(tree: Tree) -> Iterator[Finding]:
    """The SCRAM credentials that `ScramCredentialUtils` (3.9) refuses."""
    for path, settings in tree.configurations(USERS):
        for mechanism in sorted(_SCRAM & (settings or {}).keys()):
            if not _is_scram((settings or {})[mechanism]):
                yield Finding(path, f"{mechanism} is no credential with salt, keys and iterations")


def _is_scram(text: str) -> bool:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if parts.keys() != _SCRAM_KEYS or not re.fullmatch(r"[+-]?[0-9]{1,9}", parts.pop("iterations")):
        return False
    try:
        return all(base64.b64decode(part, validate=True) is not None for part in parts.values())
    except binascii.Error:
        return False


def unreadable_configurations(tree: Tree) -> Iterator[Finding]:
    """The configurations that are not JSON."""
    of_users = [f"{USERS}/{user}/clients" for user in tree.children(USERS)]
    for parent in (TOPIC_CONFIGS, BROKER_CONFIGS, USERS, *of_users, CLIENTS, IPS):
        for path, settings in tree.configurations(parent):
            if settings is None:
                yield Finding(path, "is not JSON as Kafka writes it")


def broker_configurations_of_no_number(tree: Tree) -> Iterator[Finding]:
    """The configurations of brokers whose name is no id."""
    for name in tree.children(BROKER_CONFIGS):
        if name != "<default>" and not re.fullmatch(r"[0-9]{1,9}", name):
            yield Finding(f"{BROKER_CONFIGS}/{name}", f"{name!r} is no broker's id")


def passwords(tree: Tree) -> Iterator[Finding]:
    """The settings of brokers that are encoded passwords."""
    for path, settings in tree.configurations(BROKER_CONFIGS):
        for key in sorted(settings or {}):
            if key.endswith(_PASSWORDS):
                yield Finding(path, f"{key} is an encoded password")


def unreadable_acls(tree: Tree) -> Iterator[Finding]:
    """Kafka's ACLs that are not JSON."""
    kept = tuple(f"{parent}/" for parent in ACLS)
    for path, znode in tree.znodes.items():
        # /kafka-acl/TYPE/NAME, and /kafka-acl-extended/PATTERN/TYPE/NAME
        if path.startswith(kept) and path.count("/") == (3 if path.startswith(kept[0]) else 4) and znode.data:
            yield from _unless_readable(path, znode.data, _ACLS.decode)


def unreadable_producer_ids(tree: Tree) -> Iterator[Finding]:
    """A block of producer ids that is not JSON."""
    if data := tree.data(PRODUCER_IDS):
        yield from _unless_readable(PRODUCER_IDS, data, _PRODUCER_IDS.decode)


def _unless_readable(path: str, data: bytes, decode: Callable[[bytes], object]) -> Iterator[Finding]:
    try:
        decode(data)
    except UndecodableError:
        yield Finding(path, "is not JSON as Kafka writes it")
