"""Fixtures that the tests of `dashboards/` share, with a running exporter and the requests to it."""

from __future__ import annotations

import re
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from controller.contract.job_row import JobRow
from controller.contract.outputs import encode_row
from controller.contract.row import Row
from dashboards.alerting.config import STALE_AFTER_SECONDS
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.server import run
from tests.certificates import make_self_signed
from tests.dashboards.prometheus_server import prometheus_over
from tests.dashboards.visits import Visit
from tests.programs import program
from tests.prometheus import Prometheus
from tests.rows import NEVER_STALE_MS
from tests.waiting import eventually
from transport.address import JournalAddress
from transport.journal import JournalWriter


class Exporter:
    """A running `kontrast serve` over journals, and the journals that it reads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = ""
        self._one_writer = threading.Lock()  # like the sink, because a journal in use refuses a second writer

    def write(self, *written: Row | JobRow) -> None:
        """Append the rows as the sink does, each output's in one batch."""
        for output in {row.output: None for row in written}:
            self.write_lines(output, *(encode_row(row) for row in written if row.output == output))

    def write_lines(self, output: str, *lines: bytes) -> None:
        with self._one_writer, JournalWriter(self.directory / output, batches=True) as journal:
            journal.append_batch(journal.last_batch_id + 1, lines)

    def get(self, path: str, *, tls: ssl.SSLContext | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=60, context=tls) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def page(self, path: str) -> str:
        status, _, body = self.get(path)
        assert status == 200, body
        return body.decode()

    def page_with(self, path: str, pattern: str) -> str:
        """Return the page once one of its lines matches. Fail if no line does in time.

        A cluster is not known before its rows are read, and outputs are read one after the other.
        """
        _, _, body = eventually(
            lambda: self.get(path),
            lambda answer: answer[0] == 200 and re.search(pattern, answer[2].decode(), re.MULTILINE) is not None,
        )
        return body.decode()

    def metrics(self) -> str:
        return self.page("/metrics")

    def metrics_with(self, pattern: str) -> str:
        """Return the metrics once one of their lines matches. Fail if no line does in time."""
        return self.page_with("/metrics", pattern)


def _for_old_rows(config: ServeConfig) -> ServeConfig:
    """Return the settings with an age limit that keeps made-up rows current, unless a test sets the limit."""
    alertmanager = config.alertmanager
    if alertmanager.stale_after_seconds != STALE_AFTER_SECONDS:
        return config
    return replace(config, alertmanager=replace(alertmanager, stale_after_seconds=NEVER_STALE_MS / 1_000))


@contextmanager
def _exporter(config: ServeConfig, exporter: Exporter) -> Iterator[Exporter]:
    config = _for_old_rows(config)
    stop, started = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def on_start(address: str) -> None:
        exporter.address = address
        started.set()

    def serve() -> None:
        try:
            run(config, stop, on_start)
        except BaseException as error:
            failures.append(error)
            started.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert started.wait(60)
        assert not failures, failures
        yield exporter
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert not failures, failures


def running_exporter(config: ServeConfig) -> AbstractContextManager[Exporter]:
    """Run an exporter with these settings over journals, until the `with` ends."""
    return _exporter(config, Exporter(getattr(config.source, "directory", Path())))


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    """Run an exporter that names two partitions of a cluster at most."""
    config = ServeConfig(source=JournalAddress(tmp_path), listen="127.0.0.1:0", partition_detail_limit=2)
    with _exporter(config, Exporter(tmp_path)) as running:
        yield running


@pytest.fixture(scope="session")
def start_exporter() -> Callable[[ServeConfig], AbstractContextManager[Exporter]]:
    """Return a function that runs an exporter with these settings until its `with` ends."""
    return running_exporter


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[], tuple[Path, Path]]:
    """Return a function that makes a new self-signed certificate for 127.0.0.1, and its key, at each call."""
    made = count(1)

    def make() -> tuple[Path, Path]:
        number = next(made)
        shown, key = tmp_path / f"certificate-{number}.pem", tmp_path / f"key-{number}.pem"
        make_self_signed(shown, key, "exporter")
        return shown, key

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread until the module ends, so no other test here could run one.
    with sync_playwright() as playwright:
        # No sandbox, because root in a container has no user namespaces for it.
        running = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, exporter: Exporter) -> Iterator[Visit]:
    context = browser.new_context(color_scheme="light", viewport={"width": 1100, "height": 900})
    context.set_default_timeout(15_000)
    visited = Visit(context.new_page())
    yield visited
    context.close()
    assert visited.said == []
    assert visited.asked == {exporter.address.removeprefix("http://")}


@pytest.fixture
def visit_at(browser: Browser) -> Iterator[Callable[[Exporter, str], Page]]:
    """Yield a function that opens a page of another server."""
    opened: list[Page] = []

    def visit(server: Exporter, path: str) -> Page:
        page = browser.new_page()
        opened.append(page)
        page.goto(server.address + path)
        return page

    yield visit
    for page in opened:
        page.close()


@pytest.fixture(scope="session")
def incident_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run a real Prometheus with the recorded incidents of `incident`."""
    from tests.dashboards.incident import SCRAPE_SECONDS, incident_lines

    directory = tmp_path_factory.mktemp("incident")
    with prometheus_over(directory, incident_lines(directory), SCRAPE_SECONDS) as running:
        yield running


def _tool(name: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    path = program(name)
    return lambda *arguments, **options: subprocess.run(
        [path, *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="session")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs promtool with these arguments."""
    return _tool("promtool")


@pytest.fixture(scope="session")
def amtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs amtool with these arguments."""
    return _tool("amtool")
