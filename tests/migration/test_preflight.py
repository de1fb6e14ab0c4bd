"""`kontrast migration check` on trees in a real ZooKeeper, with exactly one finding for each fault."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner, Result
from kazoo.security import ACL, ANYONE_ID_UNSAFE, make_digest_acl

from cli.embedded.process import free_port
from cli.main import main
from cli.running import ExitCode
from migration.preflight import node_checks
from migration.preflight.check import nothing
from migration.preflight.report import CHECKS, LAST_RELEASES
from tests.migration.trees import FAULTS, PERSISTENT, Tree, built, clean

_OF_NODES = [check for check in CHECKS if check.find is nothing or check.find.__module__ == node_checks.__name__]
_OF_ZNODES = [check for check in CHECKS if check not in _OF_NODES]


def check(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["migration", "check", *map(str, arguments)])


def lines(done: Result, kind: str) -> list[dict]:
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == kind]


@pytest.mark.parametrize("release", [(), ("--release", "3.9.2"), ("--release", "3.5.2")], ids=" ".join)
def test_a_clean_cluster_gives_nothing(shared_chroot, release):
    with built(shared_chroot, clean()):
        done = check("--zookeeper", shared_chroot, "--json", "--controller-ids", "3001", *release)
    assert done.exit_code == ExitCode.OK, done.output
    assert lines(done, "finding") == lines(done, "advice") == []
    of_release = [check.name for check in _OF_NODES]
    if release[1:] == ("3.5.2",):
        of_release.remove("client-metrics-or-group")
    assert [line["check"] for line in lines(done, "not-checked")] == of_release


def test_every_row_but_the_acls_has_a_tree():
    assert {check.name for check in _OF_ZNODES} - {"zookeeper-acls"} == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_gives_its_row_and_nothing_else(shared_chroot, name):
    row = next(check for check in CHECKS if check.name == name)
    znode, spoil = FAULTS[name]
    tree: Tree = clean()
    spoil(tree)
    persistent = frozenset({"/controller"} if name in PERSISTENT else ())
    with built(shared_chroot, tree, persistent=persistent):
        ids = "2,3" if name == "controller-id" else "3001"
        done = check("--zookeeper", shared_chroot, "--json", "--controller-ids", ids)
    kind, code = ("advice", ExitCode.OK) if row.advises else ("finding", ExitCode.FAILED)
    assert done.exit_code == code, done.output
    (found,) = lines(done, "finding") + lines(done, "advice")
    assert (found["type"], found["check"], found["outcome"]) == (kind, name, row.outcome.value)
    assert (found["znode"], found["mend"], found["source"]) == (znode, row.mend, row.source)
    assert "hunter2" not in done.output


@pytest.mark.parametrize("row", [row for row in _OF_ZNODES if row.fixed_in], ids=lambda row: row.name)
def test_what_a_release_has_mended_is_found_before_it_only(shared_chroot, row):
    tree = clean()
    FAULTS[row.name][1](tree)
    first = ".".join(map(str, row.fixed_in))
    with built(shared_chroot, tree):
        found = {
            release: [line["check"] for line in lines(check(*_json(shared_chroot), "--release", release), "finding")]
            for release in ("3.5.1", first)
        }
    assert found == {"3.5.1": [row.name], first: []}


def _json(chroot: str) -> tuple[str, ...]:
    return "--zookeeper", chroot, "--json", "--controller-ids", "3001"


def test_to_a_person_the_worst_comes_first_with_what_to_do(shared_chroot):
    tree = clean()
    for name in ("stray-state", "quota-fraction", "absent-broker", "earlier-attempt", "no-leader", "acl-malformed"):
        FAULTS[name][1](tree)
    with built(shared_chroot, tree):
        done = check("--zookeeper", shared_chroot)
    assert done.exit_code == ExitCode.FAILED, done.output
    heads = re.findall(r"^(loses|kills|sticks|blocks|rollback)  (\S+):", done.stdout, re.MULTILINE)
    assert heads == [
        ("loses", "earlier-attempt"),
        ("kills", "acl-malformed"),
        ("sticks", "quota-fraction"),
        ("blocks", "absent-broker"),
        ("loses", "no-leader"),
        ("rollback", "stray-state"),
    ]
    printed = done.stdout.splitlines()
    assert "  /brokers/topics/a: broker 9 is not registered and is assigned 2 partitions of a: a-0, a-1" in printed
    do = "  do: Stop the controllers, delete /migration, and format the disks of all controllers. "
    assert f"{do}All three steps are necessary. You lose the KRaft controllers' metadata." in printed
    assert any(line.startswith("not checked: controller-id ") for line in printed)
    end = next(number for number, line in enumerate(printed) if line.startswith("the end of ZooKeeper, as of 20"))
    assert printed[end - 1].startswith("found: 2 loses, 1 kills, 1 sticks, 1 blocks, 1 rollback (")
    assert [line for line in printed[end + 1 :] if "source: https://" not in line] == [
        f"  {last.sentence}" for last in LAST_RELEASES
    ]


def test_many_znodes_of_a_row_are_counted(shared_chroot):
    tree = clean() | {f"/config/topics/gone-{number}": {"version": 1, "config": {}} for number in range(7)}
    with built(shared_chroot, tree):
        done = check("--zookeeper", shared_chroot)
    assert done.stdout.count("there is no topic gone-") == 5
    assert "  and 2 more: /config/topics/gone-5, /config/topics/gone-6\n" in done.stdout


def test_what_may_not_be_read_is_not_checked_and_never_clean(shared_chroot):
    with built(shared_chroot, clean()) as client:
        mine = [make_digest_acl("kafka", "hunter2", all=True)]
        client.set_acls("/config/users", mine)
        client.set_acls("/latest_producer_id_block", mine)
        done = check(*_json(shared_chroot))
    assert done.exit_code == ExitCode.FAILED
    forbidden = {line["check"]: line["reason"] for line in lines(done, "not-checked") if line["forbidden"]}
    users = "the ACL of /config/users denies read access to this session"
    of_users = ("quota-no-number", "scram-malformed", "quota-unknown", "quota-fraction")
    of_users += ("config-no-json", "config-no-text")
    producer_ids = users.replace("/config/users", "/latest_producer_id_block")
    assert forbidden == {**dict.fromkeys(of_users, users), "producer-ids-no-json": producer_ids}
    assert {(line["check"], line["znode"]) for line in lines(done, "finding")} == {
        ("zookeeper-acls", "/config/users"),
        ("zookeeper-acls", "/latest_producer_id_block"),
    }


def test_without_rights_to_a_single_znode_nothing_else_of_it_is_guessed(shared_chroot):
    with built(shared_chroot, clean()) as client:
        mine = [make_digest_acl("kafka", "hunter2", all=True)]
        client.set_acls("/brokers/ids/2", mine)
        client.set_acls("/brokers/topics/a", mine)
        client.set_acls("/brokers/topics/b/partitions/0/state", mine)
        done = check(*_json(shared_chroot))
    assert {line["check"] for line in lines(done, "finding")} == {"zookeeper-acls"}
    forbidden = {line["check"] for line in lines(done, "not-checked") if line["forbidden"]}
    assert {"absent-broker", "topic-no-json", "no-state", "stray-state", "orphan-config"} <= forbidden


def test_a_migration_under_way_is_said(shared_chroot):
    tree = clean()
    FAULTS["broker-in-zookeeper"][1](tree)
    with built(shared_chroot, tree, persistent=frozenset({"/controller"})):
        done = check(*_json(shared_chroot))
    assert done.exit_code == ExitCode.FAILED, done.output
    (finding,) = lines(done, "finding")
    assert (finding["check"], finding["detail"]) == ("broker-in-zookeeper", "broker 1 is still registered in ZooKeeper")
    assert "absent-broker" in {line["check"] for line in lines(done, "not-checked")}
    assert "the migration is under way and a KRaft controller leads" in done.stderr


def test_owners_of_znodes_are_named_and_their_passwords_are_not(shared_chroot):
    with built(shared_chroot, clean()) as client:
        anyone_reads = ACL(1, ANYONE_ID_UNSAFE)
        client.set_acls("/config/brokers/1", [anyone_reads, make_digest_acl("kafka", "hunter2", all=True)])
        done = check(*_json(shared_chroot))
    (found,) = lines(done, "finding")
    assert (found["check"], found["outcome"], found["znode"]) == ("zookeeper-acls", "blocks", "/config/brokers/1")
    assert re.fullmatch(r"digest:kafka may change 1 of \d+ znodes whose ACL was read", found["detail"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--zookeeper", "zk:2181", "--zk-data", "/tmp"), "give either"),
        (("--zookeeper", "zk:2181", "--chroot", "/kafka"), "--chroot belongs to --zk-data"),
        (("--zookeeper", "zk:2181", "--release", "newest"), "is no Kafka release"),
        (("--zookeeper", "zk:2181", "--controller-ids", "a,b"), "is no list of ids"),
        (("--zookeeper", "zk:2181", "--controller-ids", "2147483648"), "is no list of ids"),
        ((), "'zookeeper' is not set"),
    ],
)
def test_a_mistake_in_the_flags_is_one_sentence(arguments, sentence):
    done = check(*arguments)
    assert done.exit_code == ExitCode.USAGE
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_chroot_is_refused(shared_chroot):
    done = check("--zookeeper", shared_chroot)
    assert done.exit_code == ExitCode.USAGE
    assert "there is no Kafka cluster" in done.stderr


def test_a_zookeeper_that_is_away_is_said():
    done = check("--zookeeper", f"127.0.0.1:{free_port()}", "--connect-timeout-seconds", "1")
    assert done.exit_code == ExitCode.UNAVAILABLE
    assert "cannot be reached: 127.0.0.1:" in done.stderr
