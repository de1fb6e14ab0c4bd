"""Pages of `kontrast watch` and `kontrast serve`, from the addresses in their settings."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from cli.settings.config import Layer
from transport.listening import Listening, ListeningError

_TIMEOUT_SECONDS: Final = 3
_EVERY_INTERFACE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (where it listens, not where we do)
_MOST_BYTES: Final = 64 * 1024**2


class Page(NamedTuple):
    """The address of a process's pages, and whether they need a login."""

    address: str
    needs_login: bool


def page_of(layer: Layer, key: str, prefix: str, default: str | None = None) -> Page | None:
    """Return the address of the pages of a process with these settings, if the port is fixed."""
    listen = str(layer[key].value) if key in layer else default
    try:
        listening = None if listen is None else Listening(listen=listen)
    except ListeningError:
        return None  # the process itself refuses such an address at its start
    if listening is None or listening.port == 0:
        return None
    scheme = "https" if f"{prefix}tls_certificate_file" in layer else "http"
    host = _EVERY_INTERFACE.get(listening.host, listening.host)
    where = f"[{host}]" if ":" in host else host
    return Page(f"{scheme}://{where}:{listening.port}", f"{prefix}username" in layer)


def ask_page(page: Page, path: str) -> str | OSError:
    """Return the text of the page, or its error. The request has no login, because it does not check certificates."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    try:
        with urllib.request.build_opener(*handlers).open(page.address + path, timeout=_TIMEOUT_SECONDS) as answer:
            return _text(answer)
    except urllib.error.HTTPError as error:
        return _text(error)
    except urllib.error.URLError as error:
        return error.reason if isinstance(error.reason, OSError) else OSError(str(error.reason))
    except http.client.HTTPException as error:
        return OSError(f"it is no HTTP server: {error!r}")
    except OSError as error:
        return error


def _text(answer: http.client.HTTPResponse | urllib.error.HTTPError) -> str:
    return answer.read(_MOST_BYTES).decode(errors="replace").strip()


def sample_of(page: str, name: str, **labels: str) -> float | None:
    """Return the value of the page's sample with this name and, among others, these labels."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def label_of(page: str, name: str, label: str) -> str:
    """Return the label of the page's first sample of this name, or an empty text."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == name:
                return sample.labels.get(label, "")
    return ""
