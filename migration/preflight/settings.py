"""Checks of /config, /kafka-acl and producer ids. A finding has a setting's name, but no value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.rules.flaws_besides import (
    PRODUCER_IDS as PRODUCER_IDS,
    QUOTAS_OF_CLIENTS,
    QUOTAS_OF_IPS,
    SCRAM,
    flaw_beside,
    is_acl,
    is_scram,
    number,
)
from migration.preflight.check import Finding
from migration.preflight.tree import BROKER_CONFIGS, TOPIC_CONFIGS, USERS, Tree

CLIENTS = "/config/clients"
IPS = "/config/ips"
ACLS = ("/kafka-acl", "/kafka-acl-extended")

_ROUNDING = 1e-6  # ZkConfigMigrationClient.writeClientQuotas
_PASSWORDS = (
    ".password",
    "jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)


_ANY_JSON = JsonDecoder(object)


def _quotas(tree: Tree) -> Iterator[tuple[str, str, str, Mapping[str, bool]]]:
    """Yield the znode, key and value of each quota, and the keys that its kind may have."""
    of_users = [USERS, *(f"{USERS}/{user}/clients" for user in tree.children(USERS))]
    for parent, known in (*((parent, QUOTAS_OF_CLIENTS) for parent in (*of_users, CLIENTS)), (IPS, QUOTAS_OF_IPS)):
        for path, settings in tree.configurations(parent):
            for key, value in _texts(settings).items():
                if not (parent == USERS and key in SCRAM):
                    yield path, key, value, known


def _texts(settings: Mapping[str, object] | None) -> dict[str, str]:
    return {key: value for key, value in (settings or {}).items() if isinstance(value, str)}


def quotas_that_are_no_number(tree: Tree) -> Iterator[Finding]:
    """Yield the quotas that Java's Double.parseDouble refuses."""
    for path, key, value, _ in _quotas(tree):
        if number(value) is None:
            yield Finding(path, f"{key} is no number")


def unknown_quotas(tree: Tree) -> Iterator[Finding]:
    """Yield the quota keys that Kafka does not know for their kind of entity."""
    for path, key, value, known in _quotas(tree):
        if number(value) is not None and key not in known:
            yield Finding(path, f"{key} is none of {', '.join(known)}")


def fractional_quotas(tree: Tree) -> Iterator[Finding]:
    """Yield the quotas with a fraction where Kafka's type is a whole number."""
    for path, key, value, known in _quotas(tree):
        rate = number(value)
        if rate is not None and known.get(key) and abs(rate - round(rate)) > _ROUNDING:
            yield Finding(path, f"{key} has a fraction: {value}")


def malformed_scram(tree: Tree) -> Iterator[Finding]:
    """Yield the SCRAM credentials that `ScramCredentialUtils` (3.9) refuses."""
    for path, settings in tree.configurations(USERS):
        credentials = _texts(settings)
        for mechanism in sorted(SCRAM & credentials.keys()):
            if not is_scram(credentials[mechanism]):
                yield Finding(path, f"{mechanism} is no credential with salt, keys and iterations")


def _configurations(tree: Tree) -> Iterator[tuple[str, Mapping[str, object] | None]]:
    of_users = [f"{USERS}/{user}/clients" for user in tree.children(USERS)]
    for parent in (TOPIC_CONFIGS, BROKER_CONFIGS, USERS, *of_users, CLIENTS, IPS):
        yield from tree.configurations(parent)


def unreadable_configurations(tree: Tree) -> Iterator[Finding]:
    """Yield the configurations that are not JSON with an object of settings."""
    for path, settings in _configurations(tree):
        if settings is None:
            yield Finding(path, "is not JSON as Kafka writes it")


def values_that_are_no_text(tree: Tree) -> Iterator[Finding]:
    """Yield the settings with a value that is JSON, and not a text."""
    for path, settings in _configurations(tree):
        odd = sorted((settings or {}).keys() - _texts(settings).keys())
        if odd:
            yield Finding(path, f"{', '.join(odd)}: the value is not a text in quotation marks")


def broker_configurations_of_no_number(tree: Tree) -> Iterator[Finding]:
    """Yield the configurations of brokers whose name is no id."""
    for name in tree.children(BROKER_CONFIGS):
        if name != "<default>" and not re.fullmatch(r"[0-9]{1,9}", name):
            yield Finding(f"{BROKER_CONFIGS}/{name}", f"{name!r} is no broker's id")


def passwords(tree: Tree) -> Iterator[Finding]:
    """Yield the settings of brokers that are encoded passwords."""
    for path, settings in tree.configurations(BROKER_CONFIGS):
        for key in sorted(settings or {}):
            if key.endswith(_PASSWORDS):
                yield Finding(path, f"{key} is an encoded password")


def unreadable_acls(tree: Tree) -> Iterator[Finding]:
    """Yield Kafka's ACLs that are not JSON."""
    for path, data in _acls(tree):
        if not _is_read(data, _ANY_JSON.decode):
            yield Finding(path, "is not JSON")


def malformed_acls(tree: Tree) -> Iterator[Finding]:
    """Yield Kafka's ACLs that are JSON, and not of the form that Kafka writes."""
    for path, data in _acls(tree):
        if flaw_beside(path, data) is not None:
            yield Finding(path, "has not the form that Kafka writes")


def _acls(tree: Tree) -> Iterator[tuple[str, bytes]]:
    for path, znode in tree.znodes.items():
        if znode.data and is_acl(path):
            yield path, znode.data


def unreadable_producer_ids(tree: Tree) -> Iterator[Finding]:
    """Yield a block of producer ids that is not JSON."""
    data = tree.data(PRODUCER_IDS)
    if flaw_beside(PRODUCER_IDS, data) is not None:
        yield Finding(PRODUCER_IDS, "is no block of ids as Kafka writes it")


def _is_read(data: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(data)
    except UndecodableError:
        return False
    return True
