"""The board of a migration to KRaft, with its progress, the rollback, missing brokers and problems."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table

from controller.contract.alert_kinds.kinds import SECTIONS
from dashboards.catalogue import alert_metrics, controller_metrics, migration_metrics, migration_quorum_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from deploy.boards.board import new_board, section
from deploy.boards.panels import (
    ANY_IS_BAD,
    ANY_IS_DOUBTFUL,
    Column,
    Limits,
    Line,
    graph,
    listing,
    number,
    timeline,
    words,
)
from deploy.boards.queries import age, legend, newest

ALERTS = "The way to KRaft"  # the section of the migration's alerts in the catalogue

_NOT_LED = "no KRaft leader"
_NOT_ASKED = "not asked: set kafka_quorum"

# An idle quorum writes /migration every half second. 2 s are three times the longest gap that was seen without a fault,
# and the alert opens at 10 s. The quorum has two records a second, so a lag of 20 records is also 10 s.
_PULSE = Limits(orange=2, red=10)
_LAG = Limits(orange=20)


def board() -> dashboard.Dashboard:
    """Return the board."""
    way = new_board(
        "migration",
        "the way to KRaft",
        "Progress of a migration from ZooKeeper to KRaft, the way back, and problems.",
    )
    section(
        way,
        "Now",
        number(
            "Phase",
            "waiting means that a quorum exists and the ZooKeeper controller leads. claimed and syncing mean "
            "that KRaft copies. hybrid and dual_write mean that KRaft leads and writes to ZooKeeper too. silent "
            "means that /migration stands still.",
            f"{newest(migration_metrics.MIGRATION_PHASE, 'phase')} == 1",
            legend=legend("phase"),
            absent="no migration was seen",
        ).mappings(words({1: ("now", "blue")})),
        number("In this phase for", "Since the phase began.", age(migration_metrics.MIGRATION_PHASE_SINCE), unit="s"),
        number(
            "May I go back",
            "Whether ZooKeeper's controllers can take over again without a loss and without raising the epoch. "
            "The sentence below has the steps.",
            newest(migration_metrics.MIGRATION_ROLLBACK_SAFE),
        ).mappings(words({1: ("yes", "green"), 0: ("not as it is", "red")})),
        number(
            "Raise /controller_epoch to",
            "Lowest value for a rollback. A ZooKeeper controller elects no leader above its own epoch.",
            newest(migration_metrics.MIGRATION_ROLLBACK_EPOCH),
            limits=Limits(below="orange"),
            unit="none",
            absent="it need not be raised",
        ),
        number(
            "Pulse age",
            "Since /migration was written. It is the one sign in ZooKeeper that the dual write lives.",
            newest(migration_metrics.MIGRATION_PULSE_AGE),
            limits=_PULSE,
            unit="s",
            absent=_NOT_LED,
        ),
        number(
            "Records that ZooKeeper lacks",
            "The quorum's high watermark - 1 - the offset in /migration, when the quorum was last asked.",
            newest(migration_quorum_metrics.MIGRATION_OFFSET_LAG),
            limits=_LAG,
            absent=_NOT_ASKED,
        ),
    )
    section(way, "What to do", _advice(), _alerts())
    section(
        way,
        "Brokers",
        number(
            "Missing brokers",
            "Brokers with replicas that are neither registered nor seen in KRaft mode. The quorum waits for them.",
            newest(migration_metrics.MIGRATION_BROKERS, matchers=('mode="missing"',)),
            limits=ANY_IS_DOUBTFUL,
        ).span(12),
        number(
            "Never elected",
            "Partitions that the controller elects no leader for after a rollback, because of their epoch.",
            newest(migration_metrics.MIGRATION_NEVER_ELECTED),
            limits=ANY_IS_BAD,
        ).span(12),
        graph(
            "Brokers by mode",
            "As ZooKeeper shows them, registered, inferred in KRaft mode, or missing.",
            Line(newest(migration_metrics.MIGRATION_BROKERS, "mode"), legend("mode")),
            stepped=True,
        ),
        graph(
            "Nodes by mode, as they answer",
            "Each broker's and controller's own report, if Kontrast asks the quorum.",
            Line(newest(migration_quorum_metrics.MIGRATION_NODES, "mode"), legend("mode")),
            stepped=True,
        ),
        listing(
            "Each broker's mode",
            "zookeeper is registered, with or without the flag. kraft leads or is in sync without registration.",
            ("broker", "mode"),
            Column("brokers", newest(migration_metrics.MIGRATION_BROKER, "broker", "mode")),
            sort_by="broker",
        ),
    )
    section(
        way,
        "History",
        timeline(
            "Phases",
            "A bar while the migration is in this phase.",
            Line(newest(migration_metrics.MIGRATION_PHASE, "phase"), legend("phase")),
            meaning={1: ("in it", "blue"), 0: ("–", "transparent")},
        ),
        timeline(
            "The way back",
            "A bar while this is the answer.",
            Line(newest(migration_metrics.MIGRATION_ROLLBACK, "verdict"), legend("verdict")),
            meaning={1: ("the answer", "purple"), 0: ("–", "transparent")},
        ),
        graph(
            "Pulse age over time",
            "Under a second while the dual write lives. It grows when the dual write breaks, while Kafka's "
            "gauges stay green.",
            Line(newest(migration_metrics.MIGRATION_PULSE_AGE)),
            unit="s",
        ),
        graph(
            "Offsets",
            "In /migration, and the quorum's high watermark.",
            Line(newest(migration_metrics.MIGRATION_OFFSET), legend(word="in /migration")),
            Line(newest(migration_quorum_metrics.MIGRATION_HIGH_WATERMARK), legend(word="high watermark")),
        ),
        graph(
            "Epochs",
            "A rollback is safe while no state has a higher epoch than /controller_epoch.",
            Line(newest(controller_metrics.CONTROLLER_EPOCH), legend(word="/controller_epoch")),
            Line(newest(migration_metrics.MIGRATION_HIGHEST_EPOCH), legend(word="highest in a state")),
            Line(newest(migration_quorum_metrics.MIGRATION_LEADER_EPOCH), legend(word="the quorum's")),
            stepped=True,
        ),
        graph(
            "Partitions that differ from the quorum",
            "Values of partitions that ZooKeeper and the quorum have differently for longer than a confirmation takes.",
            Line(newest(migration_quorum_metrics.MIGRATION_DIFFERING, "subject"), legend("subject")),
            stepped=True,
        ),
    )
    return section(
        way,
        "Leftovers",
        listing(
            "Left in ZooKeeper",
            "Of an earlier attempt, or waiting in /admin for a rollback, whose controller obeys it.",
            ("leftover",),
            Column("here", newest(migration_metrics.MIGRATION_LEFTOVER, "leftover")),
            sort_by="leftover",
            empty="nothing",
        ),
    )


def _advice() -> table.Panel:
    since = newest(migration_metrics.MIGRATION_PHASE_SINCE)
    advice = newest(migration_metrics.MIGRATION_ADVICE, "rollback", "next_step")
    return listing(
        "The way back and the next step",
        "Present answer about a rollback, and the names that the migration waits for.",
        ("rollback", "next_step"),
        Column("phase since", f"{advice} * on ({CLUSTER_LABEL}) group_left () {since} * 1000", "dateTimeAsIso"),
        sort_by="phase since",
        empty="no migration was seen",
    )


def _alerts() -> table.Panel:
    kinds = f'alert=~"{"|".join(kind.name for kind in SECTIONS[ALERTS])}"'
    since = newest(alert_metrics.ALERT_SINCE, "alert", "severity", "subject", matchers=(kinds,))
    return listing(
        "Alerts of the migration",
        "Open and unknown alerts of the migration. Each has a runbook.",
        ("alert", "severity", "subject"),
        Column("since", f"{since} * 1000", "dateTimeAsIso"),
        sort_by="since",
    )
