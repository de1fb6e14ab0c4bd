"""The row about the watched ZooKeeper ensemble on the controller's board."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.catalogue import zookeeper_metrics as metrics
from deploy.boards.board import section
from deploy.boards.panels import Column, Line, graph, listing
from deploy.boards.queries import legend, newest


def add_ensemble(board: dashboard.Dashboard) -> dashboard.Dashboard:
    """Add the row."""
    return section(
        board,
        "ZooKeeper",
        listing(
            "ZooKeeper servers",
            "Servers of the ensemble, with the numbers that each allows Kontrast to ask for.",
            ("server",),
            Column("serves", newest(metrics.ZOOKEEPER_SERVER_UP, "server"), "bool_yes_no"),
            Column("latency", newest(metrics.ZOOKEEPER_LATENCY, "server"), "s"),
            Column("outstanding", newest(metrics.ZOOKEEPER_OUTSTANDING, "server"), "none"),
            Column("connections", newest(metrics.ZOOKEEPER_CONNECTIONS, "server"), "none"),
            Column("fsync", newest(metrics.ZOOKEEPER_FSYNC, "server"), "s"),
            Column("znodes", newest(metrics.ZOOKEEPER_ZNODES, "server"), "none"),
            Column("data", newest(metrics.ZOOKEEPER_DATA, "server"), "bytes"),
            sort_by="server",
            empty="Kontrast does not ask the servers",
        ),
        listing(
            "Modes",
            "Leader, followers and observers.",
            ("server", "mode"),
            Column("serves", newest(metrics.ZOOKEEPER_SERVER_MODE, "server", "mode"), "bool_yes_no"),
            sort_by="server",
            empty="Kontrast does not ask the servers",
        )
        .span(12)
        .height(5),
        listing(
            "Questions that are not allowed",
            "Four-letter words that a server refuses. Allow them by 4lw.commands.whitelist.",
            ("server", "word"),
            Column("refused", newest(metrics.ZOOKEEPER_REFUSED, "server", "word"), "bool_yes_no"),
            sort_by="server",
            empty="every question is allowed",
        )
        .span(12)
        .height(5),
        graph(
            "Voters in sync",
            "Voting servers, and those in sync. If one more loss stops ZooKeeper, an alert opens.",
            Line(newest(metrics.ZOOKEEPER_VOTERS), legend(word="voters")),
            Line(newest(metrics.ZOOKEEPER_VOTERS_IN_SYNC), legend(word="in sync")),
            stepped=True,
        ),
        graph(
            "Time of answers",
            "Time of each server's answer to Kontrast, and its mean time to force the log to disk.",
            Line(newest(metrics.ZOOKEEPER_ANSWER, "server"), legend("server", word="answer")),
            Line(newest(metrics.ZOOKEEPER_FSYNC, "server"), legend("server", word="fsync")),
            unit="s",
        ),
        graph(
            "Largest znodes",
            "Largest znodes and lists of children, and the limit that keeps brokers from reading them.",
            Line(newest(metrics.ZOOKEEPER_ZNODE_BYTES, "path"), legend("path")),
            Line(newest(metrics.ZOOKEEPER_JUTE_MAXBUFFER), legend(word="jute.maxbuffer")),
            unit="bytes",
        ),
        graph(
            "Changes until the leader resigns",
            "Numbers that are left in the low 32 bits of the zxid. The next leader counts from zero.",
            Line(newest(metrics.ZOOKEEPER_ZXID_LEFT)),
            unit="none",
        ),
    )
