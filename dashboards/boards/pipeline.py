"""Kontrast itself: is what the other boards show true and new, and which part of the pipeline is slow.

Here belongs the choice of panels.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import catalogue
from dashboards.boards import shared
from dashboards.boards.board import new_board, section
from dashboards.boards.panels import (
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
from dashboards.boards.queries import age, increase, legend, newest, quantile, rate

_LATE = Limits(orange=15, red=60)


def board() -> dashboard.Dashboard:
    """The board."""
    pipeline = new_board(
        "pipeline", "Kontrast itself", "Whether what the other boards show is true and new, and which part is slow."
    )
    for add in (_truth, _watch, _stream, _serve):
        add(pipeline)
    return pipeline


def _truth(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "Is what the boards show true?",
        number(
            "Ready",
            "Whether a complete snapshot of the cluster came through. While not, nothing is said about the cluster.",
            newest(catalogue.READY),
            limits=NONE_IS_BAD,
        ).mappings(YES_NO),
        number(
            "ZooKeeper session",
            "Whether kontrast watch has a session. While not, nothing new is seen.",
            newest(catalogue.SESSION_CONNECTED),
            limits=NONE_IS_BAD,
        ).mappings(YES_NO),
        number(
            "Heartbeat age",
            "Since the newest heartbeat that came through the whole pipeline.",
            age(catalogue.HEARTBEAT),
            unit="s",
            limits=_LATE,
        ),
        number(
            "Outputs are read",
            "Whether kontrast serve can read what the streaming job writes.",
            newest(catalogue.SOURCE_UP),
            limits=NONE_IS_BAD,
            legend="kontrast serve",
        ).mappings(YES_NO),
        number(
            "Last batch",
            "Since the newest known batch of kontrast stream was done.",
            age(catalogue.JOB_LAST_BATCH),
            unit="s",
            limits=_LATE,
            legend="kontrast stream",
            absent="the job says nothing",
        ),
        number(
            "Unreadable znodes",
            "Znodes that could not be read since the job's state began; the last good value stays.",
            newest(catalogue.REFUSED),
            limits=ANY_IS_DOUBTFUL,
        ),
    )


def _watch(pipeline: dashboard.Dashboard) -> None:
    section(
        pipeline,
        "kontrast watch",
        graph(
            "Lag of the watch",
            "From a watch event's arrival to the stream's acknowledgement: half and 99 of 100 are faster.",
            Line(quantile(0.5, catalogue.WATCH_LAG), legend(word="p50")),
            Line(quantile(0.99, catalogue.WATCH_LAG), legend(word="p99")),
            unit="s",
        ),
        graph(
            "Events and windows",
            "Watch events forwarded a second, and the windows in which they were read together.",
            Line(rate(catalogue.WATCH_EVENTS), legend(word="events")),
            Line(rate(catalogue.WATCH_WINDOWS), legend(word="windows")),
            Line(rate(catalogue.WATCH_EVENTS_DROPPED), legend(word="dropped")),
            unit="ops",
        ),
        graph(
            "Complete reads",
            "How often everything was read anew, by reason, and the differences that such reads found.",
            Line(increase(catalogue.WATCH_COMPLETE_READS, "reason"), legend("reason")),
            Line(increase(catalogue.WATCH_DIFFERENCES), legend(word="differences")),
        ),
        graph(
            "Read from ZooKeeper",
            "Reads of znodes a second.",
            Line(rate(catalogue.WATCH_ZNODES_READ)),
            unit="reqps",
        ),
        graph("Bytes from ZooKeeper", "What ZooKeeper sent.", Line(rate(catalogue.WATCH_BYTES_READ)), unit="Bps"),
        graph(
            "Waiting",
            "The share of time that reads waited for their budget, and that was paused before complete reads.",
            Line(rate(catalogue.WATCH_BUDGET_WAIT), legend(word="for the budget")),
            Line(rate(catalogue.WATCH_JITTER_WAIT), legend(word="before complete reads")),
            unit="percentunit",
        ),
        graph(
            "Znodes",
            "Znodes whose state has been published, and those that an ACL keeps from being read.",
            Line(newest(catalogue.WATCH_ZNODES), legend(word="published")),
            Line(newest(catalogue.WATCH_FORBIDDEN), legend(word="forbidden")),
            stepped=True,
        ),
        graph(
            "Records to the stream",
            "Records that the stream acknowledged a second.",
            Line(rate(catalogue.WATCH_RECORDS)),
            unit="ops",
        ),
        listing(
            "Watchers",
            "Who forwards each cluster: one leads, others wait. The generation grows at each change of the leader.",
            ("instance",),
            Column("leads", newest(catalogue.WATCH_LEADS, "instance"), "bool_yes_no"),
            Column("connected", newest(catalogue.WATCH_CONNECTED, "instance"), "bool_yes_no"),
            Column("stream takes records", newest(catalogue.WATCH_SINK_UP, "instance"), "bool_yes_no"),
            Column("generation", newest(catalogue.WATCH_GENERATION, "instance"), "none"),
            Column("heartbeat age", f"time() - {newest(catalogue.WATCH_HEARTBEAT, 'instance')}", "s"),
            sort_by="instance",
            empty="no watcher is scraped",
        )
        .span(18)
        .height(5),
        number(
            "How ZooKeeper is watched",
            "One persistent watch, or one-shot watches on servers before 3.6, where what comes and goes is missed.",
            newest(catalogue.WATCH_MODE, "mode"),
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
            Line(newest(catalogue.JOB_LAG)),
            unit="s",
        ),
        graph(
            "Time of a batch, by phase",
            "Time that batches took on average, by phase in Spark's names.",
            Line(
                f"{rate(catalogue.JOB_PHASES, 'phase')} / on () group_left () {rate(catalogue.JOB_BATCHES)}",
                "{{phase}}",
            ),
            unit="s",
        ),
        graph(
            "Records in, rows out",
            "What the job takes in and writes a second; refused lines are no records.",
            Line(rate(catalogue.JOB_RECORDS), "records"),
            Line(rate(catalogue.JOB_ROWS), "rows"),
            Line(rate(catalogue.JOB_REFUSED), "refused lines"),
            unit="ops",
        ),
        graph("Batches", "Batches done a second.", Line(rate(catalogue.JOB_BATCHES), "batches"), unit="ops"),
        graph(
            "Memory of the state",
            "What the state stores hold in memory.",
            Line(newest(catalogue.JOB_STATE_BYTES), "state"),
            unit="bytes",
        ),
        graph(
            "Values of the state",
            "Headers and chunks of clusters that the state stores hold.",
            Line(newest(catalogue.JOB_STATE_VALUES), "values"),
        ),
        graph(
            "Commit of the state",
            "Time that the newest known batch's state took to commit, all tasks together.",
            Line(newest(catalogue.JOB_STATE_COMMIT), "commit"),
            unit="s",
        ),
        number(
            "The job runs for",
            "Since the job's process began; it begins anew at each restart.",
            age(catalogue.JOB_STARTED),
            unit="s",
            legend="kontrast stream",
            absent="the job says nothing",
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
            Line(rate(catalogue.ROWS, "output"), legend("output")),
            unit="ops",
        ),
        graph(
            "Rows that were not read",
            "Lines that are no row, and gaps where rows were dropped before they were read; both should stay 0.",
            Line(increase(catalogue.BAD_ROWS, "output"), "{{output}} bad rows"),
            Line(increase(catalogue.GAPS, "output"), "{{output}} gaps"),
        ),
        graph(
            "Newest change applied",
            "Number of the newest ZooKeeper change within its epoch; it begins anew with each leader of the ensemble.",
            Line(newest(catalogue.ZXID_SEQUENCE), legend(word="sequence")),
            unit="none",
        ),
        listing(
            "Versions",
            "Which Kontrast runs where.",
            ("instance", "version", "python"),
            Column("up", newest(catalogue.BUILD_INFO, "instance", "version", "python"), "bool_yes_no"),
            sort_by="instance",
            empty="kontrast serve is not scraped",
        ).height(5),
    )
