"""Checks of /config, /kafka-acl and producer ids. A finding has a setting's name, but no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.flaw import Flaw
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
from migration.preflight.check import Check, Fault, Hazard
from migration.preflight.tree import BROKER_CONFIGS, CLIENTS, IPS, QUOTAS, TOPIC_CONFIGS, USERS, Tree

ACLS = ("/kafka-acl", "/kafka-acl-extended")

_DELETE_BEFORE = "Delete the key before the migration. Once the sync is stuck, only a rollback helps."
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


@Check(
    Hazard.KILLS,
    shown_by="a value in /config/users, /config/users/U/clients, /config/clients or /config/ips",
    means="The copy ends with an exception at this quota.",
    mend="Delete the key, or write a number, with kafka-configs.sh or in the znode.",
    source="ZkConfigMigrationClient (3.9)",
    reads=QUOTAS,
)
def quota_no_number(tree: Tree) -> Iterator[Fault]:
    """Find a quota that is no number."""
    for path, key, value, _ in _quotas(tree):
        if number(value) is None:
            yield Fault(path, f"{key} is no number")


@Check(
    Hazard.STICKS,
    shown_by="a key in /config/users, /config/users/U/clients, /config/clients or /config/ips",
    means="It is copied, and cannot be written back.",
    mend=_DELETE_BEFORE,
    source="ZkConfigMigrationClient.writeClientQuotas (3.9)",
    reads=QUOTAS,
)
def quota_unknown(tree: Tree) -> Iterator[Fault]:
    """Find a quota that Kafka does not know."""
    for path, key, value, known in _quotas(tree):
        if number(value) is not None and key not in known:
            yield Fault(path, f"{key} is none of {', '.join(known)}")


@Check(
    Hazard.STICKS,
    shown_by="producer_byte_rate, consumer_byte_rate or connection_creation_rate, like 1000.5",
    means="It is copied, and cannot be written back as a whole number.",
    mend="Write a whole number before the migration. Once the sync is stuck, only a rollback helps.",
    source="ZkConfigMigrationClient.writeClientQuotas (3.9)",
    reads=QUOTAS,
)
def quota_fraction(tree: Tree) -> Iterator[Fault]:
    """Find a rate in bytes or connections with a fraction."""
    for path, key, value, known in _quotas(tree):
        rate = number(value)
        if rate is not None and known.get(key) and abs(rate - round(rate)) > _ROUNDING:
            yield Fault(path, f"{key} has a fraction: {value}")


@Check(
    Hazard.KILLS,
    shown_by="SCRAM-SHA-256 or SCRAM-SHA-512 in /config/users/U",
    means="The copy ends with an exception at this user.",
    mend="Delete the key and give the user a new password with kafka-configs.sh.",
    source="ZkConfigMigrationClient, ScramCredentialUtils (3.9)",
    reads=(USERS,),
)
def scram_malformed(tree: Tree) -> Iterator[Fault]:
    """Find a SCRAM credential that cannot be read."""
    for path, settings in tree.configurations(USERS):
        credentials = _texts(settings)
        for mechanism in sorted(SCRAM & credentials.keys()):
            if not is_scram(credentials[mechanism]):
                yield Fault(path, f"{mechanism} is no credential with salt, keys and iterations")


def _configurations(tree: Tree) -> Iterator[tuple[str, Mapping[str, object] | None]]:
    of_users = [f"{USERS}/{user}/clients" for user in tree.children(USERS)]
    for parent in (TOPIC_CONFIGS, BROKER_CONFIGS, USERS, *of_users, CLIENTS, IPS):
        yield from tree.configurations(parent)


@Check(
    Hazard.LOSES,
    shown_by="/config/topics/T, /config/brokers/N, /config/users/U, /config/clients/C, /config/ips/IP",
    means="KRaft reads it as empty, so the defaults apply from then on.",
    mend='Write it again: {"version":1,"config":{...}}.',
    source="ConfigEntityZNode (3.9)",
    reads=(TOPIC_CONFIGS, BROKER_CONFIGS, *QUOTAS),
)
def config_no_json(tree: Tree) -> Iterator[Fault]:
    """Find a configuration that is not JSON."""
    for path, settings in _configurations(tree):
        if settings is None:
            yield Fault(path, "is not JSON as Kafka writes it")


@Check(
    Hazard.KILLS,
    shown_by='like {"retention.ms":1000} in /config/topics/T, /config/brokers/N, /config/users/U and the others',
    means="The copy ends with an exception at this configuration.",
    mend='Put the value into quotation marks: {"retention.ms":"1000"}.',
    source="ConfigEntityZNode.decode (3.9)",
    reads=(TOPIC_CONFIGS, BROKER_CONFIGS, *QUOTAS),
)
def config_no_text(tree: Tree) -> Iterator[Fault]:
    """Find a setting with a value that is not a text."""
    for path, settings in _configurations(tree):
        odd = sorted((settings or {}).keys() - _texts(settings).keys())
        if odd:
            yield Fault(path, f"{', '.join(odd)}: the value is not a text in quotation marks")


@Check(
    Hazard.KILLS,
    shown_by="/config/brokers/NAME",
    means="The copy ends with an exception at this name.",
    mend="Delete the znode.",
    source="ZkConfigMigrationClient (3.9)",
    reads=(BROKER_CONFIGS,),
)
def broker_config_name(tree: Tree) -> Iterator[Fault]:
    """Find a configuration of a broker whose name is no number."""
    for name in tree.children(BROKER_CONFIGS):
        if (found := flaw_beside(path := f"{BROKER_CONFIGS}/{name}", b"")) and found.flaw is Flaw.WRONG_NAME:
            yield Fault(path, f"{name!r} is no broker's id")


@Check(
    Hazard.KILLS,
    shown_by="*.password, *.jaas.config and PEM keys in /config/brokers/N",
    means="With another secret than the brokers' the copy ends with an exception. Without a secret the "
    "encoded text becomes the password, and the broker loses its listener or its login.",
    mend="Give every controller the brokers' password.encoder.secret and, where set, the other password.encoder.* "
    "settings.",
    source="ZkConfigMigrationClient, PasswordEncoder (3.9)",
    reads=(BROKER_CONFIGS,),
)
def broker_password(tree: Tree) -> Iterator[Fault]:
    """Find a password in a dynamic configuration of a broker."""
    for path, settings in tree.configurations(BROKER_CONFIGS):
        for key in sorted(settings or {}):
            if key.endswith(_PASSWORDS):
                yield Fault(path, f"{key} is an encoded password")


@Check(
    Hazard.LOSES,
    shown_by="/kafka-acl/TYPE/NAME, /kafka-acl-extended/PATTERN/TYPE/NAME",
    means="KRaft reads it as no rights at all. Permitted users lose access, and denied users may gain it.",
    mend="Delete the znode and give the rights again with kafka-acls.sh.",
    source="AclEntry.fromBytes (3.9)",
    reads=ACLS,
)
def acl_no_json(tree: Tree) -> Iterator[Fault]:
    """Find an ACL that is not JSON."""
    for path, data in _acls(tree):
        if not _is_read(data, _ANY_JSON.decode):
            yield Fault(path, "is not JSON")


@Check(
    Hazard.KILLS,
    shown_by="/kafka-acl/TYPE/NAME, /kafka-acl-extended/PATTERN/TYPE/NAME",
    means="The copy ends with an exception at this resource, whatever authorizer runs.",
    mend="Delete the znode and give the rights again with kafka-acls.sh.",
    source="ZkAclMigrationClient, AclEntry.fromBytes (3.9)",
    reads=ACLS,
)
def acl_malformed(tree: Tree) -> Iterator[Fault]:
    """Find an ACL that is JSON, and not of Kafka's form."""
    for path, data in _acls(tree):
        if flaw_beside(path, data) is not None:
            yield Fault(path, "has not the form that Kafka writes")


def _acls(tree: Tree) -> Iterator[tuple[str, bytes]]:
    for path, znode in tree.znodes.items():
        if znode.data and is_acl(path):
            yield path, znode.data


@Check(
    Hazard.KILLS,
    shown_by="/latest_producer_id_block, where it is not empty",
    means="The copy ends with an exception.",
    mend="Write a whole block, above all that were given out: "
    '{"version":1,"broker":B,"block_start":"S","block_end":"E"}.',
    source="ZkMigrationClient (3.9)",
    reads=(PRODUCER_IDS,),
)
def producer_ids_no_json(tree: Tree) -> Iterator[Fault]:
    """Find a block of producer ids that is not JSON."""
    data = tree.data(PRODUCER_IDS)
    if flaw_beside(PRODUCER_IDS, data) is not None:
        yield Fault(PRODUCER_IDS, "is no block of ids as Kafka writes it")


def _is_read(data: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(data)
    except UndecodableError:
        return False
    return True
