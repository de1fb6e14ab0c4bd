"""Login by Kerberos, which SASL calls GSSAPI, with the keys of a keytab.

The library gssapi asks for tickets itself, and again when they expire. The tickets stay in this process's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

_NO_KEY = "No credentials cache found"  # MIT Kerberos's words for a keytab that cannot be used


class KerberosError(Exception):
    """A missing library or ticket, in one sentence."""


@dataclass(frozen=True, slots=True)
class Keytab:
    """A principal and the file with its keys. Raise KerberosError if the library is missing."""

    principal: str
    file: str

    def __post_init__(self) -> None:
        _library()


class KerberosExchange(SaslMechanismGSSAPI):  # type: ignore[misc]  # kafka-python has no types
    """The tokens of a login at a service of a host, with the first token ready. Raise KerberosError.

    It extends kafka-python's mechanism, which would use only tickets that another program got.
    """

    def __init__(self, keytab: Keytab, service: str, host: str) -> None:
        gssapi = _library()
        principal, file = keytab.principal, keytab.file
        tickets = {"client_keytab": file, "ccache": f"MEMORY:{principal} {file}"}
        try:
            peer = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
            own = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            self._client_ctx = gssapi.SecurityContext(
                name=peer.canonicalize(gssapi.MechType.kerberos),
                creds=gssapi.Credentials(name=own, usage="initiate", store=tickets),
                usage="initiate",
            )
            self._next_token = self._client_ctx.step(None)
        except gssapi.exceptions.GSSError as error:
            reason = "; ".join(error.get_all_statuses(error.min_code, False))
            reason = f"{file} has no key of the principal" if reason == _NO_KEY else reason
            raise KerberosError(
                f"Kerberos gives {principal} no ticket for {service} on {host} ({reason}). "
                f"Check the principal, its keytab {file}, the KDC and krb5.conf"
            ) from error
        self.auth_id = ""  # empty for the principal itself
        self._is_done = self._is_authenticated = False


def _library() -> Any:  # noqa: ANN401 (a module that may be missing)
    try:
        import gssapi
    except ImportError as error:
        raise KerberosError("a login by Kerberos needs the package gssapi: pip install 'kontrast[kerberos]'") from error
    return gssapi
