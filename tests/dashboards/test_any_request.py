"""Any request to any route: no answer is an error of the server, and each status is in the OpenAPI document."""

from __future__ import annotations

import http.client
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dashboards.page.interface import PATHS, document

_METRICS = ("/metrics", "/healthz", "/readyz")
_PAGES = (
    "/",
    *(path.path for path in PATHS),
    "/clusters/{cluster}/whatif",
    "/clusters/{cluster}/explain",
    "/explain",
    "/static/x",
)
_NOT_DOCUMENTED = {404, 405, 400, 503}  # of pages, whose refusals are pages too
_HEADER_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)
_FORMS = st.sampled_from(["text/plain", "application/openmetrics-text", "text/html", "*/*", "application/json"])
_VERSIONS = st.sampled_from(["1.0.0", "1.0.0-rc1", "0.0.4", "x", "9" * 5_000, "-1", "1..0", "\u00e9"])
_ODD_NAMES = st.sampled_from(["north", "orders", "0", "1", "-1", "..", "9" * 20])
_NAMES = st.one_of(_ODD_NAMES, st.text(min_size=1, max_size=20))


class Request(NamedTuple):
    """A request, with the statuses that its path documents, if it is one of the JSON interface."""

    method: str
    target: str
    headers: dict[str, str]
    documented: frozenset[int] | None


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Draw a request of any route, with any names, parameters and headers."""
    described = document()["paths"]
    routes: list[tuple[str, str, dict[str, Any] | None]] = [
        *(("get", page, None) for page in (*_METRICS, *_PAGES)),
        *((method, path, of_path[method]) for path, of_path in described.items() for method in of_path),
    ]
    method, path, operation = draw(st.sampled_from(routes))
    for name in ("cluster", "topic", "partition", "broker"):
        path = path.replace(f"{{{name}}}", quote(draw(_NAMES), safe=""))
    queries = [each["name"] for each in (operation or {}).get("parameters", ()) if each["in"] == "query"]
    asked = draw(st.lists(st.tuples(st.sampled_from([*queries, "at", "first", "x"]), _NAMES), max_size=4))
    accept = draw(st.one_of(_HEADER_TEXT, st.builds("{}; version={}".format, _FORMS, _VERSIONS)))
    others = st.sampled_from(
        ["X-Forwarded-For", "X-Forwarded-Proto", "Accept-Encoding", "Range", "If-None-Match", "Origin", "Content-Type"]
    )
    headers = {"Accept": accept, **draw(st.dictionaries(others, _HEADER_TEXT, max_size=3))}
    wrong_method = draw(st.sampled_from([method, method, method, "put", "head"]))
    is_documented = operation is not None and wrong_method == method
    documented = frozenset(map(int, operation["responses"])) if is_documented and operation is not None else None
    return Request(wrong_method.upper(), f"{path}?{urlencode(asked)}", headers, documented)


@pytest.fixture
def ask(exporter, rows):
    """Return a function that returns the status of a request."""
    exporter.write(*rows.of_everything())
    exporter.metrics_with(r"^kontrast_ready\{.*\} 1")
    address = urlsplit(exporter.address).netloc

    def status(method: str, target: str, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(address, timeout=60)
        try:
            connection.request(method, target, headers={key: value.encode("latin-1") for key, value in headers.items()})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    return status


def test_a_version_that_is_none_gets_the_default_form(ask):
    for form in ("text/plain", "application/openmetrics-text"):
        assert ask("GET", "/metrics", {"Accept": f"{form}; version=1.0.0-rc1"}) == 200


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests())
def test_no_request_is_an_error_of_the_server(ask, request):
    status = ask(request.method, request.target, request.headers)
    if request.documented is not None:
        assert status in request.documented
    else:
        assert status < 500 or status in _NOT_DOCUMENTED
