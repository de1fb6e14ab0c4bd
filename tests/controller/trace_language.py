"""Language of the traces, with the events of a cluster line by line and the replica's answers as text.

The commands and the wording of rows belong here. The stories are the files in `traces/`, and `test_traces` runs them.

Empty lines separate the blocks of a story. A block has comments (#), commands, `----`, and the outcome of the commands.
Commands between `read-begin` and `read-end` describe a complete read of ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import RefusedRow, Request, Transition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import RecordKind
from controller.contract.row import Row
from controller.rules.releases import read_release
from controller.rules.settings import read_settings
from tests.controller.znode_history import ZnodeHistory, asked, told

GAUGES = (
    "active_brokers",
    "topics",
    "partitions",
    "offline_partitions",
    "leaderless_partitions",
    "under_replicated_partitions",
    "preferred_replica_imbalance",
    "topics_to_delete",
    "replicas_to_delete",
    "topics_ineligible_to_delete",
    "replicas_ineligible_to_delete",
    "pending_writes",
    "elections",
    "isr_changes",
    "refused",
    "divergences",
)


def run_story(text: str) -> str:
    """Return the story with the real outcome of each block."""
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    history, told_blocks = None, []
    for block in blocks:
        head = block.partition("\n----")[0].rstrip()
        commands = [line for line in head.splitlines() if not line.startswith("#")]
        if history is None:
            history, commands = _cluster(commands)
        shown: list[str] = []
        seen = len(history.effects)
        for line in commands:
            word, *arguments = line.split()
            lines = COMMANDS[word](history, arguments)
            shown += lines if isinstance(lines, list) else []
        told_blocks.append("\n".join([head, "----", *describe(history.effects[seen:]), *shown]))
    return "\n\n".join(told_blocks) + "\n"


def _cluster(commands: list[str]) -> tuple[ZnodeHistory, list[str]]:
    """Return the cluster with the release and the settings that open a story, and the remaining commands."""
    release: tuple[int, int] | None = None
    settings: dict[str, str] = {}
    left: list[str] = []
    for line in commands:
        word, *arguments = line.split()
        if word == "release":
            release = read_release(arguments[0])
        elif word == "setting":
            settings |= _pairs(arguments)
        else:
            left.append(line)
    return ZnodeHistory(release=release, settings=read_settings(settings)), left


# --- how rows read


def describe(rows: Iterable[Row]) -> list[str]:
    """Return transitions and requests under their causes, and alerts and refusals in order."""
    lines, cause = [], None
    for row in rows:
        if isinstance(row, (Transition, Request)):
            if row.cause != cause:
                cause = row.cause
                lines.append(cause)
            lines += [f"  {line}" for line in ([told(row)] if isinstance(row, Transition) else asked(row))]
        elif isinstance(row, AlertRow):
            lines.append(f"alert {row.state} {row.id} ({row.severity.value}): {row.cause}")
        elif isinstance(row, RefusedRow):
            lines.append(f"refused {row.path}: {row.reason}")
    return lines


def _partition(row: PartitionRow) -> str:
    parts = [f"{row.topic}-{row.partition} {row.state} leader={row.leader} epoch={row.leader_epoch}"]
    parts.append(f"isr={list(row.isr)} replicas={list(row.replicas)}")
    if row.adding_replicas or row.removing_replicas:
        parts.append(f"adding={list(row.adding_replicas)} removing={list(row.removing_replicas)}")
    if row.predicted_isr is not None:
        due = f"leader={row.predicted_leader} epoch={row.predicted_leader_epoch} isr={list(row.predicted_isr)}"
        parts.append(f"expecting {due}")
    return " ".join(parts) + (f"; {row.problem}: {row.reason}" if row.problem else "")


# --- the commands


def _show(history: ZnodeHistory, topics: list[str]) -> list[str]:
    rows = {(row.topic, row.partition): row for row in history.effects if isinstance(row, PartitionRow)}
    return [_partition(rows[key]) for key in sorted(rows) if key[0] in topics]


def _gauges(history: ZnodeHistory, _: list[str]) -> list[str]:
    row = history.gauges()
    return [f"{name} {getattr(row, name)}" for name in GAUGES if getattr(row, name)]


def _topic(history: ZnodeHistory, arguments: list[str]) -> None:
    lists: dict[str, dict[int, list[int]]] = {"": {}, "adding": {}, "removing": {}}
    for argument in arguments[1:]:
        where, brokers = argument.split("=")
        kind, _, number = where.rpartition(":")
        lists[kind][int(number)] = _brokers(brokers)
    more = {f"{kind}_replicas": {str(n): ids for n, ids in lists[kind].items()} for kind in ("adding", "removing")}
    history.topic(arguments[0], lists[""], **more)


def _state(history: ZnodeHistory, arguments: list[str]) -> None:
    topic, number = _partition_name(arguments[0])
    said = _pairs(arguments[1:])
    by = int(said["by"]) if "by" in said else None
    history.state(topic, number, int(said["leader"]), int(said["epoch"]), _brokers(said["isr"]), by)


def _reassign(history: ZnodeHistory, arguments: list[str]) -> None:
    targets = [(*_partition_name(name), _brokers(to)) for name, to in _pairs(arguments).items()]
    history.reassign(*targets)


def _log_dir_event(history: ZnodeHistory, arguments: list[str]) -> None:
    path = "/log_dir_event_notification/log_dir_event_0000000000"
    history.write(path, {"version": 1, "broker": int(arguments[0]), "event": 1})
    history.delete(path)


def _config(history: ZnodeHistory, arguments: list[str]) -> None:
    history.write(f"/config/topics/{arguments[0]}", {"version": 1, "config": _pairs(arguments[1:])})


def _vanishes(history: ZnodeHistory, arguments: list[str]) -> None:
    history.topic_vanishes(arguments[0], *map(int, arguments[1:]))


def _heartbeat(history: ZnodeHistory, arguments: list[str]) -> None:
    history.heartbeat(int(arguments[0].removesuffix("s")) * 1_000)


def _write(history: ZnodeHistory, arguments: list[str]) -> None:
    history.write(arguments[0], " ".join(arguments[1:]).encode())


def _controller(history: ZnodeHistory, arguments: list[str]) -> None:
    history.controller(int(arguments[0]), int(_pairs(arguments[1:])["epoch"]))


def _read_again(history: ZnodeHistory, _: list[str]) -> None:
    history.generation, history.seq = history.generation + 1, -1
    history.send(RecordKind.SNAPSHOT_BEGIN)


def _brokers(text: str) -> list[int]:
    return [int(broker) for broker in text.split(",") if broker]


def _pairs(arguments: Iterable[str]) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in arguments)


def _partition_name(text: str) -> tuple[str, int]:
    topic, _, number = text.rpartition("-")
    return topic, int(number)


COMMANDS: dict[str, Callable[[ZnodeHistory, list[str]], list[str] | tuple[Row, ...] | None]] = {
    "read-begin": lambda history, _: history.send(RecordKind.SNAPSHOT_BEGIN),
    "read-again": _read_again,
    "read-end": lambda history, _: history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid),
    "broker": lambda history, arguments: history.broker(int(arguments[0])),
    "broker-bounces": lambda history, arguments: history.broker_bounces(int(arguments[0])),
    "broker-leaves": lambda history, arguments: history.broker_leaves(int(arguments[0])),
    "broker-closes": lambda history, arguments: history.broker_closes(int(arguments[0])),
    "controller": _controller,
    "controller-leaves": lambda history, _: history.delete("/controller"),
    "controller-dies": lambda history, arguments: history.controller_dies(int(arguments[0])),
    "topic": _topic,
    "state": _state,
    "config": _config,
    "delete-topic": lambda history, arguments: history.delete_topic(arguments[0]),
    "topic-vanishes": _vanishes,
    "reassign": _reassign,
    "elect-preferred": lambda history, names: history.elect_preferred(*map(_partition_name, names)),
    "log-dir-event": _log_dir_event,
    "heartbeat": _heartbeat,
    "write": _write,
    "remove": lambda history, arguments: history.delete(arguments[0]),
    "show": _show,
    "gauges": _gauges,
}
