"""Language of the traces, with the events of a cluster line by line and the replica's answers as text.

The commands and the wording of rows belong here. `test_traces` runs the files in `traces/`, `test_stories` the pages of
`stories/`, and the same commands tell the stories of alerts.

Empty lines separate the blocks of a story. A block has comments (#), commands, `----`, and the outcome of the commands.
Commands between `read-begin` and `read-end` describe a complete read of ZooKeeper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import RefusedRow, Request, Transition
from controller.contract.forwarder_status import LargeZnode, LeftSession
from controller.contract.ids import BrokerId, PartitionId, Zxid
from controller.contract.metadata_rows import PartitionRow
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from controller.model.watch_state import Quarantines
from controller.restore.altered_context import quarantine, quarantines_with
from controller.restore.stored_context import new_context
from controller.rules.releases import read_release
from controller.rules.settings import read_settings
from controller.step import steps
from controller.transaction.conclusion import Outcome
from tests.controller.ensembles import described, ensemble, lost
from tests.controller.znode_history import ZnodeHistory, asked, broker_znode, catch_up, controller_znode, told

Command = Callable[[ZnodeHistory, list[str]], object]

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
    "reassigning_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
    "controller_changes",
    "writes",
    "inferred_events",
)


MEMORY = (
    "acting",
    "is_poisoned",
    "led_by_kraft",
    "cluster_id",
    "term.epoch",
    "shutdowns.under_way",
    "shutdowns.asked",
    "shutdowns.attempts",
    "former.poisoned",
    "former.poisoned_by",
    "former.slowest_load_ms",
    "triggers.log_dir_failures",
    "configuration.dynamic",
    "migration.partitions_by_epoch",
)


def run_story(text: str, tell: Callable[[ZnodeHistory, int], list[str]] | None = None) -> str:
    """Return the story with the real outcome of each block, its rows unless `tell` gives other lines."""
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    history, told_blocks = None, []
    for block in blocks:
        head = block.partition("\n----")[0].rstrip()
        commands = [line for line in head.splitlines() if not line.startswith("#")]
        if history is None:
            history, commands = opened(commands)
        history.block_began = seen = len(history.effects)
        shown = obey(history, commands)
        outcome = describe(history.effects[seen:]) if tell is None else tell(history, seen)
        told_blocks.append("\n".join([head, "----", *outcome, *shown]))
    return "\n\n".join(told_blocks) + "\n"


def run_page(text: str, tell: Callable[[ZnodeHistory, int], list[str]]) -> str:
    """Return a page of stories as they go now. A story with several releases must go alike with each of them."""
    head, *stories = text.split("== ")
    return "\n== ".join([head.rstrip("\n") + "\n", *(_told(story, tell) for story in stories)])


def _told(story: str, tell: Callable[[ZnodeHistory, int], list[str]]) -> str:
    title, body = story.split("\n", 1)
    if not body.startswith("releases "):
        return f"{title}\n{run_story(body, tell)}"
    releases, body = body.split("\n", 1)
    (again,) = {
        run_story(f"release {release}\n{body}", tell).split("\n", 1)[1]
        for release in releases.removeprefix("releases ").split()
    }
    return f"{title}\n{releases}\n{again}"


def opened(commands: list[str]) -> tuple[ZnodeHistory, list[str]]:
    """Return the cluster with the release and the settings that open a story, and the remaining commands."""
    release: tuple[int, int] | None = None
    settings: dict[str, str] = {}
    preferred: tuple[BrokerId, ...] = ()
    left: list[str] = []
    for line in commands:
        word, *arguments = line.split()
        if word == "release":
            release = read_release(arguments[0])
        elif word == "setting":
            settings |= _pairs(arguments)
        elif word == "preferred-controllers":
            preferred = tuple(map(BrokerId, _brokers(arguments[0])))
        else:
            left.append(line)
    return ZnodeHistory(release=release, settings=read_settings(settings), preferred_controllers=preferred), left


def obey(history: ZnodeHistory, commands: Iterable[str]) -> list[str]:
    """Run the commands, and return the lines of those that show something."""
    shown: list[str] = []
    for command in (command for line in commands for command in line.split("; ")):
        word, *arguments = command.split()
        lines = COMMANDS[word](history, arguments)
        shown += lines if isinstance(lines, list) else []
    return shown


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


def partition_line(row: PartitionRow) -> str:
    parts = [f"{row.topic}-{row.partition} {row.state} leader={row.leader} epoch={row.leader_epoch}"]
    parts.append(f"by={row.controller_epoch} version={row.partition_epoch}")
    parts.append(f"isr={list(row.isr)} replicas={list(row.replicas)}")
    if row.adding_replicas or row.removing_replicas:
        parts.append(f"adding={list(row.adding_replicas)} removing={list(row.removing_replicas)}")
    if row.predicted_isr is not None:
        due = f"leader={row.predicted_leader} epoch={row.predicted_leader_epoch} isr={list(row.predicted_isr)}"
        parts.append(f"expecting {due}")
    return " ".join(parts) + " deleting" * row.deleting + (f"; {row.problem}: {row.reason}" if row.problem else "")


# --- the commands


def _show(history: ZnodeHistory, topics: list[str]) -> list[str]:
    rows = {(row.topic, row.partition): row for row in history.effects if isinstance(row, PartitionRow)}
    return [partition_line(rows[key]) for key in sorted(rows) if key[0] in topics]


def _gauges(history: ZnodeHistory, _: list[str]) -> list[str]:
    row = history.gauges()
    return [f"{name} {getattr(row, name)}" for name in GAUGES if getattr(row, name)]


def _cluster(history: ZnodeHistory, arguments: list[str]) -> None:
    """Read a whole cluster. `t-0=1,2:2` is led by the first of this ISR, and `t-0=1,2:` has no state.

    `t-0=1,2:2@-1/5` has no leader, and leader epoch 5.
    """
    usual = {"brokers": "1,2,3,4", "controller": "4", "epoch": "1", "leader-epoch": "4"}
    said = usual | _pairs(arguments)
    topics: dict[str, dict[int, tuple[Any, ...]]] = {}
    for key in (key for key in said if key not in {*usual, "id"}):
        name, number = _partition_name(key)
        replicas, differs, isr = said[key].partition(":")
        isr, _, led = isr.partition("@")
        in_sync = _brokers(isr if differs else replicas)
        state: tuple[Any, ...] = (in_sync[0], int(said["leader-epoch"]), in_sync) if in_sync else ()
        if led:
            state = (*map(int, led.split("/")), in_sync)
        topics.setdefault(name, {})[number] = (_brokers(replicas), *state)
    controller, epoch = int(said["controller"]), int(said["epoch"])
    history.start(*_brokers(said["brokers"]), controller=controller, epoch=epoch, topics=topics, **_id(said))


def _id(said: dict[str, str]) -> dict[str, object]:
    """Return a topic's id, at the length that Kafka's have."""
    return {"topic_id": f"{said['id']:A<22}"} if said.get("id") else {}


def _topic(history: ZnodeHistory, arguments: list[str]) -> None:
    lists: dict[str, dict[int, list[int]]] = {"": {}, "adding": {}, "removing": {}}
    said = _pairs(arguments[1:])
    for where, brokers in said.items():
        if where != "id":
            kind, _, number = where.rpartition(":")
            lists[kind][int(number)] = _brokers(brokers)
    more = {f"{kind}_replicas": {str(n): ids for n, ids in lists[kind].items()} for kind in ("adding", "removing")}
    history.topic(arguments[0], lists[""], **more, **_id(said))


def _state(history: ZnodeHistory, arguments: list[str]) -> None:
    topic, number = _partition_name(arguments[0])
    said = _pairs(arguments[1:])
    by = int(said["by"]) if "by" in said else None
    epoch = int(said["epoch"])
    if said["epoch"].startswith("+"):
        found = history.context.topics.get(topic)
        assert found is not None
        written = found.partitions[PartitionId(number)].zk_state
        assert written is not None
        epoch += written.leader_epoch
    more = {key: int(said[key]) for key in ("leader_recovery_state",) if key in said}
    history.state(topic, number, int(said["leader"]), epoch, _brokers(said["isr"]), by, **more)


def _reassign(history: ZnodeHistory, arguments: list[str]) -> None:
    targets = [(*_partition_name(name), _brokers(to)) for name, to in _pairs(arguments).items()]
    history.reassign(*targets)


def _log_dir_event(history: ZnodeHistory, arguments: list[str]) -> None:
    path = "/log_dir_event_notification/log_dir_event_0000000000"
    history.write(path, {"version": 1, "broker": int(arguments[0]), "event": 1})
    history.delete(path)


def _config(history: ZnodeHistory, arguments: list[str]) -> None:
    """Write a topic's settings. `a,b=1,2` gives two settings their values."""
    given = {
        key: value
        for names, values in _pairs(arguments[1:]).items()
        for key, value in (zip(names.split(","), values.split(","), strict=True) if "," in names else [(names, values)])
    }
    history.write(f"/config/topics/{arguments[0]}", {"version": 1, "config": given})


def _vanishes(history: ZnodeHistory, arguments: list[str]) -> None:
    history.topic_vanishes(arguments[0], *map(int, arguments[1:]))


def _duration_ms(text: str) -> int:
    number, unit = re.fullmatch(r"(-?\d+)(ms|s|min)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"ms": 1, "s": 1_000, "min": 60_000}[unit]


def _pause(history: ZnodeHistory, arguments: list[str]) -> None:
    history.now_ms += _duration_ms(arguments[0])


def _heartbeats(history: ZnodeHistory, arguments: list[str]) -> None:
    for _ in range(int(arguments[0])):
        history.heartbeat(_duration_ms(arguments[1]))


def _at_rest(history: ZnodeHistory, _: list[str]) -> None:
    _heartbeats(history, ["12", "10s"])


def _isr_notification(history: ZnodeHistory, _: list[str]) -> None:
    """Let the controller read a notification, which shows that it has come to its events before."""
    path = "/isr_change_notification/isr_change_0000000001"
    history.write(path, {"version": 1, "partitions": []})
    history.delete(path)


def _heartbeat(history: ZnodeHistory, arguments: list[str]) -> None:
    history.heartbeat(_duration_ms(arguments[0]), **_pairs(arguments[1:]))  # type: ignore[arg-type]


def _write(history: ZnodeHistory, arguments: list[str]) -> None:
    history.write(arguments[0], " ".join(arguments[1:]).encode())


def _owned(history: ZnodeHistory, path: str, znode: object, said: dict[str, str]) -> None:
    history.write(path, znode, owner=int(said["owner"]) if "owner" in said else None)


def _broker(history: ZnodeHistory, arguments: list[str]) -> None:
    said = _pairs(arguments[1:])
    rack = {"rack": said["rack"]} if "rack" in said else {}
    _owned(history, f"/brokers/ids/{arguments[0]}", broker_znode(int(arguments[0])) | rack, said)


def _controller(history: ZnodeHistory, arguments: list[str]) -> None:
    history.controller(int(arguments[0]), int(_pairs(arguments[1:])["epoch"]))


def _controller_znode(history: ZnodeHistory, arguments: list[str]) -> None:
    _owned(history, "/controller", controller_znode(int(arguments[0])), _pairs(arguments[1:]))


def _next_watcher(history: ZnodeHistory, _: list[str]) -> None:
    history.generation, history.seq = history.generation + 1, -1


def _read_again(history: ZnodeHistory, _: list[str]) -> None:
    _next_watcher(history, _)
    history.send(RecordKind.SNAPSHOT_BEGIN, zxid=history.zxid)


# --- the watcher's own troubles


def _lose_record(history: ZnodeHistory, _: list[str]) -> None:
    history.seq += 1


def _zxid(history: ZnodeHistory, arguments: list[str]) -> None:
    history.zxid += int(arguments[0])


def _steady_clock(history: ZnodeHistory, _: list[str]) -> None:
    history.steady_from_ms = 0


def _wall_clock(history: ZnodeHistory, arguments: list[str]) -> None:
    history.wall_ahead_ms += _duration_ms(arguments[0])


def _session_lost(history: ZnodeHistory, _: list[str]) -> None:
    history.send(RecordKind.SESSION, zxid=history.zxid, data=json.dumps({"session": "lost"}))


def _older_watcher(history: ZnodeHistory, arguments: list[str]) -> None:
    """Send a heartbeat a second of a watcher that was replaced."""
    for second in range(int(arguments[0])):
        record = Record(
            cluster=history.cluster,
            generation=history.generation - 1,
            seq=0,
            kind=RecordKind.HEARTBEAT,
            observed_ms=second * 1_000,
            zxid=Zxid(10**6),
        )
        _take(history, steps(history.context, [record]))


def _quarantine(history: ZnodeHistory, arguments: list[str]) -> None:
    """Put the cluster into quarantine, once for each argument."""
    quarantines, last = Quarantines(), history.records[-1]
    for _ in arguments:
        quarantines = quarantines_with(quarantines, 7, last, "OverflowError in turn.py, conclude")
    why = "records up to number 9 of generation 1 could not be applied (OverflowError: too large)"
    _take(history, quarantine(new_context(history.cluster, chunk_count=8), quarantines, last, why))


def _take(history: ZnodeHistory, outcome: Outcome) -> None:
    history.context = outcome.context
    history.effects.extend(outcome.effects)


def _ensemble(history: ZnodeHistory, arguments: list[str]) -> None:
    """Describe the servers for some rounds. `3:zxid=7` changes the answer of the third, and `3:lost` loses it."""
    said = {"rounds": "1", "session": "connected", "zxid": "0"}
    servers: dict[int, dict[str, Any]] = {}
    more: dict[str, Any] = {}
    for key, _, value in (argument.partition("=") for argument in arguments):
        at, _, name = key.partition(":")
        if at == "large":
            more["large_znodes"] = (LargeZnode(name, int(value)),)
        elif at == "left-session":
            more["left_sessions"] = (LeftSession(BrokerId(int(name)), history.sessions[int(name)], int(value)),)
        elif name == "lost":
            servers[int(at) - 1] = lost() | ({"trouble": value.replace("_", " ")} if value else {})
        elif name:
            servers.setdefault(int(at) - 1, {})[name] = json.loads(value)
        else:
            said[key] = value
    newest = ensemble(*servers.items(), zxid=int(said["zxid"]), **more)
    described(history, newest, times=int(said["rounds"]), session=said["session"])


def _brokers(text: str) -> list[int]:
    return [int(broker) for broker in text.split(",") if broker]


def _pairs(arguments: Iterable[str]) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in arguments)


def _partition_name(text: str) -> tuple[str, int]:
    topic, _, number = text.rpartition("-")
    return topic, int(number)


def _migrates(history: ZnodeHistory, _: list[str]) -> None:
    history.migrates().pulses(1)


def _unread_write(history: ZnodeHistory, arguments: list[str]) -> None:
    history.lose(*_partition_name(arguments[0]), *map(int, arguments[1:]))


def _numbers(arguments: Iterable[str]) -> dict[str, Any]:
    return {key: int(number) for key, number in _pairs(arguments).items()}


def _write_as(history: ZnodeHistory, arguments: list[str]) -> None:
    """Write with numbers of the znode or the transaction before the path: owner, author, cxid, version, same_zxid."""
    at = next(at for at, argument in enumerate(arguments) if argument.startswith("/"))
    path, *content = arguments[at:]
    history.write(path, " ".join(content).encode(), **_numbers(arguments[:at]))


def _replicas(history: ZnodeHistory, topics: list[str]) -> list[str]:
    """Return the states of the replicas of each partition."""
    return [
        f"{name}-{number} {' '.join(f'{broker}:{state.word}' for broker, state in sorted(states.items()))}"
        for name, topic in history.context.topics
        if name in topics
        for number, states in ((number, each.all_replica_states) for number, each in topic.partitions.items())
    ]


def _memory(history: ZnodeHistory, _: list[str]) -> list[str]:
    """Return what the controller remembers beside its znodes. Of a mapping to objects, the keys."""
    said = {name: attrgetter(name)(history.context.header) for name in MEMORY}
    said |= {
        f"offline_dirs of {name}-{number}": each.offline_dirs
        for name, topic in history.context.topics
        for number, each in topic.partitions.items()
    }
    return [f"{name} {_plain(value)}" for name, value in said.items() if value]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        simple = all(isinstance(each, (int, str, tuple, Mapping)) for each in value.values())
        return dict(value) if simple else list(value)
    return value


def _requests(history: ZnodeHistory, _: list[str]) -> list[str]:
    return [line for row in history.effects[history.block_began :] if isinstance(row, Request) for line in asked(row)]


def _open(history: ZnodeHistory, _: list[str]) -> list[str]:
    return [f"open: {', '.join(sorted(history.open_alerts())) or 'none'}"]


COMMANDS: dict[str, Command] = {
    "cluster": _cluster,
    "read-begin": lambda history, _: history.send(RecordKind.SNAPSHOT_BEGIN),
    "next-watcher": _next_watcher,
    "read-again": _read_again,
    "read-end": lambda history, _: history.send(RecordKind.SNAPSHOT_END, zxid=history.zxid),
    "broker": _broker,
    "broker-bounces": lambda history, arguments: history.broker_bounces(int(arguments[0])),
    "broker-leaves": lambda history, arguments: history.broker_leaves(int(arguments[0])),
    "broker-closes": lambda history, arguments: history.broker_closes(int(arguments[0])),
    "controller": _controller,
    "controller-znode": _controller_znode,
    "controller-leaves": lambda history, _: history.delete("/controller"),
    "controller-dies": lambda history, arguments: history.controller_dies(int(arguments[0])),
    "controller-writes": lambda history, topics: history.the_controller_writes_its_due(*topics),
    "migrates": _migrates,
    "claims-and-copies": lambda history, _: history.migrates(),
    "pulses": lambda history, arguments: history.pulses(int(arguments[0])),
    "migration": lambda history, numbers: history.migration(*map(int, numbers)),
    "kraft-claims": lambda history, numbers: history.kraft_claims(*map(int, numbers)),
    "topic": _topic,
    "state": _state,
    "config": _config,
    "delete-topic": lambda history, arguments: history.delete_topic(arguments[0]),
    "topic-vanishes": _vanishes,
    "reassign": _reassign,
    "elect-preferred": lambda history, names: history.elect_preferred(*map(_partition_name, names)),
    "log-dir-event": _log_dir_event,
    "heartbeat": _heartbeat,
    "heartbeats": _heartbeats,
    "at-rest": _at_rest,
    "isr-notification": _isr_notification,
    "pause": _pause,
    "catch-up": lambda history, _: catch_up(history),
    "write": _write,
    "write-binary": lambda history, arguments: history.write(arguments[0], bytes.fromhex(arguments[1])),
    "create": lambda history, arguments: history.write(arguments[0]),
    "came-and-went": lambda history, arguments: history.came_and_went(arguments[0]),
    "unread-write": _unread_write,
    "restart": lambda history, _: history.restart(),
    "remove": lambda history, arguments: history.delete(arguments[0], **_numbers(arguments[1:])),
    "write-as": _write_as,
    "replicas": _replicas,
    "ensemble": _ensemble,
    "session-lost": _session_lost,
    "lose-record": _lose_record,
    "zxid": _zxid,
    "steady-clock": _steady_clock,
    "wall-clock": _wall_clock,
    "older-watcher": _older_watcher,
    "quarantine": _quarantine,
    "memory": _memory,
    "requests": _requests,
    "open": _open,
    "show": _show,
    "gauges": _gauges,
}
