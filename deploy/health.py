"""Health check of the image, which asks whether `serve` and `watch`, as far as they run, answer at their usual ports.

A login or a certificate does not matter, because any answer shows that the process works. A container of `stream` alone
has no port, so its health check is disabled.
"""

from __future__ import annotations

import http.client
import ssl
import sys

_PORTS = (9642, 9643)  # serve, watch
_TIMEOUT_SECONDS = 5
_SERVER_ERROR = 500


def _answers(connection: http.client.HTTPConnection) -> bool | None:
    """Return whether the server answers, or None if nothing listens there."""
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < _SERVER_ERROR
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_healthy(ports: tuple[int, ...] = _PORTS) -> bool:
    """Return whether a port of this container is open, and each open one answers, with or without TLS."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    found = [
        _answers(http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS))
        or _answers(http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS, context=unverified))
        for port in ports
    ]
    return True in found and False not in found


if __name__ == "__main__":
    sys.exit(not is_healthy())
