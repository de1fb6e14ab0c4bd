"""Titles of alerts, which a phone shows whole."""

import pytest
from msgspec.structs import replace

from controller.contract.alert_row import Severity
from controller.says.alert_kinds.kinds import ALERT_KINDS
from dashboards.alerting.message import LONGEST_TITLE, title_of
from tests.dashboards.test_receivers import row_of

COUNTS = [0, 1, 2, 300, 2_000_000]


@pytest.mark.parametrize("kind", ALERT_KINDS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", COUNTS)
def test_a_title_fits_whatever_it_counts(kind, count):
    brokers = tuple(range(1_000, 1_000 + min(count, 300)))
    more = {"partitions": count, "brokers": brokers, "subject": "znode /brokers/topics/" + "a" * 249, "cause": "so: it"}
    for cluster in ("c", "c" * 255):
        for state, also in (("open", None), ("open", 2_000), ("resolved", None)):
            title = title_of(row_of(kind.name, cluster=cluster, state=state, **more), also=also)
            assert len(title) <= LONGEST_TITLE
            assert "  " not in title
            assert "{" not in title
            assert kind.name not in title


@pytest.mark.parametrize(
    "kind", [kind for kind in ALERT_KINDS.values() if kind.severity is Severity.PAGE], ids=lambda kind: kind.name
)
def test_a_page_has_an_event_and_a_next_step_in_its_title(kind):
    title = title_of(row_of(kind.name, partitions=12, brokers=(1,)))
    assert title.endswith(f": {kind.step.format(them='it', brokers='broker 1', broker=1)}")


def test_a_title_has_cluster_event_and_next_step_until_it_is_resolved():
    two = row_of("BrokerCrashed", brokers=(1, 2))
    assert title_of(two) == "orders: brokers 1 and 2 crashed: start them"
    assert title_of(two, also=2) == "orders, broker 2 too: brokers 1 and 2 crashed: start them"
    assert title_of(row_of("BrokerCrashed", state="resolved")) == "orders: broker 1 crashed"


EXPORTERS = {
    "ReplicaStale": "Kontrast hears nothing",
    "BrokerViewStale": "broker 1 shows old metadata",
    "FinalizedTooEarly": "KRaft was finalized too early",
}


@pytest.mark.parametrize("alert", EXPORTERS)
def test_alerts_of_the_exporter_have_words_of_their_own(alert):
    assert title_of(replace(row_of("BrokerCrashed"), alert=alert)) == f"orders: {EXPORTERS[alert]}"
