"""One `kontrast serve` over the outputs of several jobs."""

import shutil
import threading

import pytest
from msgspec.structs import replace

from controller.contract.effect_rows import Transition
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import STANDING_OUTPUTS, encode_row
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import messages_of
from dashboards.alerting.registry import AlertRegistry
from dashboards.errors import ServeError
from dashboards.exporter.config import ServeConfig
from dashboards.exporter.server import run
from outputs.transitions import Transitions
from questions.memory import Memory
from tests.controller.znode_history import ZnodeHistory, on
from tests.dashboards.conftest import Exporter
from tests.waiting import eventually
from transport.address import JournalAddress


@pytest.fixture
def jobs(tmp_path):
    """Return the outputs of two jobs."""
    return Exporter(tmp_path / "one"), Exporter(tmp_path / "other")


def config_of(jobs, **settings) -> ServeConfig:
    sources = tuple(JournalAddress(job.directory) for job in jobs)
    return ServeConfig(source=sources, listen="127.0.0.1:0", **settings)


def forget(job, rows, cluster):
    end = BeginningRow(cluster=cluster, generation=9, seq=0, ordinal=1, zxid=1, time_ms=1, forgotten=True)
    for output in STANDING_OUTPUTS:
        job.write_lines(output, encode_row(end))


def test_one_serve_shows_the_clusters_of_every_job_and_each_source(jobs, start_exporter, rows):
    one, other = jobs
    one.write(*rows.of_everything(), rows.job(batches=3))
    of_south = {"cluster": "south"}
    other.write(rows.gauges(topics=77, **of_south), rows.broker(1, **of_south), rows.alert("b", **of_south))
    other.write(rows.job(batches=4, clusters={}))
    with start_exporter(config_of(jobs)) as serve:
        serve.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 1')
        text = serve.metrics_with(r'^kontrast_topics\{kafka_cluster="south"\} 77')
        for job, batches in ((one, 3), (other, 4)):
            assert f'kontrast_source_up{{source="journal:{job.directory}"}} 1.0' in text
            assert f'kontrast_job_batches_total{{source="journal:{job.directory}"}} {batches}.0' in text
        fleet = serve.page("/")
        assert all(word in fleet for word in ("north", "south", str(one.directory), str(other.directory)))
        eventually(lambda: serve.get("/readyz"), lambda answer: answer[0] == 200)


def test_a_replaced_output_of_one_job_leaves_the_clusters_of_another(jobs, start_exporter, rows):
    one, other = jobs
    one.write(*rows.of_everything())
    other.write(rows.gauges(cluster="south"), rows.offline("old", cluster="south"))
    with start_exporter(config_of(jobs, partition_detail_limit=9)) as serve:
        serve.metrics_with(r'^kontrast_partition_offline_since_timestamp_seconds\{.*topic="old"')
        shutil.rmtree(other.directory / "metadata")
        other.write(rows.offline("new", cluster="south"), rows.gauges(cluster="south"))
        text = serve.metrics_with(r'^kontrast_partition_offline_since_timestamp_seconds\{.*topic="new"')
        assert 'topic="old"' not in text
        assert 'kafka_cluster="north",partition="1"' in text


def test_rows_that_one_job_lost_make_only_its_clusters_unready(jobs, start_exporter, rows):
    one, other = jobs
    one.write(*rows.of_everything())
    other.write(rows.gauges(cluster="south"), rows.broker(1, cluster="south"))
    with start_exporter(config_of(jobs)) as serve:
        serve.metrics_with(r'^kontrast_ready\{kafka_cluster="south"\} 1')
        other.write(rows.job(clusters={}))  # a job creates each output before its first row, so the alerts are lost
        text = serve.metrics_with(r'^kontrast_ready\{kafka_cluster="south"\} 0')
        assert 'kontrast_ready{kafka_cluster="north"} 1.0' in text
        assert "rows of south were" in serve.get("/readyz")[2].decode()


def test_a_cluster_in_the_outputs_of_two_jobs_is_refused_at_the_start(jobs, rows):
    for job in jobs:
        job.write(rows.gauges(cluster="north"))
    with pytest.raises(ServeError, match=r"^cluster north is in the outputs journal:\S+one and journal:\S+other\. "):
        run(config_of(jobs), threading.Event())


def test_a_cluster_that_is_named_twice_later_is_shown_by_readyz(jobs, start_exporter, rows):
    one, other = jobs
    one.write(rows.gauges(cluster="north", topics=1))
    other.write(rows.gauges(cluster="south"))
    with start_exporter(config_of(jobs)) as serve:
        eventually(lambda: serve.get("/readyz"), lambda answer: answer[0] == 200)
        other.write(rows.gauges(cluster="north", topics=77))
        refused = eventually(lambda: serve.get("/readyz"), lambda answer: answer[0] == 503)
        assert refused[2].startswith(b"cluster north is in the outputs")
        assert serve.get("/healthz")[0] == 200
        serve.metrics_with(r'^kontrast_ready\{kafka_cluster="north"\} 0')
        page = serve.page("/clusters/north")
        assert str(one.directory) in page
        assert str(other.directory) in page
        forget(one, rows, "north")
        serve.metrics_with(r'^kontrast_topics\{kafka_cluster="north"\} 77')
        eventually(lambda: serve.get("/readyz"), lambda answer: answer[0] == 200)


def test_an_output_that_cannot_be_read_keeps_no_other_from_being_served(jobs, start_exporter, rows):
    one, other = jobs
    one.write(*rows.of_everything(), rows.alert("a"))
    other.directory.mkdir()
    (other.directory / "metadata").write_text("in the way")
    with start_exporter(config_of(jobs, connect_timeout_seconds=0.1)) as serve:
        text = serve.metrics_with(r'^kontrast_alert_since_timestamp_seconds\{.*kafka_cluster="north"')
        assert f'kontrast_source_up{{source="journal:{other.directory}"}} 0.0' in text
        assert f"the outputs journal:{other.directory} cannot be read" in serve.get("/readyz")[2].decode()
        (other.directory / "metadata").unlink()
        other.write(rows.gauges(cluster="south"), rows.broker(1, cluster="south"))
        serve.metrics_with(r'^kontrast_ready\{kafka_cluster="south"\} 1')


def test_transitions_of_each_job_are_followed_and_one_output_starts_over_alone(jobs):
    history = ZnodeHistory().start(1, 2, topics=on([1, 2], 1, 0, [1, 2]))
    history.broker_leaves(2)
    step = next(row for row in history.effects if isinstance(row, Transition) and row.subject != "replica")
    of = {name: replace(step, cluster=name) for name in ("north", "south")}
    for job, row in zip(jobs, of.values(), strict=True):
        job.write(row)
    memory = Memory(sources=["one", "other"])
    with Transitions(config_of(jobs).sources, 60, memory) as transitions:
        assert eventually(transitions.follow, lambda reason: reason is None) is None
        assert {name: memory.changes(name, step.time_ms, step.time_ms) for name in of} == {
            name: [row] for name, row in of.items()
        }
    memory.forget(Transition.output, source="one")
    assert [len(memory.changes(name, step.time_ms, step.time_ms)) for name in of] == [0, 1]


def test_the_number_of_changes_grows_when_a_cluster_moves_to_another_job(rows):
    memory = Memory(sources=["one", "other"])
    for topics in range(3):
        memory.apply(rows.gauges(seq=topics, topics=topics), "one")
    before = memory.version("north", "gauges")
    memory.apply(rows.gauges(topics=77), "other")
    memory.forget("gauges", "north", source="one", for_good=True)
    assert memory.cluster("north").gauges.topics == 77
    assert memory.version("north", "gauges") == before + 2


def test_an_alert_of_outputs_that_are_still_read_does_not_end(rows):
    registry = AlertRegistry(AlertmanagerConfig())
    registry.adopt(messages_of(rows.alert("a"), AlertmanagerConfig()))
    registry.update((), 0, 0, knows_all=False)
    (kept,) = registry.active()["north"]
    assert dict(kept.annotations)["state"] == "unknown"
    registry.update((), 0, 0)
    assert registry.active() == {}


@pytest.mark.parametrize("sources", [(), (JournalAddress("a"), JournalAddress("a"))])
def test_outputs_that_are_the_same_or_none_are_refused_by_name(sources):
    with pytest.raises(ServeError, match="^from is .*: expected different outputs"):
        ServeConfig(source=sources)
