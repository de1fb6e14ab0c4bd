"""Login to Kafka by settings, with every secret in a file or in the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from transport.secret import hide, password_problem, read_secret, settings_problem

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]

OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
_TOGETHER: Final = (
    ("ca_file", "tls"),
    ("certificate_file", "tls"),
    ("certificate_file", "key_file"),
    ("key_file", "certificate_file"),
    ("password_file", "username"),
    ("password_variable", "username"),
    ("keytab_file", "principal"),
    ("principal", "keytab_file"),
)
_FILES: Final = ("ca_file", "certificate_file", "key_file", "password_file", "token_file", "keytab_file")
_FILE_OF: Final = {OAUTHBEARER: "token_file", GSSAPI: "keytab_file"}  # the file that replaces the password


class KafkaLoginError(ValueError):
    """An impossible setting or an unreadable secret, named in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLogin:
    """Login to a Kafka cluster's brokers. Raise KafkaLoginError for impossible settings.

    With a username, `sasl_mechanism` logs in by the password. OAUTHBEARER logs in by the token in `token_file`, which
    another program renews. GSSAPI is Kerberos, which logs `principal` in to the brokers' service
    `service_name` by the keys in `keytab_file`. All secrets are in files or in the environment. `prefix` precedes the
    names of settings in KafkaLoginError's sentence.
    """

    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    sasl_mechanism: Mechanism = "SCRAM-SHA-512"
    username: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    token_file: str | None = None
    principal: str | None = None
    keytab_file: str | None = None
    service_name: str = "kafka"
    prefix: str = field(default="", compare=False, metadata={"is_key": False})

    def __post_init__(self) -> None:
        if problem := settings_problem(self, _TOGETHER, _FILES, self.prefix):
            raise self._wrong(problem)
        for mechanism, file in _FILE_OF.items():
            if (self.sasl_mechanism == mechanism) != (getattr(self, file) is not None):
                raise self._wrong(f"{file} belongs to {self.prefix}sasl_mechanism {mechanism}. Each needs the other")
        if self.username is not None:
            self._check_password()

    def _check_password(self) -> None:
        if self.sasl_mechanism in _FILE_OF:
            file = _FILE_OF[self.sasl_mechanism]
            raise self._wrong(f"username is given and so is {self.prefix}{file}. A login has only one")
        if problem := password_problem(self.password_file, self.password_variable, self.prefix):
            raise self._wrong(problem)

    def _wrong(self, sentence: str) -> KafkaLoginError:
        return KafkaLoginError(self.prefix + sentence)

    @property
    def mechanism(self) -> Mechanism | None:
        """Return the SASL mechanism of a login, if there is a login."""
        return self.sasl_mechanism if self.username is not None or self.sasl_mechanism in _FILE_OF else None

    @property
    def protocol(self) -> str:
        """Return Kafka's name of the security protocol."""
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    @property
    def password(self) -> str | None:
        """Return the current password from its file or variable. Raise KafkaLoginError."""
        return self._secret("password_file", self.password_variable)

    @property
    def token(self) -> str | None:
        """Return the current token from its file. Raise KafkaLoginError."""
        return self._secret("token_file", None)

    def text_of(self, name: str) -> str:
        """Return the current content of the file that the setting `name` names. Raise KafkaLoginError."""
        file = getattr(self, name)
        try:
            content = Path(file).read_text(encoding="utf-8")
            return hide(content) if name == "key_file" else content
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"{name} {file} cannot be read: {error}") from error

    def _secret(self, name: str, variable: str | None) -> str | None:
        try:
            return read_secret(getattr(self, name), variable)
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"{name} {getattr(self, name)} cannot be read: {error}") from error


NO_LOGIN: Final = KafkaLogin()


def host_and_port(host: str, port: int | str) -> str:
    """Return HOST:PORT, with an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [IPV6]:PORT. Raise ValueError."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"{address!r} is no address. Give HOST:PORT")
    return host, int(port)
