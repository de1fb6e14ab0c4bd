"""What a forwarder learns of one real server, and which alerts follow from its records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import free_port
from cli.embedded.zookeeper import ZooKeeper
from ingest.config import IngestConfig
from ingest.zookeeper import ensemble
from ingest.zookeeper.four_letter_words import Server, UnansweredError, ask, ask_admin_server
from ingest.zookeeper.restorable import tls_of
from tests.clients import zookeeper_client
from tests.ingest.conftest import Watching, make_cluster
from tests.ingest.descriptions import INTERVAL_SECONDS, described, newest, open_alerts, slowly
from tests.older_releases import ZOOKEEPER_3_8, older_jars
from tests.relay import Relay
from tests.waiting import eventually
from transport.address import JournalAddress


def test_a_list_that_grows_is_measured_as_its_answer_and_predicted(
    zookeeper: ZooKeeper, kafka: KazooClient, watch: Callable[..., Watching]
) -> None:
    make_cluster(kafka)
    kafka.ensure_path("/isr_change_notification")
    watching = watch(ensemble_interval_seconds=INTERVAL_SECONDS, jute_maxbuffer_bytes=400_000)
    silent = watch(journal="silent", ensemble_interval_seconds=None)

    def grow(first: int) -> int:
        """Add 300 notifications, and return the bytes of the whole list."""
        for number in range(first, first + 300):
            kafka.create_async(f"/isr_change_notification/{'x' * 240}{number:010}", b"{}")
        names = eventually(
            lambda: kafka.get_children("/isr_change_notification"), lambda them: len(them) == first + 300
        )
        return sum(4 + len(name) for name in names)

    for first in (0, 300):
        size_bytes = grow(first)
        large = newest(
            watching, lambda one, size=size_bytes: one.large_znodes and one.large_znodes[0].size_bytes == size
        )
        assert large.large_znodes[0].path == "/isr_change_notification"
    assert described(silent) == []  # switched off
    records = watching.records()
    assert "ZnodeNearLimit" not in open_alerts(records)  # 38 % of the limit
    predicted = open_alerts(slowly(records, 600))["ZnodeNearLimit"]
    assert predicted.cause.startswith("/isr_change_notification has 35 % of jute.maxbuffer, and reaches the limit ")


def test_a_registration_of_a_session_without_a_connection_is_named(
    zookeeper: ZooKeeper, kafka: KazooClient, watch: Callable[..., Watching]
) -> None:
    make_cluster(kafka)
    with Relay(zookeeper.port) as relay, zookeeper_client(f"127.0.0.1:{relay.port}", 20) as broker:
        broker.create(
            "/brokers/ids/7", b'{"version":5,"jmx_port":-1,"host":"h","port":9092,"endpoints":[]}', ephemeral=True
        )
        session = broker.client_id[0]
        watching = watch(ensemble_interval_seconds=INTERVAL_SECONDS)
        newest(watching, lambda one: one.servers[0].mode == "standalone")
        relay.close_door()
        left = newest(watching, lambda one: one.left_sessions).left_sessions[0]
        assert (left.broker, left.session) == (7, session)
        assert 0 < left.expires_ms <= 21_000
        row = open_alerts(watching.records())["BrokerBlockedByOldSession"]
        assert f"its old session {session:#x} owns /brokers/ids/7 and expires in " in row.cause
        relay.open_door()
        eventually(lambda: "BrokerBlockedByOldSession" not in open_alerts(watching.records()))


def test_two_servers_that_are_no_ensemble_page(
    zookeeper: ZooKeeper, kafka: KazooClient, tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    make_cluster(kafka)
    with ZooKeeper(tmp_path / "second") as second, zookeeper_client(second.connect_string) as other:
        make_cluster(other)
        address = f"{zookeeper.connect_string},{second.connect_string}"
        watching = watch(zookeeper=address, ensemble_interval_seconds=INTERVAL_SECONDS)
        newest(watching, lambda one: one.apart)
        eventually(lambda: "ZooKeeperNoEnsemble" in open_alerts(watching.records()))


def test_a_slow_answer_ends_with_its_time(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    with Relay(zookeeper.port, bytes_per_second=100) as relay:
        address = f"127.0.0.1:{relay.port}"
        config = IngestConfig(cluster="c", zookeeper=address, to=JournalAddress(tmp_path / "journal"))
        with pytest.raises(UnansweredError, match=r"does not answer within 2 s"):
            ask("srvr", Server("127.0.0.1", relay.port), tuple(tls_of(config).items()))


def test_the_admin_server_answers_where_the_word_is_refused(
    java: Path, tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    port = free_port()
    settings = {"4lw.commands.whitelist": "srvr", "admin.enableServer": "true", "admin.serverPort": str(port)}
    jars = older_jars(ZOOKEEPER_3_8)
    with ZooKeeper(tmp_path / "admin", properties={**settings, "forceSync": "yes"}, jars=jars) as server:
        watching = watch(
            zookeeper=server.connect_string, ensemble_interval_seconds=INTERVAL_SECONDS, zookeeper_admin_port=port
        )
        asked = newest(watching, lambda one: one.servers[0].data_bytes >= 0).servers[0]
        assert (asked.mode, asked.version, asked.refused) == ("standalone", "3.8.4", ("dump",))
        assert (asked.fsync_ms >= 0, asked.expired_sessions) == (True, 0)
        with pytest.raises(UnansweredError, match=rf"does not answer at port {server.port} \("):
            ask_admin_server(Server("127.0.0.1", server.port), server.port)  # which is no HTTP server
        watching.stop()


def test_clusters_of_one_ensemble_share_the_long_answers_of_a_second(
    zookeeper: ZooKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []

    def counted(word: str, *rest: Any) -> str:  # noqa: ANN401 (as the original)
        words.append(word)
        return ask(word, *rest)

    monkeypatch.setattr(ensemble, "ask", counted)
    for number in range(8):
        to = JournalAddress(tmp_path / "journal")
        config = IngestConfig(cluster=f"cluster-{number}", zookeeper=zookeeper.connect_string, to=to)
        (server,) = ensemble.EnsembleQuestions(config).ask_once()
        assert server.data_bytes > 0
    assert words.count("srvr") == 8
    assert words.count("mntr") < 8  # a second may end between two of them
    assert words.count("dump") < 8
