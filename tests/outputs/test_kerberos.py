"""Settings of a login by Kerberos, as far as they need no KDC. `tests/deploy/test_kerberos.py` logs in."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from kafka.errors import KafkaConfigurationError

from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from outputs.kafka_connections import client_options
from streaming.kafka_options import java_options
from transport.address import KafkaAddress
from transport.kafka_login import KafkaLogin, KafkaLoginError

MISSING = r"a login by Kerberos needs the package gssapi: pip install 'kontrast\[kerberos\]'"


@pytest.fixture
def keytab(tmp_path: Path) -> str:
    (tmp_path / "a keytab").write_bytes(b"")
    return str(tmp_path / "a keytab")


def by_kerberos(keytab: str) -> KafkaAddress:
    login = KafkaLogin(sasl_mechanism="GSSAPI", principal="kontrast", keytab_file=keytab, service_name="broker")
    return KafkaAddress("h:1", "t", login)


def test_java_gets_the_keytab_as_its_own_login_module_takes_it(keytab: str) -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    assert java_options(by_kerberos(keytab)) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "broker",
        "sasl.jaas.config": f'{module} keyTab="{keytab}" principal="kontrast";',
    }


def test_a_missing_library_is_named_with_the_extra(keytab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(KafkaConfigurationError, match=MISSING):
        client_options(by_kerberos(keytab))
    with pytest.raises(IngestError, match=MISSING):
        read_once(
            ZooKeeperConfig(zookeeper="h:1", zookeeper_principal="kontrast", zookeeper_keytab_file=keytab),
            threading.Event(),
        )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl_mechanism": "GSSAPI"}, "keytab_file belongs to sasl_mechanism GSSAPI"),
        ({"principal": "p", "keytab_file": "FILE"}, "keytab_file belongs to sasl_mechanism GSSAPI"),
        ({"sasl_mechanism": "GSSAPI", "keytab_file": "FILE"}, "keytab_file is given and principal is not"),
        ({"principal": "p"}, "principal is given and keytab_file is not"),
        (
            {"sasl_mechanism": "GSSAPI", "principal": "p", "keytab_file": "FILE", "username": "u"},
            "username is given and so is keytab_file",
        ),
        (
            {"sasl_mechanism": "GSSAPI", "principal": "p", "keytab_file": "/absent"},
            "keytab_file /absent cannot be read",
        ),
    ],
)
def test_incomplete_settings_are_named(keytab: str, settings: dict[str, str], words: str) -> None:
    given = {name: keytab if value == "FILE" else value for name, value in settings.items()}
    with pytest.raises(KafkaLoginError, match=words):
        KafkaLogin(**given)  # type: ignore[arg-type]
