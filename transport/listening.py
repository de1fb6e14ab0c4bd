"""Settings of an HTTP address, such as its certificate, username and password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transport.secret import password_problem, read_secret, settings_problem

_LISTEN = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
ANY_HOST = "*"
_TOGETHER = (
    ("tls_certificate_file", "tls_key_file"),
    ("tls_key_file", "tls_certificate_file"),
    ("password_file", "username"),
    ("password_variable", "username"),
)
_FILES = ("tls_certificate_file", "tls_key_file", "password_file")


class ListeningError(ValueError):
    """An impossible setting, in one sentence that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """An HTTP address, with TLS if there is a certificate and a login if there is a username.

    `listen` is HOST:PORT or [IPV6]:PORT. Port 0 takes any free port. The password is in a file or in the environment,
    not in a setting. Clients may ask for this machine's host names and `allowed_hosts`. `ANY_HOST` allows all.
    ListeningError puts `prefix` before the names of the settings.
    """

    listen: str
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    prefix: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        match = _LISTEN.fullmatch(self.listen)
        if match is None or int(match["port"]) > 65535:
            raise self._wrong(f"listen is {self.listen!r}. Give HOST:PORT with a port from 0 to 65535")
        if problem := settings_problem(self, _TOGETHER, _FILES, self.prefix):
            raise self._wrong(problem)
        if self.username is not None:
            self._check_login(self.username)
        for host in self.allowed_hosts:
            if host != ANY_HOST and not _HOST_NAME.fullmatch(host):
                raise self._wrong(f"allowed_hosts has {host!r}. Give host names without a port, or {ANY_HOST}")

    def _check_login(self, username: str) -> None:
        if not username or ":" in username:
            raise self._wrong(f"username is {username!r}, but must not be empty or have a colon")
        if problem := password_problem(self.password_file, self.password_variable, self.prefix):
            raise self._wrong(problem)

    def _wrong(self, sentence: str) -> ListeningError:
        return ListeningError(self.prefix + sentence)

    @property
    def host(self) -> str:
        """Return the host of `listen`, without brackets."""
        host, _, _ = self.listen.rpartition(":")
        return host.strip("[]")

    @property
    def port(self) -> int:
        """Return the port of `listen`."""
        return int(self.listen.rpartition(":")[2])

    @property
    def password(self) -> str:
        """Return the password from its file, without the newline at its end, or from the variable.

        Raise ListeningError.
        """
        try:
            password = read_secret(self.password_file, self.password_variable)
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"password_file {self.password_file} cannot be read: {error}") from error
        assert password is not None, "a password that no setting names"
        if not password and self.password_file is not None:
            raise self._wrong(f"password_file {self.password_file} is empty. Write the password into it")
        return password
