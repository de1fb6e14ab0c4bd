"""Show whether watch, stream and serve work, with their lag and problems."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final, NamedTuple

import click
from prometheus_client.parser import text_string_to_metric_families

from cli.followed_outputs import (
    Followed,
    Where,
    followed,
    outputs_options,
    where_outputs_are,
    without_messages_of_waiting,
)
from cli.printing.standard_output import print_json, print_said
from cli.running import ExitCode, run_until_stopped
from cli.settings.config import Layer, Settings, reached
from cli.settings.keys import keys_of
from cli.settings.options import config_option
from controller.contract.job_row import JobRow
from controller.view.ensemble import ensemble_at, ensemble_sentence, voters_in_sync
from dashboards.catalogue.metric import CLUSTER_LABEL
from dashboards.catalogue.pipeline_metrics import BUILD_INFO, WATCH_CONNECTED, WATCH_LAG, WATCH_SINK_UP
from dashboards.exporter.config import ServeConfig
from outputs import OutputsError, SourceDownError, open_changes
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import rows_lost
from questions.picture import Present
from questions.replay import percent
from transport.address import Address, JournalAddress, KafkaAddress
from transport.listening import Listening, ListeningError
from wording.said import Table
from wording.times import duration

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


_OUTPUTS: Final = ("job", "alerts", "gauges")
_COLUMNS: Final = ("part", "of", "state", "last", "lag", "agreement", "version", "problem or note")
_EPILOG: Final = """\b
Examples:
  kontrast status --config kontrast.toml
  kontrast status --from journal:/var/lib/kontrast/outputs --json

\b
Exit codes:
  0  all parts work
  1  a problem, in the last column
  2  a flag or setting is wrong
  3  the outputs are missing or unreadable
"""


class Part(NamedTuple):
    """A part of Kontrast with the object that it works on, its last work, its lag and its problems."""

    part: str
    of: str
    last_seconds: float | None
    lag_seconds: float | None
    version: str
    wrong: str
    agreement_of_last_hour: float | None = None  # of a watched cluster, see `gauges`
    note: str = ""
    is_known: bool = True  # False if nothing shows whether the part works
    is_starting: bool = False  # nothing is wrong but that its first work is not done

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        last = "-" if self.last_seconds is None else f"{duration(int(self.last_seconds) * 1_000)} ago"
        lag = "-" if self.lag_seconds is None else f"{self.lag_seconds:.2f} s"
        state = "starting" if self.is_starting else "wrong" if self.wrong else "ok" if self.is_known else "unknown"
        agrees = percent(self.agreement_of_last_hour)
        return self.part, self.of, state, last, lag, agrees, self.version or "-", self.wrong or self.note


@click.command(epilog=_EPILOG)
@config_option
@outputs_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def status(settings: Settings, *, as_json: bool, serve: Layer) -> int:
    """Show whether watch, stream and serve work, with their lag and problems.

    Reads the outputs and asks the pages of `kontrast watch` (metrics_listen) and `kontrast serve` (listen), if the file
    or the environment names them.
    """
    where = where_outputs_are(settings, serve)

    def run(stop: threading.Event) -> ExitCode:
        with followed(where, _OUTPUTS) as outputs:
            outputs.wait_until_read(stop)
            parts = () if stop.is_set() else tuple(_parts(settings, outputs, where))
        if as_json:
            for part in parts:
                print_json({**part._asdict(), "ok": not part.wrong and part.is_known})
        elif parts:
            print_said([Table(_COLUMNS, (part.cells for part in parts), below=1)])
        return ExitCode.FAILED if any(part.wrong for part in parts) else ExitCode.OK

    return run_until_stopped({"status": run})


def _parts(settings: Settings, outputs: Followed, where: Where) -> Iterator[Part]:
    snapshots, job = outputs.memory.clusters(), outputs.memory.jobs().get("")
    watchers = _watchers(settings)
    known = {snapshot.cluster: snapshot for snapshot in snapshots}
    present = Present(time.time_ns() // 1_000_000, where.stale_after_ms)
    for cluster in sorted(known.keys() | settings.clusters.keys()):
        address = watchers.get(cluster)
        page = ask_page(address, "/metrics") if address and not address.needs_login else None
        yield _watch(cluster, known.get(cluster), job, present, page)
        yield from _zookeeper(cluster, known.get(cluster))
    lost = sorted({output for cluster in known for output in outputs.lacking(cluster)})
    wrong = [*_wrong_with_source(settings), *([rows_lost(lost)] if lost else [])]
    yield _stream(job, present, str(where.address), outputs.newer(), wrong)
    yield _serve(settings)


def _watchers(settings: Settings) -> dict[str, Page]:
    """Return the address at which each cluster's watcher serves its metrics."""
    everywhere = settings.sections["watch"]
    layers = {cluster: {**everywhere, **layer} for cluster, layer in settings.clusters.items()}
    if "cluster" in everywhere:
        layers.setdefault(str(everywhere["cluster"].value), dict(everywhere))
    pages = {cluster: page_of(layer, "metrics_listen", "metrics_") for cluster, layer in layers.items()}
    return {cluster: page for cluster, page in pages.items() if page is not None}


def _watch(
    cluster: str, snapshot: ClusterSnapshot | None, job: JobRow | None, present: Present, page: str | OSError | None
) -> Part:
    """Return the watcher of a cluster. Its own page is the only sign of its work if `kontrast stream` is silent."""
    gauges = None if snapshot is None else snapshot.gauges
    heard_ms = None if snapshot is None else snapshot.heartbeat_ms
    age = None if heard_ms is None else (present.now_ms - heard_ms) / 1000
    is_known, note, is_starting = True, "", False
    wrong = _faults_on(page, cluster)
    lag, version = (_mean_lag(page, cluster), _version(page)) if isinstance(page, str) else (None, "")
    stream_works = job is not None and not present.is_stale(job.time_ms)
    if (gauges is None or heard_ms is None or present.is_stale(heard_ms)) and not stream_works:
        is_known, note = isinstance(page, str), "`kontrast stream` passes nothing on, so no heartbeat can be seen"
    elif gauges is None:
        wrong.append("no row of this cluster has arrived")
        is_starting = len(wrong) == 1
    elif heard_ms is not None and present.is_stale(heard_ms):
        wrong.append("no heartbeat reaches `kontrast stream`")  # the job runs, so it would have passed a heartbeat on
    elif gauges.session != "connected":
        wrong.append(f"its ZooKeeper session is {gauges.session}")
    elif not gauges.ready:
        wrong.append("its first complete read has not arrived yet")
        is_starting = len(wrong) == 1
    agrees = None if gauges is None else gauges.agreement_of_last_hour
    return Part("watch", cluster, age, lag, version, "; ".join(wrong), agrees, note, is_known, is_starting)


def _faults_on(page: str | OSError | None, cluster: str) -> list[str]:
    """Return the faults that the watcher's own page shows."""
    if page is None:
        return []
    if isinstance(page, OSError):
        return [f"its page does not answer: {page.strerror or page}"]
    of_cluster = {CLUSTER_LABEL: cluster}
    faults = (
        (WATCH_CONNECTED, "it has no ZooKeeper session"),
        (WATCH_SINK_UP, "the stream takes no records from it"),
    )
    return [says for metric, says in faults if sample_of(page, metric.name, **of_cluster) == 0]


def _zookeeper(cluster: str, snapshot: ClusterSnapshot | None) -> Iterator[Part]:
    """Yield the watched ensemble, unless `kontrast watch` does not ask its servers."""
    gauges = None if snapshot is None else snapshot.gauges
    ensemble = None if gauges is None else ensemble_at(gauges.ensemble, gauges.time_ms)
    if ensemble is None:
        return
    said = ensemble_sentence(ensemble, ensemble.asked_ms)
    versions = sorted({server.version for server in ensemble.servers if server.version})
    is_lost = any(server.silent_ms >= 0 for server in ensemble.servers)
    last_seconds = time.time() - ensemble.asked_ms / 1000
    wrong, note = (said, "") if is_lost or voters_in_sync(ensemble) < ensemble.voters else ("", said)
    yield Part("zookeeper", cluster, last_seconds, None, ", ".join(versions), wrong, note=note)


def _mean_lag(page: str, cluster: str) -> float | None:
    """Return the mean time from a watch's event to the stream's acknowledgement since the watcher began."""
    of_cluster = {CLUSTER_LABEL: cluster}
    count, total = (sample_of(page, f"{WATCH_LAG.name}_{part}", **of_cluster) for part in ("count", "sum"))
    return total / count if count and total is not None else None


def _version(page: str) -> str:
    return label_of(page, BUILD_INFO.name, "version")


def _wrong_with_source(settings: Settings) -> list[str]:
    """Return the reason why `kontrast stream` gets no records, such as an unreachable or deleted source."""
    address = _source_of(settings)
    if not isinstance(address, KafkaAddress):
        is_there = address is None or address.directory.exists()
    else:
        source = open_changes(address)
        try:
            with without_messages_of_waiting():
                source.poll()
        except (SourceDownError, OutputsError) as error:
            return [str(error)]
        finally:
            source.close()
        is_there = not source.missing
    return [] if is_there else [f"its source {address} does not exist. Find out who deleted it"]


def _source_of(settings: Settings) -> Address | None:
    named = settings.sections["stream"].get("from")
    if named is None or not isinstance(named.value, JournalAddress | KafkaAddress):
        return None
    return reached(settings, named.value)


def _stream(job: JobRow | None, present: Present, address: str, newer: frozenset[str], wrong: list[str]) -> Part:
    if job is None:
        said = "; ".join([*wrong, "it has finished no batch. Check whether it runs, and its log"])
        return Part("stream", address, None, None, "", said, is_starting=not wrong)
    age = (present.now_ms - job.time_ms) / 1000
    if present.is_stale(job.time_ms):
        wrong = [
            *wrong,
            f"it has finished no batch for {duration(int(age) * 1_000)}. Check whether it runs, and its log",
        ]
    if newer:
        wrong = [*wrong, f"it is newer than this command ({', '.join(sorted(newer))}). Upgrade"]
    lag = max((progress.lag_ms for progress in job.clusters.values()), default=0) / 1000
    return Part("stream", f"batch {job.batch}", age, lag, job.version, "; ".join(wrong))


def _serve(settings: Settings) -> Part:
    layer = settings.sections["serve"]
    page = page_of(layer, "listen", "", default=str(keys_of(ServeConfig)["listen"].default))
    if page is None:
        return Part("serve", "any free port", None, None, "", "its address is unknown. Give listen a port")
    ready = ask_page(page, "/readyz")
    if isinstance(ready, OSError):
        elsewhere = "" if "listen" in layer else ". If it runs elsewhere, set listen in [serve]"
        return Part("serve", page.address, None, None, "", f"it does not answer: {ready.strerror or ready}{elsewhere}")
    metrics = "" if page.needs_login else ask_page(page, "/metrics")
    version = _version(metrics) if isinstance(metrics, str) else ""
    return Part("serve", page.address, None, None, version, "" if ready == "ready" else ready)
