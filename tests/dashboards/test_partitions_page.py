"""Every partition on /metrics/partitions over real HTTP, in the requested form, or an empty page until it is known."""

from __future__ import annotations

import gzip
import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from controller.contract.metadata_rows import BeginningRow
from dashboards.catalogue.metric import PARTITIONS_PAGE
from dashboards.exporter import partitions_page
from dashboards.exporter.partitions_page import PartitionsPage
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.rows import NEVER_STALE_MS

HOSTILE = ("a\nb", 'quo"te', "back\\slash\\n", "Grüße-日本", '{x="y"} 1\n# HELP', "a\x00b", " ", "\r\n", "x" * 249)
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def values(text: str, parser=parse) -> dict[tuple, float]:
    """Return the values by name, cluster, topic and partition."""
    return {
        (s.name, *(s.labels.get(label) for label in ("kafka_cluster", "topic", "partition"))): s.value
        for family in parser(text)
        for s in family.samples
    }


def of(name: str, topic: str, partition: int = 0, cluster: str = "north") -> tuple:
    return (f"kontrast_partition_{name}", cluster, topic, str(partition))


def ready(cluster: str, value: int) -> str:
    return rf'^kontrast_page_ready\{{kafka_cluster="{cluster}",page="/metrics/partitions"\}} {value}$'


def test_every_partition_is_there_with_its_values_and_changes_are(all_pages, rows):
    all_pages.write(
        rows.partition("orders", 0, leader=2, leader_epoch=7, isr=(2,), replicas=(2, 3)),
        rows.offline("orders", 1),
        rows.partition("payments", 0, cluster="south", state="NewPartition"),
        rows.gauges(),
        rows.gauges(cluster="south"),
    )
    all_pages.page_with(PARTITIONS_PAGE, ready("south", 1))
    told = values(all_pages.page_with(PARTITIONS_PAGE, ready("north", 1)))
    assert told[of("leader", "orders")] == 2
    assert told[of("leader_epoch", "orders")] == 7
    assert told[of("in_sync_replicas", "orders")] == 1
    assert told[of("replicas", "orders")] == 2
    assert told[of("state", "orders")] == 1
    assert (told[of("leader", "orders", 1)], told[of("state", "orders", 1)]) == (-1, 2)
    assert told[of("state", "payments", cluster="south")] == 0
    all_pages.write(
        rows.partition("orders", 1, leader=9), rows.partition("orders", 0, state="NonExistentPartition", removed=True)
    )
    text = all_pages.page_with(PARTITIONS_PAGE, r'^kontrast_partition_leader\{.*topic="orders",partition="1"\} 9$')
    assert of("leader", "orders", 0) not in values(text)
    assert of("state", "payments", cluster="south") in values(text)


def test_whether_acks_all_is_taken_is_said_of_each_or_that_nobody_said(all_pages, rows):
    said = {"taken": True, "refused": False, "unsaid": None}
    all_pages.write(*(rows.partition(topic, writable_acks_all=taken) for topic, taken in said.items()), rows.gauges())
    told = values(all_pages.page_with(PARTITIONS_PAGE, ready("north", 1)))
    assert told[of("writable_acks_all", "taken")] == 1
    assert told[of("writable_acks_all", "refused")] == 0
    assert math.isnan(told[of("writable_acks_all", "unsaid")])


@pytest.mark.parametrize("accept", ["text/plain;version=0.0.4", OPENMETRICS])
def test_it_is_the_same_plain_and_compressed(all_pages, rows, accept):
    all_pages.write(*rows.of_everything())
    all_pages.page_with(PARTITIONS_PAGE, "^kontrast_partition_state")
    _, headers, compressed = all_pages.get(PARTITIONS_PAGE, Accept=accept, Accept_Encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    _, plain_headers, body = all_pages.get(PARTITIONS_PAGE, Accept=accept)
    assert "content-encoding" not in plain_headers
    assert int(plain_headers["content-length"]) == len(body)
    assert gzip.decompress(compressed) == body
    for given in (headers, plain_headers):
        assert given["content-type"].startswith(accept.split(";")[0])
    assert body.endswith(b"# EOF\n") == (accept == OPENMETRICS)


def test_hostile_topic_names_survive_both_formats(all_pages, rows, promtool):
    all_pages.write(rows.gauges(), *(rows.partition(name) for name in HOSTILE))
    all_pages.page_with(PARTITIONS_PAGE, "^kontrast_partition_state")
    text = all_pages.page(PARTITIONS_PAGE)
    openmetrics = all_pages.get(PARTITIONS_PAGE, Accept=OPENMETRICS)[2].decode()
    for answered, parser in ((text, parse), (openmetrics, parse_openmetrics)):
        # Only line feeds separate lines, whatever other characters a name has.
        assert {key[2] for key in values(answered, parser) if key[0] == "kontrast_partition_leader"} == set(HOSTILE)
    assert promtool("check", "metrics", input=text).returncode == 0


def test_a_page_that_is_switched_off_says_so(exporter):
    for path, key in (("/metrics/partitions", b"partitions_page"), ("/metrics/jmx", b"jmx_page")):
        status, _, body = exporter.get(path)
        assert status == 404
        assert key in body


def test_nothing_is_said_of_a_cluster_before_its_snapshot_is_complete(all_pages, rows):
    all_pages.write(rows.partition("orders"), rows.gauges(ready=False))
    text = all_pages.page_with(PARTITIONS_PAGE, ready("north", 0))
    assert "kontrast_partition_leader{" not in text
    all_pages.write(rows.gauges())
    assert "kontrast_partition_leader{" in all_pages.page_with(PARTITIONS_PAGE, ready("north", 1))
    all_pages.write(rows.gauges(ready=False))
    assert "kontrast_partition_leader{" not in all_pages.page_with(PARTITIONS_PAGE, ready("north", 0))


def test_what_begins_anew_is_gone_from_the_page(all_pages, rows):
    all_pages.write(rows.partition("old"), rows.partition("kept"), rows.gauges())
    all_pages.page_with(PARTITIONS_PAGE, 'topic="old"')
    place = {"cluster": "north", "generation": 1, "zxid": 1, "time_ms": 1, "seq": 0, "ordinal": -1}
    all_pages.write(BeginningRow(**place), rows.partition("kept", leader=5))
    text = all_pages.page_with(PARTITIONS_PAGE, r'^kontrast_partition_leader\{.*topic="kept",partition="0"\} 5$')
    assert 'topic="old"' not in text


class Bench:
    """A page that is rendered by hand."""

    def __init__(self) -> None:
        self.memory, self.reading = Memory(), ReadingCounts()
        self.page = PartitionsPage(self.memory, self.reading, NEVER_STALE_MS)

    def text(self) -> str:
        self.page.render()
        return b"".join(self.page.page.text.plain()).decode()


def test_the_past_is_not_shown_while_it_is_being_read(rows):
    bench = Bench()
    for row in (rows.partition("orders"), rows.gauges()):
        bench.memory.apply(row)
    assert 'kontrast_page_ready{kafka_cluster="north",page="/metrics/partitions"} 0' in bench.text()
    assert "orders" not in bench.text()
    bench.reading.caught_up()
    assert "orders" in bench.text()


def test_while_it_rests_it_shows_nothing_new_but_falls_silent_at_once(rows):
    bench = Bench()
    bench.reading.caught_up()
    for row in (rows.partition("orders"), rows.gauges()):
        bench.memory.apply(row)
    bench.page.render()
    for row in (rows.partition("orders", leader=2), rows.partition("payments", cluster="south")):
        bench.memory.apply(row)
    bench.memory.apply(rows.gauges(cluster="south"))
    bench.page.render(resting=True)
    told = values(b"".join(bench.page.page.text.plain()).decode())
    assert told[of("leader", "orders")] == 1
    assert of("leader", "payments", cluster="south") not in told
    assert told["kontrast_page_ready", "south", None, None] == 0
    bench.memory.apply(rows.gauges(ready=False))
    bench.page.render(resting=True)
    assert b"orders" not in b"".join(bench.page.page.text.plain())
    bench.memory.apply(rows.gauges())
    told = values(bench.text())
    assert told[of("leader", "orders")] == 2
    assert of("leader", "payments", cluster="south") in told


def test_a_cluster_without_topics_is_ready_and_empty(rows):
    bench = Bench()
    bench.reading.caught_up()
    bench.memory.apply(rows.gauges())
    assert 'kontrast_page_ready{kafka_cluster="north",page="/metrics/partitions"} 1' in bench.text()


def test_only_what_changed_is_rendered_anew_and_nothing_where_nothing_did(rows, monkeypatch):
    bench = Bench()
    bench.reading.caught_up()
    bench.memory.apply(rows.gauges())
    for number in range(500):
        bench.memory.apply(rows.partition(f"topic-{number}"))
    bench.text()
    before, rendered = bench.page.page, []
    render = partitions_page._pieces_of
    monkeypatch.setattr(
        partitions_page, "_pieces_of", lambda cluster, changed: rendered.extend(changed) or render(cluster, changed)
    )
    bench.memory.apply(rows.gauges())  # a heartbeat
    bench.page.render()
    assert bench.page.page is before
    bench.memory.apply(rows.partition("topic-7", leader=2))
    assert values(bench.text())[of("leader", "topic-7")] == 2
    assert 1 <= len(rendered) < 100
    assert len([key for key in values(bench.text()) if key[0] == "kontrast_partition_leader"]) == 500


def test_a_large_page_comes_whole_to_a_client_without_gzip(rows):
    bench = Bench()
    bench.reading.caught_up()
    bench.memory.apply(rows.gauges())
    for number in range(8_000):
        bench.memory.apply(rows.partition("a-topic-with-quite-a-long-name", number))
    parts = list(bench.page.page.text.plain()) if bench.text() else []
    assert len(parts) > 2
    assert sum(map(len, parts)) == bench.page.page.text.size
