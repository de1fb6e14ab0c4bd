"""The board of the controller, its history, and its compliance with its rules."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, timeseries

from dashboards.catalogue import alert_metrics, broker_metrics, controller_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import ANY_IS_DOUBTFUL, Limits, Line, graph, number
from deploy.boards.queries import JMX_ACTIVE_CONTROLLERS, age, increase, jmx, legend, newest, of_clusters, quantile
from deploy.boards.zookeeper import add_ensemble

# Without the divergences that changes missed by Kontrast cause, because these show nothing about the controller.
_DIVERGENCES = newest(controller_metrics.DIVERGENCES, "kind", matchers=('kind!~"missed_changes|records_missing"',))
_PENDING_WRITES = of_clusters(controller_metrics.PENDING_WRITES)


def board() -> dashboard.Dashboard:
    """Return the board."""
    controller = new_board(
        "controller",
        "controller",
        "The controller, its changes, and its compliance with its own rules.",
    )
    section(
        controller,
        "Now",
        shared.active_controller(),
        number(
            "Controllers by JMX",
            "Brokers that call themselves controller. If it is 0 or 2 for longer than a failover, read their logs.",
            jmx(JMX_ACTIVE_CONTROLLERS),
            limits=Limits(below="red", green=1, red=2),
            absent="JMX is not scraped",
        ),
        shared.epoch(),
        number(
            "Controller for",
            "Time since which this broker, or no broker, is controller.",
            age(controller_metrics.CONTROLLER_SINCE),
            unit="s",
        ),
        shared.pending_writes(),
        number(
            "Divergences",
            "Deviations of the real controller from its rules since the job's state began.",
            f"sum by ({CLUSTER_LABEL}) ({_DIVERGENCES}) or {newest(broker_metrics.BROKERS)} * 0",
            limits=ANY_IS_DOUBTFUL,
        ),
    )
    section(
        controller,
        "Failovers",
        shared.controller_timeline(),
        graph(
            "Epochs",
            "A step up is a broker that became controller.",
            Line(newest(controller_metrics.CONTROLLER_EPOCH)),
            unit="none",
            stepped=True,
        ),
        graph(
            "Controllers, by ZooKeeper and by the brokers",
            "ZooKeeper knows at most one controller. Brokers that disagree are in a failover, or cut off.",
            Line(newest(controller_metrics.CONTROLLER_ACTIVE), legend(word="by ZooKeeper")),
            Line(jmx(JMX_ACTIVE_CONTROLLERS), legend(word="by JMX")),
            stepped=True,
        ),
        graph(
            "Controller changes",
            "Changes to another controller, or to no controller.",
            Line(increase(controller_metrics.CONTROLLER_CHANGES)),
        ),
        shared.elections(),
    )
    section(
        controller,
        "Predicted against observed",
        graph(
            "Queue of expectations",
            "Writes to ZooKeeper that the controller must still do.",
            Line(newest(controller_metrics.PENDING_WRITES), legend(word="pending")),
            stepped=True,
        ),
        graph(
            "Pending for at least a rate interval",
            "Smallest number of pending writes over the interval. A number above 0 means overdue, not in progress.",
            Line(
                f"max by ({CLUSTER_LABEL}) (min_over_time({_PENDING_WRITES}[$__rate_interval]))",
                legend(word="pending all the time"),
            ),
            stepped=True,
        ),
        graph(
            "Divergences by kind",
            "Missing writes, and writes without a reason in ZooKeeper, in all.",
            Line(newest(controller_metrics.DIVERGENCES, "kind"), legend("kind")),
            stepped=True,
        ),
        *_agreement(),
        graph(
            "Open alerts",
            "Alerts on the controller by kind, among them overdue, flapping and ghost controllers.",
            Line(newest(alert_metrics.ALERTS_OPEN, "alert"), legend("alert")),
            stepped=True,
        ),
        graph(
            "Reaction: first write",
            "From a change in ZooKeeper to the controller's first write after it, median and 99th percentile.",
            *_reactions("first"),
            unit="s",
        ),
        graph(
            "Reaction: last write",
            "From a change in ZooKeeper to the controller's last write after it, median and 99th percentile.",
            *_reactions("last"),
            unit="s",
        ),
    )
    return add_ensemble(controller)


def _agreement() -> list[timeseries.Panel]:
    return [
        graph(
            "Agreement",
            "Writes of the controller that were expected, or that a rule of inference explains, among all.",
            Line(newest(controller_metrics.AGREEMENT, "window"), legend("window")),
            unit="percentunit",
        ),
        graph(
            "Writes of the controller",
            "Expected before they came, explained by inference, or unexplained.",
            Line(increase(controller_metrics.WRITES, "verdict"), legend("verdict")),
        ),
        graph(
            "Writes explained by inference",
            "Unannounced events with a write, such as a controlled shutdown or an election by the API, in all.",
            Line(f"{newest(controller_metrics.INFERRED_WRITES, 'rule')} > 0", legend("rule")),
            stepped=True,
        ),
        graph(
            "Inferred events",
            "Unannounced events of the controller by rule, including those that only time shows, in all.",
            Line(f"{newest(controller_metrics.INFERRED_EVENTS, 'rule')} > 0", legend("rule")),
            stepped=True,
        ),
    ]


def _reactions(write: str) -> list[Line]:
    of_write = (f'write="{write}"',)
    return [
        Line(
            quantile(share, controller_metrics.CONTROLLER_REACTION, "event", matchers=of_write),
            legend("event", word=f"p{share * 100:g}"),
        )
        for share in (0.5, 0.99)
    ]
