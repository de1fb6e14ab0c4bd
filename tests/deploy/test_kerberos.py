"""Kerberos from the watched ZooKeeper to the outputs in Kafka, with the KDC of `make check-deploy LONG=1`."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess, own_command
from cli.embedded.zookeeper import ZooKeeper
from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from outputs import SourceDownError, open_outputs
from tests.kerberos import REALM, Kdc, KerberizedBroker, kerberized_zookeeper
from tests.relay import Relay
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.kafka_login import KafkaLogin

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("kerberos")]

_TICKET_SECONDS = 10  # life of the watcher's ticket, after which each new connection needs the KDC
_JOB_TICKET_SECONDS = 70  # life of the job's ticket, above the minute that Kafka's Java client waits for the next
_SETTINGS = """
[watch]
cluster = "east"
zookeeper = "{zookeeper}/east"
zookeeper_principal = "watch@{realm}"
zookeeper_keytab_file = "{watch}"
election_zookeeper = "{zookeeper}"
election_on_watched = true
election_principal = "watch"
election_keytab_file = "{watch}"
to = "kafka://{kafka}/changes"

[stream]
from = "kafka://{kafka}/changes"
to = "kafka://{kafka}/outputs"
checkpoint = "checkpoint"
master = "local[2]"

[serve]
from = "kafka://{kafka}/outputs"
listen = "127.0.0.1:0"

[kafka]
sasl_mechanism = "GSSAPI"
principal = "stream@{realm}"
keytab_file = "{stream}"
"""


@dataclass(frozen=True)
class _Site:
    directory: Path
    kdc: Kdc
    zookeeper: ZooKeeper
    address: str  # of the ZooKeeper, by the name in its principal
    brokers: KerberizedBroker

    def config(self, **changes: object) -> ZooKeeperConfig:
        settings: dict[str, object] = {"zookeeper": f"{self.address}/east", "zookeeper_principal": "watch"}
        settings["zookeeper_keytab_file"] = self.kdc.keytab("watch")
        return ZooKeeperConfig(**{**settings, **changes})  # type: ignore[arg-type]

    def outputs(self, principal: str = "stream", keytab: str = "stream") -> KafkaAddress:
        keytab_file = self.kdc.keytab(keytab)
        login = KafkaLogin(sasl_mechanism="GSSAPI", principal=principal, keytab_file=keytab_file)
        return KafkaAddress(self.brokers.address, "outputs", login)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, environment = own_command(*arguments)
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def site(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    directory = tmp_path_factory.mktemp("site")
    with ExitStack() as running:
        patched = running.enter_context(pytest.MonkeyPatch.context())
        kdc = running.enter_context(Kdc(directory / "kdc"))
        for name, value in kdc.variables.items():
            patched.setenv(name, value)
        for principal in ("zookeeper/localhost", "kafka/localhost", "stream", "changed"):
            kdc.add(principal)
        kdc.add("watch", ticket_seconds=_TICKET_SECONDS)
        kdc.add("job", ticket_seconds=_JOB_TICKET_SECONDS)
        kdc.ask("change_password -randkey changed")  # so its keytab is wrong
        zookeeper = running.enter_context(kerberized_zookeeper(directory / "zookeeper"))
        address = zookeeper.connect_string.replace("127.0.0.1", "localhost")
        watched, brokers = (
            KerberizedBroker(kdc, address + chroot, directory / chroot[1:]) for chroot in ("/east", "/kafka")
        )
        for broker in (watched, brokers):
            running.callback(broker.kill)
            broker.launch()
        watched.wait_until_ready()
        brokers.wait_until_ready()
        keytabs = {name: kdc.keytab(name) for name in ("watch", "stream")}
        settings = _SETTINGS.format(zookeeper=address, kafka=brokers.address, realm=REALM, **keytabs)
        (directory / "kontrast.toml").write_text(settings)
        patched.setenv("KONTRAST_CONFIG", str(directory / "kontrast.toml"))
        yield _Site(directory, kdc, zookeeper, address, brokers)


@pytest.fixture
def relay(site: _Site) -> Iterator[Relay]:
    with Relay(site.zookeeper.port) as relay:
        yield relay


@pytest.fixture
def start(site: _Site) -> Iterator[Callable[[str], ChildProcess]]:
    with ExitStack() as running:

        def launch(name: str) -> ChildProcess:
            command, environment = own_command(name)
            process = ChildProcess(name, command, site.directory / f"{name}.log", environment=environment)
            running.callback(process.kill)
            process.launch()
            return process

        yield launch


def _wait_for(process: ChildProcess, words: str, count: int = 1) -> str:
    def runs() -> None:
        assert process.running, process.describe("ended")

    return eventually(process.log.read_text, lambda text: text.count(words) >= count, meanwhile=runs)


def _refusal(ask: Callable[[], object]) -> str:
    """Return the sentence of a refusal, or an empty text."""
    try:
        ask()
    except (IngestError, SourceDownError) as error:
        return str(error)
    return ""


def _read(output: str, address: KafkaAddress) -> list[bytes]:
    with closing(open_outputs(address, (output,))) as source:
        return [line for chunk in source.poll() for line in chunk.lines]


def _check(site: _Site, *commands: str) -> None:
    checked = [site.run(command, "--check") for command in commands]
    assert not any(each.returncode for each in checked), checked


def test_every_part_logs_in_and_outlives_a_kdc_that_is_away(
    site: _Site, start: Callable[[str], ChildProcess], monkeypatch: pytest.MonkeyPatch, relay: Relay
) -> None:
    _check(site, "watch", "stream")
    assert "1 broker" in site.run("check").stdout

    monkeypatch.setenv("KONTRAST_WATCH__ZOOKEEPER", f"localhost:{relay.port}/east")
    watch = start("watch")
    _wait_for(watch, "this forwarder leads")
    _wait_for(watch, "published")
    _wait_for(start("stream"), "on 1 broker")
    eventually(lambda: _read("metadata", site.outputs()))
    _check(site, "serve")

    assert read_once(site.config(), threading.Event()).values
    site.kdc.kill()
    expired = "no ticket for zookeeper on localhost (Ticket expired)"  # and the KDC gives no new ticket
    eventually(lambda: _refusal(lambda: read_once(site.config(), threading.Event())), lambda text: expired in text)
    relay.close_door()
    relay.open_door()
    _wait_for(watch, f"Kerberos gives watch@{REALM} {expired}")
    never_had_one = site.run("check")
    assert never_had_one.returncode == 3
    assert f"(Cannot contact any KDC for realm '{REALM}')" in never_had_one.stdout + never_had_one.stderr
    assert len(never_had_one.stderr.splitlines()) <= 1, never_had_one.stderr
    site.kdc.start()
    assert "Traceback" not in _wait_for(watch, "published", 2)


def test_the_job_connects_again_after_its_first_ticket_has_expired(
    site: _Site, start: Callable[[str], ChildProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    _wait_for(start("watch"), "published")
    monkeypatch.setenv("KONTRAST_KAFKA__PRINCIPAL", "job")
    monkeypatch.setenv("KONTRAST_KAFKA__KEYTAB_FILE", site.kdc.keytab("job"))
    job = start("stream")
    _wait_for(job, "on 1 broker")
    time.sleep(_JOB_TICKET_SECONDS)
    site.brokers.stop()
    site.brokers.start()
    written = len(_read("job", site.outputs()))
    eventually(lambda: _read("job", site.outputs()), lambda rows: len(rows) > written + 2)
    assert job.running, job.describe("ended")


def test_a_migration_is_checked_in_a_zookeeper_that_demands_kerberos(site: _Site) -> None:
    checked = site.run("migration", "check", "--release", "3.9.2")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("principal", "keytab", "service", "reason"),
    [
        ("changed", "changed", None, "Decrypt integrity check failed"),
        ("watch", "stream", None, "stream.keytab has no key of the principal"),
        ("stream", "stream", "nothing", f"Server nothing/localhost@{REALM} not found in Kerberos database"),
    ],
)
def test_a_wrong_keytab_or_service_is_named(
    site: _Site, principal: str, keytab: str, service: str | None, reason: str
) -> None:
    given = {} if service is None else {"service_name": service}
    address = site.outputs(principal, keytab)
    address = replace(address, login=replace(address.login, **given))
    sentence = f"Kerberos gives {principal} no ticket for {service or 'kafka'} on localhost ("
    told = _refusal(lambda: _read("metadata", address))
    assert sentence in told
    assert reason in told
    settings = {f"zookeeper_{name}": value for name, value in given.items()}
    keys = {"zookeeper_principal": principal, "zookeeper_keytab_file": site.kdc.keytab(keytab)}
    told = _refusal(lambda: read_once(site.config(**keys, **settings), threading.Event()))
    assert told.startswith(sentence.replace("kafka", "zookeeper"))
    assert reason in told


@pytest.mark.parametrize(
    ("principal", "reason"), [("changed", "Checksum failed"), ("watch", "the keytab has no key of the principal")]
)
def test_a_job_with_a_wrong_keytab_ends_with_a_sentence(
    site: _Site, monkeypatch: pytest.MonkeyPatch, principal: str, reason: str
) -> None:
    monkeypatch.setenv("KONTRAST_KAFKA__PRINCIPAL", principal)
    monkeypatch.setenv("KONTRAST_KAFKA__KEYTAB_FILE", site.kdc.keytab("changed"))
    ended = site.run("stream", "--checkpoint", str(site.directory / principal))
    assert ended.returncode == 3
    assert ended.stderr.splitlines()[-1].endswith(
        f"Java cannot log in to Kafka ({reason}). Check [kafka], and for Kerberos the keytab, the KDC and krb5.conf"
    )


def test_the_image_has_the_library_that_gssapi_was_compiled_over() -> None:
    spec = find_spec("gssapi.raw.creds")
    assert spec is not None
    linked = subprocess.run(["ldd", str(spec.origin)], capture_output=True, text=True, check=True).stdout
    (library,) = re.findall(r"libgssapi_krb5\S+ => (\S+)", linked)
    owner = subprocess.run(["dpkg", "-S", Path(library).resolve()], capture_output=True, text=True, check=True).stdout
    image = (Path(__file__).parents[2] / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert owner.partition(":")[0] in image.rpartition("AS runtime")[2].split()
