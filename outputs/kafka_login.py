"""Address and login of a Kafka node, without the client library."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLogin:
    """Login to the nodes of a cluster. `protocol` is Kafka's name of the security protocol."""

    protocol: str = "PLAINTEXT"
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    principal: str | None = None
    keytab_file: str | None = None
    service_name: str = "kafka"

    @property
    def tls(self) -> bool:
        """Return whether the login uses TLS."""
        return self.protocol.endswith("SSL")


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT or [IPV6]:PORT. Raise ValueError."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"{address!r} is no address. Give HOST:PORT")
    return host, int(port)
