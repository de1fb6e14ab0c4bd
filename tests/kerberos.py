"""A real KDC, and a ZooKeeper and a broker that take only logins by Kerberos."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cli.embedded.java import EmbeddedServer
from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import accepts_connections, free_port
from cli.embedded.zookeeper import ZooKeeper
from tests.programs import program

REALM = "EXAMPLE.COM"
_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


class Kdc(EmbeddedServer):
    """MIT Kerberos's KDC for a realm of its own. `variables` let MIT's library and Java find it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self._configure()
        self.variables = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={directory / 'krb5.conf'} "
            f"-Djava.security.auth.login.config={directory / 'jaas.conf'}",
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        command = [program("krb5kdc"), "-n"]
        environment = {**os.environ, **self.variables}
        super().__init__("KDC", command, directory / "kdc.log", environment=environment)

    def _configure(self) -> None:
        directory, address = self._directory, f"127.0.0.1:{self._port}"
        directory.mkdir()
        (directory / "krb5.conf").write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_canonicalize_hostname = false\n"
            f"udp_preference_limit = 1\n[realms]\n{REALM} = {{\nkdc = {address}\n}}\n"
        )
        (directory / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = {address}\nkdc_tcp_listen = {address}\n[realms]\n{REALM} = {{\n"
            f"database_name = {directory / 'principal'}\nkey_stash_file = {directory / 'stash'}\n}}\n"
        )
        sections = {"Server": "zookeeper/localhost", "Client": "kafka/localhost"}
        (directory / "jaas.conf").write_text(
            "".join(f"{name} {{ {self.module_of(principal)}; }};\n" for name, principal in sections.items())
        )

    def wait_until_ready(self) -> None:
        """Wait until the KDC listens."""
        self.wait_until(lambda: accepts_connections(self._port), timeout_seconds=30)

    def keytab(self, principal: str) -> str:
        """Return the file of a principal's keys."""
        return str(self._directory / f"{principal.replace('/', '-')}.keytab")

    def module_of(self, principal: str) -> str:
        """Return Java's login as a principal."""
        return f'{_MODULE} keyTab="{self.keytab(principal)}" principal="{principal}@{REALM}"'

    def add(self, principal: str, *, ticket_seconds: int = 3600) -> None:
        """Make a principal with new keys in its keytab."""
        self.ask(f'add_principal -randkey -maxlife "{ticket_seconds} seconds" {principal}')
        self.ask(f"ktadd -k {self.keytab(principal)} {principal}")

    def ask(self, query: str) -> None:
        """Change the KDC's database by a query of kadmin."""
        self._run("kadmin.local", "-q", query)

    def _run(self, name: str, *arguments: str) -> None:
        environment = {**os.environ, **self.variables}
        subprocess.run([program(name), *arguments], env=environment, check=True, capture_output=True)


def kerberized_zookeeper(directory: Path) -> ZooKeeper:
    """Return a server that takes no session without a login. It runs in an environment with the KDC's variables."""
    return ZooKeeper(
        directory,
        properties={
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "enforce.auth.enabled": "true",
            "enforce.auth.schemes": "sasl",
            "kerberos.removeHostFromPrincipal": "true",
            "kerberos.removeRealmFromPrincipal": "true",
        },
    )


class KerberizedBroker(KafkaBroker):
    """A broker that logs in to ZooKeeper by Kerberos, and whose listener at `address` demands this of clients."""

    def __init__(self, kdc: Kdc, zookeeper: str, directory: Path) -> None:
        own, self.address = f"localhost:{free_port()}", f"localhost:{free_port()}"
        properties = {
            "listeners": f"PLAINTEXT://{own},SASL_PLAINTEXT://{self.address}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f"{kdc.module_of('kafka/localhost')};",
        }
        super().__init__(1, zookeeper, directory, properties=properties)

    def _wait_for_the_old_session(self) -> None:
        """Do nothing, because the broker starts only once."""
