"""The board of Kontrast pipeline, which shows whether its data is current, and which part of the pipeline is slow."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat

from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.metric import SOURCE_LABEL
from lab.boards.board import board_of_clusters, section
from lab.boards.panels import NONE_IS_BAD, YES_NO, Column, Limits, Line, graph, listing, number
from lab.boards.queries import age, increase, legend, newest, quantile, rate
from lab.boards.shared import LATE, heartbeat_age


def board() -> dashboard.Dashboard:
    """Return the board."""
    pipeline = board_of_clusters(
        "pipeline", "Kontrast itself", "Whether the other boards are correct and current, and which part is slow."
    )
    _truth(pipeline)
    _watch(pipeline)
    _stream(pipeline)
    section(
        pipeline,
        "kontrast serve",
        graph(
            "End-to-end lag",
            "From a change in ZooKeeper to the exporter, median and 99th percentile of rows.",
            Line(quantile(0.5, pipeline_metrics.END_TO_END_LAG), legend(word="p50")),
            Line(quantile(0.99, pipeline_metrics.END_TO_END_LAG), legend(word="p99")),
            unit="s",
        ).span(24),
    )
    return pipeline


def _truth(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "Are the boards correct?",
        number(
            "Ready",
            "Whether a complete read of the cluster came through. Until then the cluster has no other metrics.",
            newest(pipeline_metrics.READY),
            limits=NONE_IS_BAD,
        ).mappings(YES_NO),
        number(
            "ZooKeeper session",
            "Whether kontrast watch has a session. Without one no new change is seen.",
            newest(pipeline_metrics.SESSION_CONNECTED),
            limits=NONE_IS_BAD,
        ).mappings(YES_NO),
        heartbeat_age(),
        number(
            "Outputs are read",
            "Whether kontrast serve can read the outputs of the job.",
            newest(pipeline_metrics.SOURCE_UP, SOURCE_LABEL),
            limits=NONE_IS_BAD,
            legend="kontrast serve {{source}}",
        ).mappings(YES_NO),
        number(
            "Last batch",
            "Since the newest known batch of kontrast stream was done.",
            age(pipeline_metrics.JOB_LAST_BATCH, SOURCE_LABEL),
            unit="s",
            limits=LATE,
            legend="kontrast stream {{source}}",
        ),
        _agreement(),
    )


def _agreement() -> stat.Panel:
    return number(
        "Agreement",
        "Writes of the controller that were expected, or that a rule of inference explains, among all since the "
        "job's state began.",
        newest(cluster_metrics.AGREEMENT, matchers=('window="start"',)),
        limits=Limits(below="orange", green=0.98),
        unit="percentunit",
    )


def _watch(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast watch",
        graph(
            "Records to the stream",
            "Records that the stream acknowledged a second. A heartbeat comes each second.",
            Line(rate(pipeline_metrics.WATCH_RECORDS)),
            unit="ops",
        ),
        graph(
            "Complete reads",
            "Complete reads of ZooKeeper by reason, and the differences that they found.",
            Line(increase(pipeline_metrics.WATCH_COMPLETE_READS, "reason"), legend("reason")),
            Line(increase(pipeline_metrics.WATCH_DIFFERENCES), legend(word="differences")),
        ),
        listing(
            "Watchers",
            "Forwarders of each cluster, one leading and others waiting. The generation grows with each new leader.",
            ("instance",),
            Column("leads", newest(pipeline_metrics.WATCH_LEADS, "instance"), "bool_yes_no"),
            Column("connected", newest(pipeline_metrics.WATCH_CONNECTED, "instance"), "bool_yes_no"),
            Column("stream takes records", newest(pipeline_metrics.WATCH_SINK_UP, "instance"), "bool_yes_no"),
            Column("generation", newest(pipeline_metrics.WATCH_GENERATION, "instance"), "none"),
            Column("heartbeat age", f"time() - {newest(pipeline_metrics.WATCH_HEARTBEAT, 'instance')}", "s"),
            sort_by="instance",
            empty="no watcher is scraped",
        ).height(5),
    )


def _stream(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast stream",
        graph(
            "Lag of the job",
            "From the observation of the oldest record of the newest known batch until its rows were written.",
            Line(newest(pipeline_metrics.JOB_LAG)),
            unit="s",
        ),
        graph(
            "Time of a batch, by phase",
            "Time that batches took on average, by phase in Spark's names.",
            Line(
                f"{rate(pipeline_metrics.JOB_PHASES, SOURCE_LABEL, 'phase')} / on ({SOURCE_LABEL}) group_left () "
                f"{rate(pipeline_metrics.JOB_BATCHES, SOURCE_LABEL)}",
                "{{phase}} {{source}}",
            ),
            unit="s",
        ),
        graph(
            "Open files of the job",
            "Open files of the process that is nearest its limit, by role, and that limit.",
            Line(newest(pipeline_metrics.JOB_OPEN_FDS, "role", SOURCE_LABEL), "{{role}} {{source}}"),
            Line(newest(pipeline_metrics.JOB_MAX_FDS, "role", SOURCE_LABEL), "limit of {{role}} {{source}}"),
        ).span(24),
    )
