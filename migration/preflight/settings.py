"""Checks of /config, /kafka-acl and producer ids. A finding has a setting's name, but no value."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.ids import BrokerId
from migration.preflight.check import Finding
from migration.preflight.tree import BROKER_CONFIGS, TOPIC_CONFIGS, USERS, Tree

CLIENTS = "/config/clients"
IPS = "/config/ips"
ACLS = ("/kafka-acl", "/kafka-acl-extended")
PRODUCER_IDS = "/latest_producer_id_block"

_SCRAM = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_SCRAM_KEYS = frozenset({"salt", "stored_key", "server_key", "iterations"})
# The keys of `QuotaConfigs` (3.9), and whether their type is a whole number.
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


class _Acl(msgspec.Struct, frozen=True):
    principal: Annotated[str, msgspec.Meta(pattern="^[^:]+:")]
    permissionType: str  # noqa: N815 (Kafka's key)
    operation: str
    host: str


class _Acls(msgspec.Struct, frozen=True):
    version: Literal[1]
    acls: list[_Acl]


_Number = Annotated[str, msgspec.Meta(pattern=r"^[+-]?[0-9]{1,19}$")]


class _ProducerIds(msgspec.Struct, frozen=True):
    broker: BrokerId
    block_start: _Number
    block_end: _Number


_ANY_JSON = JsonDecoder(object)
_ACLS = JsonDecoder(_Acls)
_PRODUCER_IDS = JsonDecoder(_ProducerIds)


def _quotas(tree: Tree) -> Iterator[tuple[str, str, str, Mapping[str, bool]]]:
    """Yield the znode, key and value of each quota, and the keys that its kind may have."""
    of_users = [USERS, *(f"{USERS}/{user}/clients" for user in tree.children(USERS))]
    for parent, known in (*((parent, _OF_CLIENTS) for parent in (*of_users, CLIENTS)), (IPS, _OF_IPS)):
        for path, settings in tree.configurations(parent):
            for key, value in _texts(settings).items():
                if not (parent == USERS and key in _SCRAM):
                    yield path, key, value, known


def _texts(settings: Mapping[str, object] | None) -> dict[str, str]:
    return {key: value for key, value in (settings or {}).items() if isinstance(value, str)}


def quotas_that_are_no_number(tree: Tree) -> Iterator[Finding]:
    """Yield the quotas that Java's Double.parseDouble refuses."""
    for path, key, value, _ in _quotas(tree):
        if _number(value) is None:
            yield Finding(path, f"{key} is no number")


def unknown_quotas(tree: Tree) -> Iterator[Finding]:
    """Yield the quota keys that Kafka does not know for their kind of entity."""
    for path, key, value, known in _quotas(tree):
        if _number(value) is not None and key not in known:
            yield Finding(path, f"{key} is none of {', '.join(known)}")


def fractional_quotas(tree: Tree) -> Iterator[Finding]:
    """Yield the quotas with a fraction where Kafka's type is a whole number."""
    for path, key, value, known in _quotas(tree):
        number = _number(value)
        if number is not None and known.get(key) and abs(number - round(number)) > _ROUNDING:
            yield Finding(path, f"{key} has a fraction: {value}")


def _number(value: str) -> float | None:
    text = value.strip()
    if not _DOUBLE.fullmatch(text):
        return None
    number = float(text.rstrip("fFdD")) if not text.endswith(("NaN", "Infinity")) else 0.0
    return number if abs(number) < 2**63 else 0.0  # a double of this size has no fraction


def malformed_scram(tree: Tree) -> Iterator[Finding]:
    """Yield the SCRAM credentials that `ScramCredentialUtils` (3.9) refuses."""
    for path, settings in tree.configurations(USERS):
        credentials = _texts(settings)
        for mechanism in sorted(_SCRAM & credentials.keys()):
            if not _is_scram(credentials[mechanism]):
                yield Finding(path, f"{mechanism} is no credential with salt, keys and iterations")


def _is_scram(text: str) -> bool:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if parts.keys() != _SCRAM_KEYS or not re.fullmatch(r"[+-]?[0-9]{1,9}", parts.pop("iterations")):
        return False
    try:
        for part in parts.values():
            base64.b64decode(
                part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4), validate=True
            )  # Java needs no padding
        return True
    except binascii.Error:
        return False


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
        if _is_read(data, _ANY_JSON.decode) and not _is_read(data, _ACLS.decode):
            yield Finding(path, "has not the form that Kafka writes")


def _acls(tree: Tree) -> Iterator[tuple[str, bytes]]:
    kept = tuple(f"{parent}/" for parent in ACLS)
    for path, znode in tree.znodes.items():
        # /kafka-acl/TYPE/NAME, and /kafka-acl-extended/PATTERN/TYPE/NAME
        if path.startswith(kept) and path.count("/") == (3 if path.startswith(kept[0]) else 4) and znode.data:
            yield path, znode.data


def unreadable_producer_ids(tree: Tree) -> Iterator[Finding]:
    """Yield a block of producer ids that is not JSON."""
    data = tree.data(PRODUCER_IDS)
    if data and not _is_read(data, _PRODUCER_IDS.decode):
        yield Finding(PRODUCER_IDS, "is not JSON as Kafka writes it")


def _is_read(data: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(data)
    except UndecodableError:
        return False
    return True
