"""`kontrast replay` on the files of a real cluster."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from cli.printing.replay_lines import row_object, sentence
from cli.printing.standard_output import plain_lines
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.effect_rows import Request, RequestedState, Status, Transition
from controller.contract.gauges_row import Writes
from questions.replay import Agreement, Incidents
from tests.archives import extract
from tests.rows import Rows

RECORDINGS = Path(__file__).parents[1] / "conformance" / "recordings"
ALL = "transitions,requests,metadata,alerts,gauges,refused"
STAMP = {"cluster": "c", "generation": 1, "seq": 1, "ordinal": 0, "zxid": 109, "time_ms": 1_700_000_000_123}
EFFECT = {"effect": "1-2-3", "status": Status.FINAL, "cause": "BrokerChange: broker 3 left", "controller_epoch": 1}


@pytest.fixture(scope="module")
def zk_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ZooKeeper of a recorded cluster."""
    directory = tmp_path_factory.mktemp("recording")
    extract(RECORDINGS / "dev39.tar.xz", directory, "dev39/zk/")
    return directory / "dev39" / "zk"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def objects(result: Result) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def everything(zk_data: Path) -> list[dict]:
    return objects(invoke("--zk-data", zk_data, "--emit", ALL, "--json"))


def test_every_object_has_its_kind_zxid_and_time(everything: list[dict]):
    for row in everything:
        assert list(row)[:3] == ["kind", "zxid", "time_ms"]
        assert row["zxid"] == f"{int(row['zxid'], 16):#x}"
        assert 1_795_252_140_000 < row["time_ms"] < 1_795_252_360_000
    kinds = {row["kind"] for row in everything}
    assert kinds >= {"transition", "request", "partition", "broker", "controller", "alert", "gauges"}


def test_transitions_tell_the_story_of_the_recording(everything: list[dict]):
    transitions = [row for row in everything if row["kind"] == "transition"]
    created = next(row for row in transitions if (row["subject"], row.get("topic")) == ("partition", "a"))
    assert (created["from"], created["to"]) == ("NonExistentPartition", "NewPartition")
    unclean = [row for row in transitions if row.get("topic") == "c" and row.get("partition") == 3 and "leader" in row]
    assert [row["leader_epoch"] for row in unclean] == sorted(row["leader_epoch"] for row in unclean)
    assert all({"leader", "leader_epoch", "isr"} <= set(row) for row in unclean)
    replicas = [row for row in transitions if row["subject"] == "replica"]
    assert all("replica" in row and "broker" not in row for row in replicas)
    assert {row["controller_epoch"] for row in transitions} >= {1, 2, 3}


def test_gauges_are_written_when_they_change_with_kafkas_names(everything: list[dict]):
    gauges = [row for row in everything if row["kind"] == "gauges"]
    values = [{key: value for key, value in row.items() if key not in ("zxid", "time_ms")} for row in gauges]
    assert all(before != after for before, after in zip(values, values[1:], strict=False))
    assert (gauges[0]["ActiveControllerCount"], gauges[0]["GlobalTopicCount"]) == (0, 0)
    last = gauges[-1]
    assert {"OfflinePartitionsCount", "PreferredReplicaImbalanceCount", "TopicsToDeleteCount"} <= set(last)
    assert (last["ActiveControllerCount"], last["ActiveBrokerCount"], last["GlobalTopicCount"]) == (1, 3, 1)
    assert (last["GlobalPartitionCount"], sum(last["PartitionCount"].values())) == (9, 27)


def test_only_what_is_asked_for_is_printed(zk_data: Path, everything: list[dict]):
    *alerts, agreement = objects(invoke("--zk-data", zk_data, "--emit", "alerts", "--json"))
    assert alerts == [row for row in everything if row["kind"] == "alert"]
    assert agreement == everything[-1]


def test_until_ends_the_same_story_earlier(zk_data: Path, everything: list[dict]):
    transitions = [row for row in everything if row["kind"] == "transition"]
    middle = transitions[len(transitions) // 2]
    moment = datetime.fromtimestamp(middle["time_ms"] / 1000, timezone.utc).isoformat(timespec="milliseconds")
    for until in (middle["zxid"], middle["time_ms"], moment, moment.replace("+00:00", "Z")):
        *part, agreement = objects(invoke("--zk-data", zk_data, "--emit", "transitions", "--json", "--until", until))
        assert sum(agreement["writes"].values()) < sum(everything[-1]["writes"].values())
        assert part == transitions[: len(part)]
        assert middle in part
        assert part[-1]["time_ms"] < middle["time_ms"] + 1_000


def test_from_leaves_out_what_was_before(zk_data: Path, everything: list[dict]):
    transitions = [row for row in everything if row["kind"] == "transition"]
    start = transitions[len(transitions) // 2]["zxid"]
    *part, agreement = objects(invoke("--zk-data", zk_data, "--emit", "transitions", "--json", "--from", start))
    assert part == [row for row in transitions if int(row["zxid"], 16) >= int(start, 16)]
    before = objects(invoke("--zk-data", zk_data, "--json", "--until", f"{int(start, 16) - 1:#x}"))[-1]
    for verdict, count in everything[-1]["writes"].items():
        assert before["writes"][verdict] + agreement["writes"][verdict] == count


def test_the_last_object_says_how_far_it_agrees_with_the_controller(everything: list[dict]):
    last = everything[-1]
    assert (last["kind"], last["agreement"]) == ("agreement", 1)
    assert last["writes"] == {"expected": 109, "inferred": 22, "unexplained": 0}
    assert last["inferences"] == {"preferred-election": 20, "deletion-answered": 1, "shutdown-asked": 1}


@pytest.mark.parametrize(
    ("writes", "inferences", "line"),
    [
        (
            Writes(1180, 21, 2),
            {"shutdown-asked": 7, "preferred-election": 14},
            "1,203 writes of the controller: 1,180 as expected, 21 explained by inference (preferred election 14, "
            "shutdown asked 7), 2 unexplained: agreement 99.8 %",
        ),
        (
            Writes(9_999, 0, 1),  # never rounded up to 100 %
            {},
            "10,000 writes of the controller: 9,999 as expected, 0 explained by inference, "
            "1 unexplained: agreement 99.9 %",
        ),
        (
            Writes(1),
            {},
            "1 write of the controller: 1 as expected, 0 explained by inference, 0 unexplained: agreement 100.0 %",
        ),
        (Writes(), {}, "no writes of the controller, and so no agreement"),
    ],
)
def test_agreement_is_one_sentence(writes, inferences, line):
    assert Agreement(writes, inferences).line() == line


def test_what_no_znode_shows_can_be_set(zk_data: Path, everything: list[dict]):
    told = ["--broker-config", "min.insync.replicas=3", "--broker-config", "delete.topic.enable=false"]
    rows = objects(invoke("--zk-data", zk_data, "--emit", ALL, "--json", *told))
    gauges, without = ([row for row in printed if row["kind"] == "gauges"] for printed in (rows, everything))
    assert max(row["UnderMinIsrPartitionCount"] for row in gauges) > max(
        row["UnderMinIsrPartitionCount"] for row in without
    )
    assert max(row["TopicsToDeleteCount"] for row in without) > 0
    assert max(row["TopicsToDeleteCount"] for row in gauges) == 0


def test_moves_that_change_nothing_are_printed_on_request(zk_data: Path, everything: list[dict]):
    def idle(rows: list[dict]) -> list[dict]:
        return [row for row in rows if row["kind"] == "transition" and row["from"] == row["to"] and "leader" not in row]

    assert idle(everything) == []
    elected = [row for row in everything if row["kind"] == "transition" and row["from"] == row["to"]]
    assert elected
    assert idle(objects(invoke("--zk-data", zk_data, "--json", "--unchanged")))


def alert(rows: Rows, id_: str, at_ms: int, state: str = "open", **fields: object) -> AlertRow:
    return rows.alert(id_, state, time_ms=at_ms, since_ms=at_ms, **fields)


def test_alerts_of_a_group_are_one_incident_until_all_are_over(rows):
    incidents = Incidents()
    incidents.take(alert(rows, "crash", 0, group="broker 1", severity=Severity.WARN, cause="it crashed"))
    incidents.take(alert(rows, "offline", 1000, group="broker 1", cause="two are offline"))
    incidents.take(alert(rows, "moved", 1500, group="controller", severity=Severity.INFO))
    incidents.take(alert(rows, "crash", 2000, "resolved", group="broker 1", cause="over"))
    incidents.take(alert(rows, "offline", 3500, "resolved", group="broker 1", cause="over"))
    incidents.take(alert(rows, "crash", 9000, group="broker 1", severity=Severity.WARN, cause="again"))
    assert list(plain_lines(incidents.said())) == [
        "2 incidents:",
        "1970-01-01 00:00:00.000       3.5 s  page  PartitionsOffline: two are offline (and 1 more alert)",
        "1970-01-01 00:00:09.000    not over  warn  PartitionsOffline: again",
    ]


def test_an_incident_is_told_as_it_was_at_its_worst(rows):
    """A rack of two brokers is lost, and one returns before the other."""
    incidents = Incidents()
    for broker in (1, 2):
        incidents.take_broker(rows.broker(broker, rack="eu-1"))
        incidents.take_broker(rows.broker(broker, registered=False))
    offline = {"group": "broker 1"}
    incidents.take(alert(rows, "offline", 0, **offline, brokers=(1,), partitions=3, cause="three are offline"))
    incidents.take(alert(rows, "offline", 1000, **offline, brokers=(1, 2), partitions=9, cause="nine are offline"))
    incidents.take(alert(rows, "offline", 2000, **offline, brokers=(1, 2), partitions=1, cause="one is offline"))
    incidents.take(alert(rows, "offline", 3000, "resolved", **offline, brokers=(1, 2), cause="over"))
    assert list(plain_lines(incidents.said())) == [
        "1 incident:",
        "1970-01-01 00:00:00.000         3 s  page  PartitionsOffline: nine are offline (brokers 1 and 2, rack eu-1)",
    ]


def test_the_release_can_be_set(zk_data: Path, everything: list[dict]):
    rows = objects(invoke("--zk-data", zk_data, "--emit", ALL, "--json", "--kafka-version", "3.9"))
    assert rows == everything
    older = objects(invoke("--zk-data", zk_data, "--emit", ALL, "--json", "--kafka-version", "0.10"))
    assert older != everything


def test_lines_for_people_say_the_same(zk_data: Path, everything: list[dict]):
    result = invoke("--zk-data", zk_data, "--emit", ALL)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    (count,) = (number for number, line in enumerate(lines) if line.endswith(" incidents:"))
    assert count == len(everything) - 1  # the agreement
    incidents = int(lines[count].split()[0])
    assert lines[count + 1 + incidents].startswith(
        "131 writes of the controller: 109 as expected, 22 explained by inference (preferred "
    )
    assert "page  UncleanElection: " in "\n".join(lines[count:])
    assert "None" not in result.stdout
    assert "partition a-0: NonExistentPartition -> NewPartition" in result.stdout


def test_it_prints_while_it_reads_and_a_closed_pipe_is_no_mistake(zk_data: Path):
    command = [sys.executable, "-m", "cli", "replay", "--zk-data", str(zk_data), "--emit", ALL, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_a_person_at_a_terminal_sees_progress_and_the_rows_go_where_they_shall(zk_data: Path, everything: list[dict]):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "cli", "replay", "--zk-data", str(zk_data), "--emit", ALL, "--json"]
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, timeout=60, check=True, env=environment)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert [json.loads(line) for line in done.stdout.splitlines()] == everything
    assert "MB" in shown
    assert "transition" not in shown


def test_a_damaged_log_is_named_at_the_end(zk_data: Path, tmp_path: Path):
    content = (zk_data / "version-2" / "log.1").read_bytes()
    (tmp_path / "log.1").write_bytes(content[:20_000])
    result = invoke("--zk-data", tmp_path, "--json")
    assert objects(result)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"kontrast: {tmp_path / 'log.1'} cannot be read from byte ")


def test_a_request_is_one_object_and_one_line_that_names_some_of_its_partitions():
    led = {"leader": 1, "leader_epoch": 2, "isr": (1, 2), "replicas": (3, 1, 2)}
    states = (RequestedState("a", 0, **led, is_new=True), RequestedState("a", 1, **led))
    common = {"kind": "request", "zxid": "0x6d", "time_ms": STAMP["time_ms"], "controller_epoch": 1, "controller": 1}
    leader = Request(**STAMP, **EFFECT, controller=1, api="LeaderAndIsr", brokers=(2,), partition_states=states)
    fields = row_object(leader)
    assert fields == common | {
        "api": "LeaderAndIsr", "brokers": (2,), "cause": EFFECT["cause"],
        "partition_states": (
            {"topic": "a", "partition": 0, **led, "is_new": True}, {"topic": "a", "partition": 1, **led},
        ),
    }  # fmt: skip
    said = "leader 1 (epoch 2), isr 1,2, replicas 3,1,2"
    assert sentence(fields).endswith(f"LeaderAndIsr to 2: a-0 {said}, new; a-1 {said}")
    assert list(fields)[-1] == "cause"


@pytest.mark.parametrize(
    ("request_fields", "line"),
    [
        ({"api": "UpdateMetadata", "brokers": (1, 2)}, "UpdateMetadata to 1,2: brokers only"),
        ({"api": "UpdateMetadata", "brokers": (2,), "all_partitions": True}, "UpdateMetadata to 2: all partitions"),
        (
            {
                "api": "UpdateMetadata",
                "brokers": (2,),
                "part": 2,
                "parts": 3,
                "partition_states": tuple(RequestedState("a", n, -2, 0, (1,), (1,)) for n in range(10)),
            },
            "UpdateMetadata to 2 (part 2 of 3): "
            + "; ".join(f"a-{n} leader none (being deleted) (epoch 0), isr 1, replicas 1" for n in range(8))
            + "; 2 more",
        ),
        (
            {
                "api": "StopReplica",
                "brokers": (2,),
                "partition_states": (RequestedState("a", 0, leader_epoch=-2, delete_partition=True),),
            },
            "StopReplica to 2: a-0 delete",
        ),
        (
            {
                "api": "StopReplica",
                "brokers": (2,),
                "delete_partitions": True,
                "partition_states": (RequestedState("a", 0),),
            },
            "StopReplica delete to 2: a-0",
        ),
    ],
)
def test_what_a_request_is_about_is_said_in_its_line(request_fields, line):
    fields = row_object(Request(**STAMP, **EFFECT, controller=1, **request_fields))
    assert sentence(fields).endswith(line)


def test_a_replicas_broker_is_called_replica():
    fields = row_object(
        Transition(
            **STAMP, **EFFECT, subject="replica", from_state="OnlineReplica", to_state="OfflineReplica", topic="a",
            partition=0, broker=3,
        )
    )  # fmt: skip
    assert fields == {
        "kind": "transition", "zxid": "0x6d", "time_ms": STAMP["time_ms"], "controller_epoch": 1, "subject": "replica",
        "from": "OnlineReplica", "to": "OfflineReplica", "topic": "a", "partition": 0, "replica": 3,
        "cause": EFFECT["cause"],
    }  # fmt: skip
    assert sentence(fields) == (
        "2023-11-14 22:13:20.123      0x6d  transition  replica a-0 on broker 3: OnlineReplica -> OfflineReplica  "
        "(BrokerChange: broker 3 left)"
    )
