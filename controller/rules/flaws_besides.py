"""Flaws that end brokers or controllers, beside the content of recorded znodes: quotas, ACLs, features, listeners.

A reader of ZooKeeper looks for them, because users' znodes hold credentials and are not recorded. Only the flaws are
published. Source: `ConfigHandler`, `DynamicConfigManager`, `ScramCredentialUtils`, `AclEntry`, `ProducerIdManager`,
`FinalizedFeatureCache` (1.1 to 3.9).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

import msgspec

from controller.contract.flaw import Flaw, FoundFlaw
from controller.contract.ids import BrokerId
from controller.contract.kafka_json import integer_in
from controller.contract.znode_table import Place, place_of
from controller.contract.znodes import (
    BrokerZnode,
    ClusterIdZnode,
    FeatureZnode,
    ZnodeContent,
    ZnodeError,
    decode,
    decode_config,
)
from wording.sentences import joined, listed

QUOTAS_OF_CLIENTS: Final = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}
"""The keys of `QuotaConfigs` (3.9), and whether their type is a whole number."""
_NEAR_ZERO: Final = {
    "producer_byte_rate": 1_024,
    "consumer_byte_rate": 1_024,
    "connection_creation_rate": 1,
    "request_percentage": 0.1,
    "controller_mutation_rate": 0.01,
}
QUOTAS_OF_IPS: Final = {"connection_creation_rate": True}
SCRAM: Final = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
CREATE: Final = 4
"""ZooKeeper's permission to create children."""
WRITE: Final = 2
GUARDED: Final[Mapping[str, int]] = {"/": CREATE, "/controller_epoch": WRITE, "/brokers/ids": CREATE}
"""Znodes to which every broker needs a right, the one to become controller and the last to start."""

PRODUCER_IDS: Final = "/latest_producer_id_block"
_REGISTRATION: Final = "/brokers/ids/"
_CLUSTER_ID: Final = "/cluster/id"
_FEATURE: Final = "/feature"
_EPOCH: Final = "/controller_epoch"
_CONTROLLER: Final = "/controller"
_SCRAM_KEYS: Final = frozenset({"salt", "stored_key", "server_key", "iterations"})
_DOUBLE: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
LEAST_OF_NAMES: Final = {"/isr_change_notification": 10, "/log_dir_event_notification": 13, "/config/changes": 15}
"""Length of the prefix that Kafka cuts off a notification's name, without its last character."""
_NUMBERED: Final = {"/brokers/ids": "", "/config/brokers": "<default>"}  # and the one name that is no number
_ACL_DEPTHS: Final = {"/kafka-acl/": 3, "/kafka-acl-extended/": 4}  # /TYPE/NAME, and /PATTERN/TYPE/NAME
_LARGEST_ID: Final = 2**63 - 1
_BLOCK: Final = 1_000
_LEAST_ITERATIONS: Final = 4_096  # of both mechanisms (`ScramMechanism`)
_LEAST_WITH_FEATURES: Final = 5  # version of a registration
_SHOWN: Final = 40


_Form = TypeVar("_Form", bound=ZnodeContent)


class Grant(NamedTuple):
    """An entry of a znode's ACL, with ZooKeeper's scheme, the name in it, and the permissions."""

    scheme: str
    name: str
    permissions: int


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


def flaws_besides(
    values: Mapping[str, bytes | None], grants: Mapping[str, Collection[Grant]], *, hides: Collection[str] = ()
) -> dict[str, FoundFlaw]:
    """Return the flaws by path in all values of a cluster, with the ACLs of `GUARDED` znodes and registrations.

    `hides` has the paths that may exist, although they have no value.
    """
    found = {path: flaw for path, data in values.items() if (flaw := flaw_beside(path, data)) is not None}
    brokers = dict(_registered(values))
    found |= _of_the_cluster(values, brokers, hides)
    feature = _content(values, _FEATURE, FeatureZnode)
    if PRODUCER_IDS in found and feature is not None and feature.version > 1:  # so no broker reads the block at a start
        found[PRODUCER_IDS] = found[PRODUCER_IDS]._replace(flaw=Flaw.NO_NEXT)
    for path, permission in GUARDED.items():
        if (names := _locked(grants, path, permission)) is not None:
            found[path] = FoundFlaw(Flaw.LOCKED, f"may be changed by {names} alone, and brokers show no such login")
    return found


def flaw_beside(path: str, data: bytes | None) -> FoundFlaw | None:
    """Return the flaw in the content of a znode that is not recorded, None for any other znode."""
    place, (parent, _, name) = place_of(path), path.rpartition("/")
    if parent in _NUMBERED and integer_in(name) is None and name != _NUMBERED[parent]:
        return FoundFlaw(Flaw.WRONG_NAME, "is not named by a broker's number")
    if place in (Place.USER, Place.CLIENT) and _BROKEN_ESCAPE.search(name):
        return FoundFlaw(Flaw.WRONG_NAME, "has a % in its name that no two hexadecimal digits follow")
    least = LEAST_OF_NAMES.get(parent, 0)
    if len(name) < least or (place is Place.CONFIG_CHANGE and not is_whole(name[least - 1 :])):
        return FoundFlaw(Flaw.WRONG_NAME)
    try:
        if place in (Place.USER, Place.CLIENT, Place.IP):
            return _flaw_of_quotas(place, path, decode_config(data).config)
        if place is Place.ACL and data and is_acl(path):
            decode(data, _Acls)
        elif place is Place.PRODUCER_IDS and data:
            return _flaw_of_block(decode(data, _ProducerIds))
    except ZnodeError as error:
        is_harmless = place is Place.ACL and error.flaw is Flaw.UNPARSABLE  # Kafka takes it for an empty list
        details = str(error) if error.flaw is Flaw.UNPARSABLE else "has not the form that Kafka writes"
        return None if is_harmless else FoundFlaw(error.flaw, details)
    return None


def is_acl(path: str) -> bool:
    """Return whether a znode has the ACLs of a resource."""
    return any(path.startswith(parent) and path.count("/") == depth for parent, depth in _ACL_DEPTHS.items())


def _flaw_of_quotas(place: Place, path: str, config: Mapping[str, str]) -> FoundFlaw | None:
    known = QUOTAS_OF_IPS if place is Place.IP else QUOTAS_OF_CLIENTS
    for key, value in sorted(config.items()):
        if key in known and not (is_whole(value) if known[key] else number(value) is not None):
            kind = "whole number" if known[key] else "number"
            return FoundFlaw(Flaw.NO_NUMBER, f"has {key}={value[:_SHOWN]}, which is no {kind}")
        if place is Place.USER and key in SCRAM and not is_scram(value):
            return FoundFlaw(Flaw.NO_CREDENTIAL, f"has a {key} without salt, keys and iterations as Kafka writes them")
        if place is Place.USER and key in SCRAM and (given := int(_parts(value)["iterations"])) < _LEAST_ITERATIONS:
            return FoundFlaw(Flaw.WEAK_CREDENTIAL, f"has a {key} of {given} iterations, fewer than {_LEAST_ITERATIONS}")
    name = path.rpartition("/")[2]
    if place is Place.IP and config and name != "<default>" and not _is_address(name):
        return FoundFlaw(Flaw.NO_ADDRESS)
    limits = known.keys() & config.keys() & _NEAR_ZERO.keys()
    low = (key for key in limits if float(config[key].strip().rstrip("fFdD")) < _NEAR_ZERO[key])
    return next((FoundFlaw(Flaw.NEAR_ZERO, f"has {key}={config[key][:_SHOWN]}") for key in sorted(low)), None)


def is_whole(value: str) -> bool:
    """Return whether Java's Long.parseLong takes the text."""
    return _WHOLE.fullmatch(value) is not None and -(2**63) <= int(value) < 2**63


def number(value: str) -> float | None:
    """Return the number that Java's Double.parseDouble takes the text for, 0 for a huge one, None if it fails."""
    text = value.strip()
    if not _DOUBLE.fullmatch(text):
        return None
    found = float(text.rstrip("fFdD")) if not text.endswith(("NaN", "Infinity")) else 0.0
    return found if abs(found) < 2**63 else 0.0  # a double of this size has no fraction


def _parts(credential: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in credential.split(","))


def is_scram(text: str) -> bool:
    """Return whether `ScramCredentialUtils` (3.9) takes the credential."""
    parts = _parts(text)
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


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.replace("%3A", ":"))  # as Kafka's Sanitizer writes a name
    except ValueError:
        return False
    return True


def _flaw_of_block(block: _ProducerIds) -> FoundFlaw | None:
    if int(block.block_end) > _LARGEST_ID - _BLOCK:
        return FoundFlaw(Flaw.WRONG_TYPE, "has given out every producer id")
    return FoundFlaw(Flaw.NO_NEXT, "ends below 0, so the next ids are no ids") if int(block.block_end) < -1 else None


def _registered(values: Mapping[str, bytes | None]) -> Iterator[tuple[BrokerId, BrokerZnode]]:
    for path, data in values.items():
        name = path.removeprefix(_REGISTRATION)
        if name != path and name.isdecimal():
            try:
                yield BrokerId(int(name)), decode(data, BrokerZnode)
            except ZnodeError:
                continue  # a flaw of its own


def _of_the_cluster(
    values: Mapping[str, bytes | None], brokers: Mapping[BrokerId, BrokerZnode], hides: Collection[str]
) -> Iterator[tuple[str, FoundFlaw]]:
    """Yield the flaws that follow from several znodes."""
    for path, is_needed in ((_CLUSTER_ID, brokers), (_EPOCH, _CONTROLLER in values)):
        if is_needed and path not in values and path not in hides:
            yield path, FoundFlaw(Flaw.ABSENT)
    identity = _content(values, _CLUSTER_ID, ClusterIdZnode)
    if identity is not None and not identity.id:
        yield _CLUSTER_ID, FoundFlaw(Flaw.WRONG_TYPE, "has an empty id")
    feature = _content(values, _FEATURE, FeatureZnode)
    if feature is not None and (lacking := "; ".join(_lacking(feature, brokers))):
        yield _FEATURE, FoundFlaw(Flaw.INCOMPATIBLE, f"finalizes {lacking}")
    yield from _same_endpoints(brokers)
    protocols = {broker: _listeners(registered) for broker, registered in brokers.items()}
    names = {broker: frozenset(each.partition(" ")[0] for each in have) for broker, have in protocols.items()}
    if len(names) > 1 and not frozenset.intersection(*protocols.values()):
        flaw = Flaw.NO_COMMON_PROTOCOL if frozenset.intersection(*names.values()) else Flaw.NO_COMMON_LISTENER
        groups: dict[frozenset[str], list[BrokerId]] = {}
        for broker, listeners in sorted(protocols.items()):
            groups.setdefault(listeners, []).append(broker)
        have = [f"{listed(members, 'has')} {joined(sorted(group)) or 'none'}" for group, members in groups.items()]
        yield "/brokers/ids", FoundFlaw(flaw, f"has no listener of all brokers ({joined(have)})")


def _same_endpoints(brokers: Mapping[BrokerId, BrokerZnode]) -> Iterator[tuple[str, FoundFlaw]]:
    """Yield brokers with a host and port of another one, which a starting broker refuses (`KafkaServer`)."""
    sharing: dict[str, set[BrokerId]] = {}
    for broker, registered in sorted(brokers.items()):
        for endpoint in registered.addresses():
            sharing.setdefault(endpoint.partition("://")[2], set()).add(broker)
    for address, members in sharing.items():
        for broker in sorted(members) if len(members) > 1 and not address.startswith(":") else ():
            details = f"has the endpoint {address} of {listed(sorted(members - {broker}))}, too"
            yield f"{_REGISTRATION}{broker}", FoundFlaw(Flaw.SAME_ENDPOINT, details)


def _content(values: Mapping[str, bytes | None], path: str, form: type[_Form]) -> _Form | None:
    try:
        return decode(values[path], form) if path in values else None
    except ZnodeError:
        return None  # a flaw of its own


def _lacking(feature: FeatureZnode, brokers: Mapping[BrokerId, BrokerZnode]) -> Iterator[str]:
    """Yield the enabled levels that registered brokers from 2.7 on do not support."""
    for name, levels in sorted(feature.features.items()) if feature.status == 1 else ():
        highest = levels["max_version_level"]
        lowest = levels.get("min_version_level", highest)
        without = []
        for broker, registered in sorted(brokers.items()):
            supported = (registered.features or {}).get(name, {"min_version": 1, "max_version": 0})
            fits = supported["min_version"] <= lowest and highest <= supported["max_version"]
            if registered.version >= _LEAST_WITH_FEATURES and not fits:
                without.append(broker)
        if without:
            yield f"{name[:_SHOWN]} up to {highest}, which {listed(without, 'does')} not know"


def _listeners(registered: BrokerZnode) -> frozenset[str]:
    """Return the broker's listeners as NAME, or NAME (PROTOCOL) where they differ."""
    given = registered.listener_security_protocol_map
    protocols = {} if given is msgspec.UNSET else {name.upper(): each for name, each in given.items()}
    names = [address.partition("://")[0].upper() for address in registered.addresses()]
    return frozenset(name if protocols.get(name, name) == name else f"{name} ({protocols[name]})" for name in names)


def _locked(grants: Mapping[str, Collection[Grant]], path: str, permission: int) -> str | None:
    """Return the logins that alone have the right, None if a registered broker may have it too.

    A broker with ZooKeeper's ACLs registers with its own login as owner, and one without them registers open to all.
    """
    allowed = {grant[:2] for grant in grants.get(path, ()) if grant.permissions & permission}
    registrations = [each for znode, each in grants.items() if znode.startswith(_REGISTRATION)]
    if not allowed or not registrations or any(scheme == "world" for scheme, _ in allowed):
        return None
    for registration in registrations:
        owners = {grant[:2] for grant in registration if grant.permissions & WRITE}
        if owners & allowed:
            return None
    return joined(sorted(f"{scheme}:{name}" for scheme, name in allowed))
