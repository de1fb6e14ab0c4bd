"""The board of Kontrast itself, which shows whether its data is current, and which part of the pipeline is slow."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import job_metrics, pipeline_metrics, process_metrics, watch_metrics
from dashboards.catalogue.metric import SOURCE_LABEL
from deploy.boards import shared
from deploy.boards.board import new_board, section
from deploy.boards.panels import (
    ANY_IS_DOUBTFUL,
    NONE_IS_BAD,
    YES_NO,
    Column,
    Limits,
    Line,
    graph,
    listing,
    number,
    words,
)
from deploy.boards.queries import age, increase, legend, newest, quantile, rate

_LATE = Limits(orange=15, red=60)


def board() -> dashboard.Dashboard:
    """Return the board."""
    pipeline = new_board(
        "pipeline", "Kontrast itself", "Whether the other boards are correct and current, and which part is slow."
    )
    for add in (_truth, _watch, _stream, _serve, _processes):
        add(pipeline)
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
        number(
            "Heartbeat age",
            "Since the newest heartbeat that came through the whole pipeline.",
            age(pipeline_metrics.HEARTBEAT),
            unit="s",
            limits=_LATE,
        ),
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
            age(job_metrics.JOB_LAST_BATCH, SOURCE_LABEL),
            unit="s",
            limits=_LATE,
            legend="kontrast stream {{source}}",
            absent="no report of the job",
        ),
        number(
            "Unreadable znodes",
            "Unreadable znodes since the job's state began. Their last good value stays.",
            newest(pipeline_metrics.REFUSED),
            limits=ANY_IS_DOUBTFUL,
        ),
    )


def _watch(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast watch",
        graph(
            "Lag of the watch",
            "From a watch event's arrival to the stream's acknowledgement, median and 99th percentile.",
            Line(quantile(0.5, watch_metrics.WATCH_LAG), legend(word="p50")),
            Line(quantile(0.99, watch_metrics.WATCH_LAG), legend(word="p99")),
            unit="s",
        ),
        graph(
            "Events and windows",
            "Watch events forwarded a second, and the windows in which they were read together.",
            Line(rate(watch_metrics.WATCH_EVENTS), legend(word="events")),
            Line(rate(watch_metrics.WATCH_WINDOWS), legend(word="windows")),
            Line(rate(watch_metrics.WATCH_EVENTS_DROPPED), legend(word="dropped")),
            unit="ops",
        ),
        graph(
            "Complete reads",
            "Complete reads of ZooKeeper by reason, and the differences that they found.",
            Line(increase(watch_metrics.WATCH_COMPLETE_READS, "reason"), legend("reason")),
            Line(increase(watch_metrics.WATCH_DIFFERENCES), legend(word="differences")),
        ),
        graph(
            "Read from ZooKeeper",
            "Reads of znodes a second.",
            Line(rate(watch_metrics.WATCH_ZNODES_READ)),
            unit="reqps",
        ),
        graph(
            "Bytes from ZooKeeper", "Bytes that ZooKeeper sent.", Line(rate(watch_metrics.WATCH_BYTES_READ)), unit="Bps"
        ),
        graph(
            "Waiting",
            "The share of time that reads waited for their budget, and that was paused before complete reads.",
            Line(rate(watch_metrics.WATCH_BUDGET_WAIT), legend(word="for the budget")),
            Line(rate(watch_metrics.WATCH_JITTER_WAIT), legend(word="before complete reads")),
            unit="percentunit",
        ),
        graph(
            "Znodes",
            "Znodes whose state has been published, and znodes that an ACL keeps from being read.",
            Line(newest(watch_metrics.WATCH_ZNODES), legend(word="published")),
            Line(newest(watch_metrics.WATCH_FORBIDDEN), legend(word="forbidden")),
            stepped=True,
        ),
        graph(
            "Records to the stream",
            "Records that the stream acknowledged a second.",
            Line(rate(watch_metrics.WATCH_RECORDS)),
            unit="ops",
        ),
        listing(
            "Watchers",
            "Forwarders of each cluster, one leading and others waiting. The generation grows with each new leader.",
            ("instance",),
            Column("leads", newest(watch_metrics.WATCH_LEADS, "instance"), "bool_yes_no"),
            Column("connected", newest(watch_metrics.WATCH_CONNECTED, "instance"), "bool_yes_no"),
            Column("stream takes records", newest(watch_metrics.WATCH_SINK_UP, "instance"), "bool_yes_no"),
            Column("generation", newest(watch_metrics.WATCH_GENERATION, "instance"), "none"),
            Column("heartbeat age", f"time() - {newest(watch_metrics.WATCH_HEARTBEAT, 'instance')}", "s"),
            sort_by="instance",
            empty="no watcher is scraped",
        )
        .span(18)
        .height(5),
        number(
            "How ZooKeeper is watched",
            "One persistent watch, or one-shot watches on servers before 3.6, which miss brief znodes.",
            newest(watch_metrics.WATCH_MODE, "mode"),
            legend=legend("mode"),
            absent="no watcher is scraped",
        )
        .mappings(words({1: ("watched", "green")}))
        .span(6)
        .height(5),
    )


def _stream(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast stream",
        graph(
            "Lag of the job",
            "From the observation of the oldest record of the newest known batch until its rows were written.",
            Line(newest(job_metrics.JOB_LAG)),
            unit="s",
        ),
        graph(
            "Time of a batch, by phase",
            "Time that batches took on average, by phase in Spark's names.",
            Line(
                f"{rate(job_metrics.JOB_PHASES, SOURCE_LABEL, 'phase')} / on ({SOURCE_LABEL}) group_left () "
                f"{rate(job_metrics.JOB_BATCHES, SOURCE_LABEL)}",
                "{{phase}} {{source}}",
            ),
            unit="s",
        ),
        graph(
            "Records in, rows out",
            "Lines in and out of the job per second. Refused lines are not records.",
            Line(rate(job_metrics.JOB_RECORDS, SOURCE_LABEL), "records {{source}}"),
            Line(rate(job_metrics.JOB_ROWS, SOURCE_LABEL), "rows {{source}}"),
            Line(rate(job_metrics.JOB_REFUSED, SOURCE_LABEL), "refused lines {{source}}"),
            unit="ops",
        ),
        graph(
            "Batches",
            "Batches done a second.",
            Line(rate(job_metrics.JOB_BATCHES, SOURCE_LABEL), "batches {{source}}"),
            unit="ops",
        ),
        graph(
            "Memory of the state",
            "Memory of the state stores.",
            Line(newest(job_metrics.JOB_STATE_BYTES, SOURCE_LABEL), "state {{source}}"),
            unit="bytes",
        ),
        graph(
            "Values of the state",
            "Headers and chunks of clusters that the state stores hold.",
            Line(newest(job_metrics.JOB_STATE_VALUES, SOURCE_LABEL), "values {{source}}"),
        ),
        graph(
            "Commit of the state",
            "Time that the newest known batch's state took to commit, all tasks together.",
            Line(newest(job_metrics.JOB_STATE_COMMIT, SOURCE_LABEL), "commit {{source}}"),
            unit="s",
        ),
        graph(
            "Open files of the job",
            "Open files of the process that is nearest its limit, by role, and that limit.",
            Line(newest(job_metrics.JOB_OPEN_FDS, "role", SOURCE_LABEL), "{{role}} {{source}}"),
            Line(newest(job_metrics.JOB_MAX_FDS, "role", SOURCE_LABEL), "limit of {{role}} {{source}}"),
        ),
        graph(
            "Threads of the job",
            "Threads of the processes, by role.",
            Line(newest(job_metrics.JOB_THREADS, "role", SOURCE_LABEL), "{{role}} {{source}}"),
        ),
        graph(
            "Memory of the job",
            "Resident memory of the processes, by role.",
            Line(newest(job_metrics.JOB_RESIDENT, "role", SOURCE_LABEL), "{{role}} {{source}}"),
            unit="bytes",
        ),
        graph(
            "Processes of the job",
            "Processes by role. Spark starts Python workers on demand.",
            Line(newest(job_metrics.JOB_PROCESSES, "role", SOURCE_LABEL), "{{role}} {{source}}"),
        ),
        number(
            "The job runs for",
            "Since the job's process began. It restarts at 0.",
            age(job_metrics.JOB_STARTED, SOURCE_LABEL),
            unit="s",
            legend="kontrast stream {{source}}",
            absent="no report of the job",
        ).span(12),
    )


def _serve(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast serve",
        shared.end_to_end_lag(),
        graph(
            "Rows read",
            "Output rows that the exporter read a second, by output.",
            Line(rate(pipeline_metrics.ROWS, "output"), legend("output")),
            unit="ops",
        ),
        graph(
            "Rows that were not read",
            "Lines that are not rows, and gaps where rows were dropped before a read. Both should stay 0.",
            Line(increase(pipeline_metrics.BAD_ROWS, "output"), "{{output}} bad rows"),
            Line(increase(pipeline_metrics.GAPS, "output"), "{{output}} gaps"),
        ),
        graph(
            "Newest change applied",
            "Number of the newest ZooKeeper change within its epoch. It restarts with each leader of the ensemble.",
            Line(newest(pipeline_metrics.ZXID_SEQUENCE), legend(word="sequence")),
            unit="none",
        ),
    )


def _processes(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "Processes of watch and serve",
        graph(
            "Small objects",
            "Objects of up to 512 bytes that Python holds. Growth for hours is a leak, or a cluster that grows.",
            Line(newest(process_metrics.SMALL_OBJECTS, "instance"), "{{instance}}"),
        ),
        graph(
            "Heap",
            "Size of the larger objects. Resident memory is higher by the gaps between objects, which spread.",
            Line(newest(process_metrics.HEAP_BYTES, "instance"), "{{instance}}"),
            unit="bytes",
        ),
        listing(
            "Versions",
            "Version of each running Kontrast.",
            ("instance", "version", "python"),
            Column("up", newest(process_metrics.BUILD_INFO, "instance", "version", "python"), "bool_yes_no"),
            sort_by="instance",
            empty="kontrast serve is not scraped",
        ).height(5),
    )
