"""Logging in to ZooKeeper and speaking TLS with it, against real servers that demand it."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from cli.embedded.process import free_port
from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import RecordKind
from ingest.complete_read import read_once
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.election import Election
from ingest.errors import IngestError
from tests.ingest.conftest import Watching
from tests.ingest.descriptions import newest
from tests.lanes import in_gate
from tests.programs import program
from tests.waiting import eventually
from transport.address import JournalAddress, KafkaAddress

SECRET = "open sesame"


def password_file(directory: Path, password: str = SECRET) -> str:
    file = directory / f"password-{len(password)}"
    file.write_text(password + "\n")
    return str(file)


def _write_server_login(jaas: Path, secret: str) -> None:
    """Write the server's own settings of the login, with the password of its only user."""
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f'Server {{ {module} required user_kontrast="{secret}"; }};\n')


@pytest.fixture
def login_server(java: Path, tmp_path: Path) -> Iterator[ZooKeeper]:
    """Run a server that requires a login."""
    jaas = tmp_path / "jaas.conf"
    _write_server_login(jaas, SECRET)
    properties = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
    }
    with ZooKeeper(
        tmp_path / "login", properties=properties, system_properties={"java.security.auth.login.config": str(jaas)}
    ) as server:
        yield server


def test_a_refused_login_is_tried_again_until_the_file_has_the_new_password(
    login_server: ZooKeeper, watch: Callable[..., Watching], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address, file = login_server.connect_string, Path(password_file(tmp_path))
    watching = watch(zookeeper=address, zookeeper_username="kontrast", zookeeper_password_file=str(file))
    login = {"election_zookeeper": address, "election_username": "kontrast", "election_password_file": str(file)}
    leads, waits = (Election(electing(**login), threading.Event(), lambda: 6, lambda _: None) for _ in range(2))
    with closing(leads), closing(waits), ThreadPoolExecutor() as pool:
        assert leads.next_term() is not None
        next_term = pool.submit(waits.next_term)
        eventually(lambda: "leads, this forwarder waits" in caplog.text)
        login_server.kill()
        eventually(lambda: watching.count(RecordKind.SESSION, "suspended") == 1)
        _write_server_login(tmp_path / "jaas.conf", "renewed")
        login_server.start()
        eventually(lambda: caplog.text.count("refuses the login. Kontrast tries again") == 3)
        file.write_text("renewed\n")
        eventually(lambda: '"connected"' in (watching.records()[-1].data or ""))
        leads.close()
        assert next_term.result(60) is not None
    watching.stop()
    assert SECRET not in caplog.text + repr(watching.config)
    assert "Traceback" not in caplog.text
    assert watching.count(RecordKind.SESSION, "suspended") == 1, "a refused login is no connection"


def test_a_wrong_password_or_none_is_one_sentence(login_server: ZooKeeper, tmp_path: Path) -> None:
    for starts in (forward, read):
        with pytest.raises(IngestError, match="refuses the login as 'kontrast'. Check zookeeper_username") as refused:
            starts(
                tmp_path,
                zookeeper=login_server.connect_string,
                zookeeper_username="kontrast",
                zookeeper_password_file=password_file(tmp_path, "wrong"),
            )
        assert "wrong" not in str(refused.value).replace("password", "")
        with pytest.raises(IngestError, match="demands a login. Give zookeeper_username and its password"):
            starts(tmp_path, zookeeper=login_server.connect_string)


def read(_: Path, **settings: object) -> None:
    read_once(ZooKeeperConfig(**settings), threading.Event())


def forward(directory: Path, **settings: object) -> None:
    watching = Watching(IngestConfig(cluster="c", to=JournalAddress(directory / "journal"), **settings))
    watching.start()
    eventually(lambda: watching.error is not None)
    raise watching.error  # type: ignore[misc]


class Certificates:
    """An authority, and certificates that it signed, as PEM files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()
        self._openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority")
        self.authority = str(directory / "ca.pem")

    def sign(self, name: str, host: str) -> tuple[str, str]:
        """Return the files of a host's certificate and its key."""
        (self._directory / f"{name}.ext").write_text(f"subjectAltName={host}\n")
        self._openssl(f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {name}.ext"
        self._openssl(f"{signed} -out {name}.pem")
        return str(self._directory / f"{name}.pem"), str(self._directory / f"{name}.key")

    def _openssl(self, arguments: str) -> None:
        subprocess.run([program("openssl"), *arguments.split()], cwd=self._directory, check=True, capture_output=True)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def tls_server(java: Path, tmp_path: Path, certificates: Certificates) -> Iterator[tuple[ZooKeeper, str]]:
    """Run a server that asks for a client certificate. Yield it with its secure address."""
    certificate, key = certificates.sign("server", "IP:127.0.0.1")
    keys = tmp_path / "server.pem"
    keys.write_text(Path(key).read_text() + Path(certificate).read_text())
    port = free_port()
    properties = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": str(port),
        "ssl.keyStore.location": str(keys),
        "ssl.trustStore.location": certificates.authority,
    }
    with ZooKeeper(tmp_path / "tls", properties=properties) as server:
        yield server, f"127.0.0.1:{port}"


def tls(prefix: str, certificates: Certificates) -> dict[str, object]:
    """Return the settings of TLS with a client certificate."""
    certificate, key = certificates.sign("client", "DNS:client")
    own = {"tls": True, "ca_file": certificates.authority, "certificate_file": certificate, "key_file": key}
    return {f"{prefix}_{name}": value for name, value in own.items()}


def test_sessions_speak_tls_and_show_their_certificate(
    tls_server: tuple[ZooKeeper, str], certificates: Certificates, watch: Callable[..., Watching]
) -> None:
    watching = watch(zookeeper=tls_server[1], ensemble_interval_seconds=1.0, **tls("zookeeper", certificates))
    watching.settled()
    assert watching.count(RecordKind.SNAPSHOT_END) == 1
    asked = newest(watching, lambda one: one.servers[0].data_bytes >= 0)  # four-letter words go through TLS, too
    assert (asked.servers[0].refused, asked.left_sessions) == ((), ())
    config = electing(election_zookeeper=tls_server[1], **tls("election", certificates))
    with closing(Election(config, threading.Event(), lambda: 6, lambda _: None)) as election:
        term = election.next_term()
        assert term is not None
        assert term.holds()


@pytest.mark.parametrize(
    "mistake", in_gate("another host", of=["no certificate", "another authority", "another host", "no TLS"])
)
def test_a_connection_that_is_not_trusted_is_never_used(
    tls_server: tuple[ZooKeeper, str], certificates: Certificates, tmp_path: Path, mistake: str
) -> None:
    settings = {"zookeeper": tls_server[1], "connect_timeout_seconds": 3, **tls("zookeeper", certificates)}
    if mistake == "no certificate":
        del settings["zookeeper_certificate_file"], settings["zookeeper_key_file"]
    elif mistake == "another authority":
        settings["zookeeper_ca_file"] = Certificates(tmp_path / "other").authority
    elif mistake == "another host":
        settings["zookeeper"] = tls_server[1].replace("127.0.0.1", "localhost")
    else:
        settings = {name: value for name, value in settings.items() if not name.startswith("zookeeper_")}
    with pytest.raises(IngestError, match="could not be reached within 3 s"):
        read(tmp_path, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"zookeeper_username": "u"}, "zookeeper_username is given and needs its password"),
        (
            {"zookeeper_username": "u", "zookeeper_password_file": "FILE", "zookeeper_password_variable": "HOME"},
            "in zookeeper_password_file or in zookeeper_password_variable, not in both",
        ),
        ({"zookeeper_password_variable": "HOME"}, "zookeeper_password_variable is given and zookeeper_username is not"),
        (
            {"zookeeper_username": "u", "zookeeper_password_variable": "NOT_SET"},
            "zookeeper_password_variable names NOT_SET, which the environment lacks",
        ),
        ({"zookeeper_password_file": "FILE"}, "zookeeper_password_file is given and zookeeper_username is not"),
        ({"zookeeper_principal": "u"}, "zookeeper_principal is given and zookeeper_keytab_file is not"),
        ({"zookeeper_keytab_file": "FILE"}, "zookeeper_keytab_file is given and zookeeper_principal is not"),
        (
            {"zookeeper_username": "u", "zookeeper_principal": "u", "zookeeper_keytab_file": "FILE"},
            "zookeeper_username is given and so is zookeeper_principal",
        ),
        ({"zookeeper_ca_file": "FILE"}, "zookeeper_ca_file is given and zookeeper_tls is not"),
        ({"zookeeper_certificate_file": "FILE", "zookeeper_tls": True}, "zookeeper_key_file is not"),
        ({"zookeeper_key_file": "FILE", "zookeeper_tls": True}, "zookeeper_certificate_file is not"),
        ({"zookeeper_tls": True, "zookeeper_ca_file": "/absent"}, "zookeeper_ca_file /absent cannot be read"),
        ({"election_username": "u"}, "election_username is given and election_zookeeper is not"),
        ({"election_username": "zookeeper"}, "election_username is given and election_zookeeper is not"),
        ({"election_username": "u", "election_zookeeper": "h:1"}, "election_username is given and needs its password"),
        ({"election_key_file": "k", "election_zookeeper": "h:1"}, "election_key_file is given and election_cert"),
        ({"election_service_name": "zk"}, "election_service_name is given and election_zookeeper is not"),
        ({"election_principal": "u", "election_zookeeper": "h:1"}, "election_principal is given and election_keytab"),
    ],
)
def test_what_cannot_work_is_refused_by_name(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    (tmp_path / "file").write_text("x")
    given = {name: str(tmp_path / "file") if value == "FILE" else value for name, value in settings.items()}
    with pytest.raises(IngestError, match=words):
        electing(**given)


def test_a_password_is_that_of_its_variable_and_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_ZOOKEEPER", SECRET)
    config = ZooKeeperConfig(zookeeper="h:1", zookeeper_username="u", zookeeper_password_variable="OF_ZOOKEEPER")
    assert config.password == SECRET
    (tmp_path / "file").write_bytes(b"\xff")
    config = ZooKeeperConfig(zookeeper="h:1", zookeeper_username="u", zookeeper_password_file=str(tmp_path / "file"))
    with pytest.raises(IngestError, match="cannot be read: "):
        assert config.password


def electing(**changes: object) -> IngestConfig:
    settings: dict[str, object] = {"zookeeper": "127.0.0.1:1", "cluster": "east", "connect_timeout_seconds": 3}
    return IngestConfig(**{**settings, "to": KafkaAddress("127.0.0.1:1", "changes"), **changes})  # type: ignore[arg-type]
