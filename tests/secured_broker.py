"""A real broker that asks for TLS, a login and ACLs, and the users that it knows."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import free_port
from tests.certificates import make_self_signed
from tests.programs import program
from transport.kafka_login import OAUTHBEARER, KafkaLogin, Mechanism

USERS = ("watch", "stream", "serve")
_PASSWORD = 'a "quoted" \\ password'
_MODULES = "org.apache.kafka.common.security"
_MECHANISMS: Sequence[Mechanism] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class SecuredBroker(KafkaBroker):
    """A broker with a listener of its own for tests, whose user may do anything, and one with SASL_SSL."""

    def __init__(self, zookeeper: str, directory: Path) -> None:
        self._files = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.open_address, self.address = (f"127.0.0.1:{free_port()}" for _ in range(2))
        make_self_signed(directory / "ca.pem", directory / "key.pem", "broker")
        pem = directory / "broker.pem"
        pem.write_text((directory / "key.pem").read_text() + (directory / "ca.pem").read_text())
        (directory / "jwks.json").write_text(json.dumps({"keys": [_public_key(directory / "key.pem")]}))
        (directory / "password").write_text(_PASSWORD + "\n")
        for user in USERS:
            (directory / f"{user}.token").write_text(_token(user, directory / "key.pem"))
        super().__init__(1, zookeeper, directory / "broker", properties=self._properties(pem))

    def _properties(self, pem: Path) -> dict[str, str]:
        # A properties file and JAAS each take one backslash of two.
        password = _PASSWORD.replace("\\", "\\\\\\\\").replace('"', '\\\\"')
        users = " ".join(f'user_{user}="{password}"' for user in USERS)
        own = "listener.name.sasl_ssl."
        oauth = f"{own}oauthbearer.sasl."
        return {
            "listeners": f"PLAINTEXT://{self.open_address},SASL_SSL://{self.address}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(pem),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            f"{own}plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {users};",
            f"{own}scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{own}scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{oauth}jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            f"{oauth}server.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            f"{oauth}oauthbearer.jwks.endpoint.url": (self._files / "jwks.json").as_uri(),
            f"{oauth}oauthbearer.expected.audience": "kafka",
        }

    def login(self, user: str, mechanism: Mechanism) -> KafkaLogin:
        """Return the user's login, with its secrets in files."""
        if mechanism == OAUTHBEARER:
            secrets = {"token_file": str(self._files / f"{user}.token")}
        else:
            secrets = {"username": user, "password_file": str(self._files / "password")}
        return KafkaLogin(tls=True, ca_file=str(self._files / "ca.pem"), sasl_mechanism=mechanism, **secrets)

    def admin(self) -> KafkaAdminClient:
        """Return a client with all permissions."""
        return KafkaAdminClient(bootstrap_servers=self.open_address)

    def make_users(self, users: Sequence[str] = USERS, password: str = _PASSWORD) -> None:
        """Give the users of SCRAM their passwords, which the file of `login` has by default."""
        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        with closing(self.admin()) as admin:
            refused = admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(user, kind, password) for user in users for kind in kinds]
            )
        assert not any(refused.values()), refused

    def allow(self, allowed: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Add ACLs. Operations have Kafka's names, by user and topic."""
        acls = [
            ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic))
            for user, topics in allowed.items()
            for topic, names in topics.items()
            for operation in map(_operation, names)
        ]
        with closing(self.admin()) as admin:
            answer = admin.create_acls(acls)
        assert not answer["failed"], answer


def _operation(name: str) -> ACLOperation:
    return {operation.name.replace("_", ""): operation for operation in ACLOperation}[name.upper()]


def _public_key(key: Path) -> dict[str, str]:
    """Return the key as a JSON Web Key. OpenSSL's default exponent is 65537."""
    command = [program("openssl"), "rsa", "-in", str(key), "-noout", "-modulus"]
    modulus = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().partition("=")[2]
    return {"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "e": "AQAB", "n": _base64(bytes.fromhex(modulus))}


def _token(user: str, key: Path) -> str:
    """Return a JSON Web Token of the user, valid for an hour."""
    now = int(time.time())
    claims = {"sub": user, "aud": "kafka", "iat": now, "exp": now + 3600, "scope": "kafka"}
    parts = [_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "k", "typ": "JWT"}, claims)]
    command = [program("openssl"), "dgst", "-sha256", "-sign", str(key)]
    signature = subprocess.run(command, input=".".join(parts).encode(), check=True, capture_output=True).stdout
    return ".".join([*parts, _base64(signature)])


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
