"""Notifications of an incident, from the core to the pager. Each cause fires once and resolves once.

Every part is real: the core, `kontrast serve`, Prometheus with the rules, Alertmanager with the shipped configuration,
a webhook. Each incident has its own cluster, and all incidents happen at the same time, by every way.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.dashboards.live_incidents import COMPRESSED, REAL, WAYS, LiveCluster, Way, beating
from tests.dashboards.paged_incidents import INCIDENTS, USUAL, do, firing
from tests.lanes import in_gate

pytestmark = pytest.mark.xdist_group("paging")  # one process, so that all incidents happen once

# Time from the row, which is three times the longest wait by the shipped group_wait or group_interval.
HEARD_WITHIN_SECONDS = 30
# A night has all. The registry's and the core's own tests have each cause in the gate, too.
_IN_GATE = (
    "a_crash two_crashes_within_two_seconds a_rack_is_lost a_disk_fails a_disk_fails_that_takes_a_partition "
    "a_planned_restart an_incident_that_grows an_election_that_waits_for_a_ghost no_controller_at_all "
    "a_ghost_controller too_few_in_sync_without_a_crash a_quarantine"
)
EACH_INCIDENT = in_gate(*_IN_GATE.split(), of=INCIDENTS)


def all_heard(incident: str) -> list[str]:
    """Return all notifications of an incident."""
    lines = [line.format(incident) for line in INCIDENTS[incident].heard]
    return sorted([*firing(lines), *(line.replace(" ", " resolved ", 1) for line in lines)])


@pytest.fixture(scope="module")
def ways(tmp_path_factory, start_exporter) -> Iterator[dict[str, Way]]:
    with ExitStack() as running:
        yield {
            name: running.enter_context(Way(name, tmp_path_factory.mktemp(name) / "way", start_exporter))
            for name in WAYS
        }


@pytest.fixture(scope="module")
def clusters(request, ways) -> dict[str, LiveCluster]:
    """Run each incident of this lane in its cluster, until every way has delivered all notifications."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = {spec.params.get("incident") for spec in specs if spec is not None}
    clusters = {name: LiveCluster(name, list(ways.values())) for name in INCIDENTS if name in chosen}
    for name, cluster in clusters.items():
        cluster.start(INCIDENTS[name].begin)

    def happens(name: str) -> None:
        INCIDENTS[name].happens(clusters[name])
        clusters[name].until_heard(*all_heard(name))

    with beating(list(clusters.values())), ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(happens, clusters))
        # Every other notification came before this one, because Alertmanager had its alert earlier.
        last = LiveCluster("last", list(ways.values())).start(USUAL)
        do(last, "broker-leaves 3; controller-writes")
        last.until_heard("page firing PartitionsOffline of broker 3")
        do(last, "broker 3; controller-writes; catch-up")
        last.until_heard("page resolved PartitionsOffline of broker 3")
    return clusters


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("incident", EACH_INCIDENT)
def test_each_cause_is_heard_once_and_once_that_it_is_over(incident, way, ways, clusters):
    assert sorted(map(str, clusters[incident].heard(ways[way]))) == all_heard(incident)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("incident", EACH_INCIDENT)
def test_no_alert_ends_while_it_goes_on_with_more_brokers(incident, way, ways, clusters):
    by_alert: dict[tuple[str, ...], list[str]] = {}
    for heard in clusters[incident].heard(ways[way]):
        by_alert.setdefault((heard.receiver, heard.alert, heard.subject), []).append(heard.status)
    assert all(statuses == sorted(statuses) for statuses in by_alert.values()), by_alert


@pytest.mark.parametrize("incident", EACH_INCIDENT)
def test_each_cause_is_heard_within_half_a_minute_of_its_row(incident, ways, clusters):
    """Time is real from the row on, because a faster Alertmanager would only seem to be as quick."""
    seconds = clusters[incident].seconds_until_heard(ways[REAL])
    assert len(seconds) == len(INCIDENTS[incident].heard)
    assert all(0 < each < HEARD_WITHIN_SECONDS for each in seconds.values()), seconds


def test_what_is_heard_is_the_same_by_every_way(ways, clusters):
    for cluster in clusters.values():
        real, *others = (sorted(cluster.heard(way)) for way in ways.values())
        assert others == [real] * len(COMPRESSED), cluster.name


def test_restarts_in_the_middle_repeat_nothing(ways, clusters):
    compressed = [ways[name] for name in COMPRESSED]
    cluster = LiveCluster("restarted", compressed).start(USUAL)
    with beating([cluster]):
        do(cluster, "broker-leaves 3; controller-writes")
        cluster.until_heard(*firing(INCIDENTS["a_crash"].heard))
        for way in compressed:
            way.restart_exporter()
        cluster.pass_real(30)
        for way in compressed:
            way.restart_alertmanager()
        cluster.pass_real(70)  # a lasting alert is sent again within half a minute, by rules within a whole one
        do(cluster, "broker-leaves 2; controller-writes")
        cluster.until_heard(*firing(INCIDENTS["two_crashes_a_minute_apart"].heard))
        do(cluster, "broker 2; controller-writes; catch-up")
        do(cluster, "broker 3; controller-writes; catch-up")
        for broker in (2, 3):
            cluster.until_heard(f"page resolved PartitionsOffline of broker {broker}")
    for way in compressed:
        pages = [str(each) for each in cluster.heard(way) if each.receiver == "page"]
        assert len(pages) == len(set(pages)) == 4, (way.name, pages)
