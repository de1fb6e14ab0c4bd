"""Every case in a real ZooKeeper, asked through the commands. Expected are the right answers, never a wrong advice."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient

from cli.embedded.zookeeper import ZooKeeper
from cli.main import main
from tests.cases import deadly_znodes, znodes
from tests.cases.files import ACCEPTED, REFUSED
from tests.cases.znodes import Answer, Case

pytestmark = pytest.mark.xdist_group("cases")  # one process, so that each case is written once


_NO_OUTAGE = ("Start broker", "is down", "never seen")

ANSWERS: dict[str, tuple[Answer, ...]] = {
    "all-replicas-unknown": (
        Answer("check", 1, ("brokers 11, 12, 13, 14 and 15 .*never registered here",), _NO_OUTAGE),
        Answer("explain bad", 1, ("waits for", "11", "no broker .* ever registered|never registered")),
        Answer("restartable --broker 1", 1, ("broker 11 has never registered here",), ("is down",)),
    ),
    "duplicate-replicas": (
        Answer("lint", 1, (r"replica-listed-twice: t-0 \[1,2,1\], t-1 \[2,2\]",)),
        Answer("explain t-0", 1, (r"broker 1 twice", "2 copies, not 3")),
        Answer("explain t-1", 1, (r"broker 2 twice", "1 copy, not 2")),
        Answer("restartable --broker 2", 1, ("1 partition would be offline",)),
    ),
    "empty-cluster": (Answer("check", 0, ("0 topics",), ("all led and in sync",)),),
    "empty-topic-znode": (
        Answer("check", 1, ("/brokers/topics/lost", "assignment")),
        Answer("explain lost", 1, ("partition.metadata",), ("deleteall", "stopped half-way")),
        Answer("lint", 1, ("/brokers/topics/lost",), ("The topic is gone", "removed the topic by hand")),
    ),
    "epoch-newline": (
        Answer("check", 1, ("/controller_epoch", "no broker can be elected|no controller can be elected")),
        Answer("restartable --broker 1", 1, ("/controller_epoch",)),
    ),
    "hidden-by-acl": (
        Answer("check", 3, ("cluster: not known", "/brokers/topics/hidden"), ("cluster: well",)),
        Answer("restartable --broker 1", 3, ("/brokers/topics/hidden",)),
    ),
    "isr-only-outside": (
        Answer("check", 1, ("No in-sync broker is assigned", "assignment"), ("until broker 2 returns", "log director")),
        Answer(
            "explain t-0", 1, ("assign",), ("when broker 2 returns", "stays offline until broker 2 returns", "log dir")
        ),
        Answer("whatif --restore 2", 0, (r"1 offline \(1 now\)",)),
    ),
    "isr-outside-replicas": (Answer("lint", 1, (r"leader-or-isr-not-assigned: t-0 \[4\]", "assignment")),),
    "leader-alone": (
        Answer("check --long", 1, ("broker 2 .*leads all 4", "leader"), ("brokers 1, 3 and 4 lag behind",)),
        Answer("explain events-0", 1, ("broker 2",)),
        Answer("restartable --broker 2", 1, ("4 partitions would be offline",)),
    ),
    "registrations-of-all-releases": (
        Answer("check", 0, ("5 brokers",)),
        Answer("explain broker 1", 0, ("PLAINTEXT://old8.example:9092",)),
        Answer("explain broker 2", 0, ("SSL://old9.example:9093",)),
        Answer("explain broker 3", 0, ("PLAINTEXT://old10.example:9092",)),
        Answer("explain broker 4", 0, ("SASL_SSL://192.0.2.7:9092", "SASL_PLAINTEXT://192.0.2.7:9093")),
        Answer("explain broker 5", 0, ("INSIDE://c4458563815b:9092", re.escape("OUT://[2001:db8::7]:9094"))),
    ),
    "names-collide": (
        Answer("explain a.b", 0, ("topic a.b: the only partition is led and in sync",), ("a_b",)),
        Answer("explain a_b", 1, ("a_b-0",), (r"a\.b",)),
        Answer("explain a.b-0", 0, ("partition a.b-0",)),
        Answer("explain a.b-0 --topic", 0, ("topic a.b-0",)),
        Answer("explain a_b-0", 1, ("partition a_b-0",), (r"a\.b",)),
    ),
    "null-znodes": (
        Answer("check", 1, ("/feature", "start"), ("output `refused`",)),
        Answer("restartable --broker 1", 1, ("/feature",)),
        Answer("migration check", 1, ("/migration",)),
    ),
    "null-controller": (
        Answer("check", 1, ("/controller", "[Dd]elete"), ("Any live broker should create /controller",)),
        Answer("explain controller", 1, ("[Dd]elete",), ("Any live broker should create /controller",)),
    ),
    "old-leader-not-minus-one": (
        Answer("check", 1, ("until broker 3 returns",)),
        Answer("explain t-0", 1, ("broker 3",)),
    ),
    "partly-deleted": (
        Answer("check", 1, (), ("offline",)),
        Answer("explain gone", 1, ("being deleted", r"waits (for|until) broker 3"), ("offline",)),
    ),
    "persistent-broker": (
        Answer("check", 1, ("/brokers/ids/3", "no session", "[Dd]elete"), ("Keep broker 3 up",)),
        Answer("explain broker 3", 1, ("no session", "[Dd]elete"), ("is live", "session 0x0")),
        Answer("explain t-1", 1, (), ("led by broker 3",)),
        Answer("restartable --broker 1", 1, ("broker 3",)),
    ),
    "reassign-empty": (
        Answer("check", 1, ("InvalidReassignment", "[Dd]elete /admin/reassign_partitions, then /controller")),
    ),
    "reassign-malformed": (Answer("check", 1, ("/admin/reassign_partitions", "not JSON")),),
    "reassign-unknown-broker": (
        Answer("check", 1, ("broker 9 has never registered here", "typing error in the reassignment"), _NO_OUTAGE),
        Answer("explain broker 9", 1, ("never registered here", "typing error"), ("is down",)),
        Answer("explain t-0", 1, ("never registered here",), ("never seen",)),
        Answer("restartable --broker 1", 1, ("never registered here", "--accept-absent 9"), ("broker 9 is down",)),
        Answer("restartable --broker 1 --accept-absent 9", 0),
    ),
    "throttle-minus-one": (
        Answer(
            "lint", 1, ("follower.replication.throttled.replicas", "message.timestamp.type", "cleanup.policy", "start")
        ),
        Answer("check", 1, ("follower.replication.throttled.replicas|settings",)),
        Answer("restartable --broker 1", 1, ("fail.* start", r"topic t|\bt\b"), ()),
        Answer("whatif --rolling", 1, ("start",)),
        Answer("explain t", 1, ("follower.replication.throttled.replicas",)),
    ),
    "topic-id-overwritten": (
        Answer("lint", 1, ("clicks", "partition.metadata"), ("A controller failover assigns their ids",)),
        Answer(
            "check",
            1,
            ("partition.metadata|old id",),
            ("A controller failover assigns their ids", "Move the controller"),
        ),
    ),
    "well-with-four-brokers": (
        Answer("check", 0, ("4 brokers", "all led and in sync")),
        Answer("lint", 0),
        Answer("place orders --from-cluster --drain 9", 2, ("broker 9",)),
        Answer("place orders --brokers 1,9", 2, ("broker 9",)),
        Answer("whatif --restore 9", 2, ("broker 9",)),
        Answer("whatif --lose-broker 9", 2, ("broker 9",)),
        Answer("whatif --lose-rack eu", 2, ("rack",)),
        Answer("restartable --broker 9", 2, ("broker 9",)),
        Answer("restartable --broker 1 --accept-absent 9", 2, ("broker 9",)),
        Answer("restartable --broker 1 --accept-topic order", 2, ("order",)),
        Answer("explain broker 9", 2, ("broker 9",)),
        Answer("explain order-0", 2, ("Did you mean orders-0",)),
        Answer("explain orders-9", 2, ("orders-9",)),
    ),
}

CASES: Mapping[str, Case] = {**znodes.CASES, **deadly_znodes.CASES}
ANSWERS = {**ANSWERS, **deadly_znodes.ANSWERS}

ASKED = [
    pytest.param(name, answer, id=f"{name}: {answer.command}")
    for name, answers in ANSWERS.items()
    for answer in answers
]


@pytest.fixture(scope="module")
def sessions() -> Iterator[list[KazooClient]]:
    """Keep the sessions that own the brokers' znodes."""
    clients: list[KazooClient] = []
    yield clients
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def address(shared_zookeeper: str, sessions: list[KazooClient], written: dict[str, tuple[str, float]]):
    """Return a function that writes a case once, and returns HOST:PORT/CHROOT."""

    def of(name: str) -> str:
        if not sessions:
            client = KazooClient(shared_zookeeper)
            client.start(timeout=30)
            sessions.append(client)
        if name not in written:
            patient = [other for other, case in CASES.items() if case.patience_seconds and other not in written]
            for each in (name, *patient):
                chroot = f"/case-{each}-{uuid4().hex[:8]}"
                CASES[each].write(sessions[0], chroot)
                written[each] = shared_zookeeper + chroot, time.monotonic()
        at, since = written[name]
        time.sleep(max(0.0, CASES[name].patience_seconds - (time.monotonic() - since)))
        return at

    return of


@pytest.fixture(scope="module")
def written() -> dict[str, tuple[str, float]]:
    """Return the addresses of written cases, each with the time when it was written."""
    return {}


def ask(command: str, address: str) -> tuple[int, str]:
    """Return the exit code, and all that the command prints, with single spaces."""
    result = CliRunner().invoke(main, [*command.split(), "--zookeeper", address])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize(("name", "expected"), ASKED)
def test_a_case_has_its_right_answer(name, expected, address):
    exit_code, said = ask(expected.command, address(name))
    for pattern in expected.has:
        assert re.search(pattern, said), f"{expected.command} lacks {pattern!r}: {said}"
    for pattern in expected.lacks:
        assert not re.search(pattern, said), f"{expected.command} has {pattern!r}: {said}"
    assert exit_code == expected.exit_code, said


def test_servers_that_are_no_ensemble_are_not_one_cluster(address, shared_zookeeper, tmp_path):
    first = address("well-with-four-brokers")
    with ZooKeeper(tmp_path / "second") as second:
        client = KazooClient(second.connect_string)
        client.start(timeout=30)
        chroot = first.removeprefix(shared_zookeeper)
        CASES["well-with-four-brokers"].write(client, chroot)
        both = f"{shared_zookeeper},{second.connect_string}{chroot}"
        asked = (
            "check",
            "lint",
            "explain orders-0",
            "explain controller",
            "restartable --broker 1",
            "whatif --rolling",
        )
        for command in (*asked, "migration check --release 3.9.2"):
            exit_code, said = ask(command, both)
            assert re.match(r"kontrast: the named ZooKeeper servers are not one ensemble .*is standalone and", said), (
                said
            )
            assert exit_code == 3
        client.stop()
        client.close()


def test_a_broker_that_registered_in_another_chroot_is_told(tmp_path):
    with ZooKeeper(tmp_path) as own:
        client = KazooClient(own.connect_string)
        client.start(timeout=30)
        Case(znodes.WELL_IN_3_9).write(client, "/kafka")
        strays = {"/kafak": (6, 7), "/one": (4,), "/new": (8, 9, 10), "/kafka2": (11,), "/same": (1,), "": (5,)}
        for chroot, ids in strays.items():
            Case(znodes.brokers(*ids)).write(client, chroot)
        exit_code, said = ask("lint", f"{own.connect_string}/kafka")
        client.stop()
        client.close()
    assert exit_code == 1
    for broker, chroot in (("5", "/"), ("6 and 7", "/kafak"), ("4", "/one")):
        assert f"broker {broker}, registered in {chroot} of" in said, said
    assert not re.search("registered in /(new|kafka2|same)", said), "clusters of their own"


def test_every_case_is_asked():
    assert ANSWERS.keys() == CASES.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_reassignment_of_the_cluster_is_refused(name, address, tmp_path):
    content, reason = REFUSED[name]
    file = tmp_path / "reassignment"
    file.write_text(content)
    exit_code, said = ask(f"whatif --reassign {file}", address("well-with-four-brokers"))
    assert exit_code == 2, said
    assert re.search(reason, said), said


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_reassignment_is_accepted_in_each_form(name, address, tmp_path):
    file = tmp_path / "reassignment"
    file.write_text(ACCEPTED[name])
    exit_code, said = ask(f"whatif --reassign {file}", address("well-with-four-brokers"))
    assert exit_code == 0, said
