"""Options of Kafka's Java client for an address, as Spark's sources, sinks and admin clients take them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streaming.errors import StreamError
from transport.address import KafkaAddress
from transport.kafka_login import GSSAPI, OAUTHBEARER, KafkaLogin, KafkaLoginError

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
}
_TOKEN_READER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"  # noqa: S105
_PEM: Final = "PEM"


def java_options(address: KafkaAddress) -> dict[str, str]:
    """Return options by Kafka's names, with the secrets as their files have them now. Raise StreamError.

    The options contain certificates and keys, so Spark's executors need no files but a token's and a keytab. Each
    client reads these again.
    """
    options = {"bootstrap.servers": address.bootstrap_servers, "security.protocol": address.login.protocol}
    try:
        return {**options, **_tls(address.login), **_sasl(address.login)}
    except KafkaLoginError as error:
        raise StreamError(str(error)) from error


def spark_options(address: KafkaAddress) -> dict[str, str]:
    """Return the options of `java_options` in the form of Spark's readers and writers."""
    return {f"kafka.{name}": value for name, value in java_options(address).items()}


def _tls(login: KafkaLogin) -> dict[str, str]:
    options: dict[str, str] = {}
    if login.ca_file is not None:
        options |= {"ssl.truststore.type": _PEM, "ssl.truststore.certificates": login.text_of("ca_file")}
    if login.certificate_file is not None:
        options |= {
            "ssl.keystore.type": _PEM,
            "ssl.keystore.certificate.chain": login.text_of("certificate_file"),
            "ssl.keystore.key": login.text_of("key_file"),
        }
    return options


def _sasl(login: KafkaLogin) -> dict[str, str]:
    if login.mechanism is None:
        return {}
    options: dict[str, str] = {"sasl.mechanism": login.mechanism}
    if login.token_file is not None:
        options["sasl.login.callback.handler.class"] = _TOKEN_READER
        options["sasl.oauthbearer.token.endpoint.url"] = Path(login.token_file).absolute().as_uri()
        return {**options, "sasl.jaas.config": f"{_LOGIN_MODULES[login.mechanism]} required;"}
    if login.keytab_file is not None:
        options["sasl.kerberos.service.name"] = login.service_name
        keytab = f"keyTab={_quoted(str(Path(login.keytab_file).absolute()))} principal={_quoted(login.principal or '')}"
        module = f"{_LOGIN_MODULES[login.mechanism]} required useKeyTab=true storeKey=true"
        return {**options, "sasl.jaas.config": f"{module} {keytab};"}
    named = f"username={_quoted(login.username or '')} password={_quoted(login.password or '')}"
    return {**options, "sasl.jaas.config": f"{_LOGIN_MODULES[login.mechanism]} required {named};"}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
