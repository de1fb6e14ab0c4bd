"""Flaws beside the records: what is one, what is none, and what alerts and answers say of them."""

import json
import re

import msgspec
import pytest
from msgspec.structs import replace

from controller.contract.alert_row import Severity
from controller.contract.consequences import CONSEQUENCES, consequence_of, flaw_of
from controller.contract.flaw import Flaw, FoundFlaw
from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.problem import Problem
from controller.contract.records import RecordKind
from controller.contract.znode_table import Place, locate, place_of
from controller.model.context import LOOK
from controller.rules.flaws_besides import Grant, flaw_beside, flaws_besides
from controller.says.remedies.controllership import MOVE_CONTROLLER
from controller.says.remedies.remedy import Advice, Need, Task
from controller.view.advice import advice_for, harm_of_failover
from controller.view.flawed_znodes import flawed_znodes, harming_failovers, no_controller_because
from controller.view.held_back import held_back
from tests.controller.znode_history import ZnodeHistory, broker_znode, controller_znode, state_znode, topic_znode

STATE = "/brokers/topics/t/partitions/0/state"
BLOCK = "/latest_producer_id_block"
SCRAM = "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096"
WELL = {"/cluster/id": b"{}"}
LACKS = "finalizes group up to 3, which broker 1 does not know"


def raw(content: object) -> bytes:
    return json.dumps(content).encode()


def config(**values: object) -> bytes:
    return raw({"version": 1, "config": values})


def registration(version: int = 5, **fields: object) -> bytes:
    return raw({"version": version, "jmx_port": -1, "endpoints": ["PLAINTEXT://b:1"], **fields})


ONE = {"/brokers/ids/1": registration()}
ITS_SSL = registration(listener_security_protocol_map={"PLAINTEXT": "SSL"})


@pytest.mark.parametrize(
    ("path", "data", "flaw"),
    [
        ("/config/users/u", config(producer_byte_rate="10MB"), Flaw.NO_NUMBER),
        ("/config/users/u", config(producer_byte_rate="9223372036854775808"), Flaw.NO_NUMBER),
        ("/config/users/u", config(producer_byte_rate="+10000"), None),
        ("/config/users/u", config(producer_byte_rate="+10"), Flaw.NEAR_ZERO),
        ("/config/users/u/clients/<default>", config(consumer_byte_rate="0"), Flaw.NEAR_ZERO),
        ("/config/ips/<default>", config(connection_creation_rate="0"), Flaw.NEAR_ZERO),
        ("/config/users/u", config(request_percentage=" 1.5e1 "), None),
        ("/config/users/u", config(request_percentage="NaN"), None),
        ("/config/users/u", config(controller_mutation_rate=""), Flaw.NO_NUMBER),
        ("/config/users/u", config(unknown="x"), None),
        ("/config/users/u", b"x", None),
        ("/brokers/ids/two", b"{}", Flaw.WRONG_NAME),
        ("/isr_change_notification/left", None, Flaw.WRONG_NAME),
        ("/config/changes/config_change_x", None, Flaw.WRONG_NAME),
        ("/config/changes/config_change_0000000001", None, None),
        ("/config/brokers/k2.example", b"", Flaw.WRONG_NAME),
        ("/config/brokers/<default>", b"", None),
        ("/config/users/u", None, None),
        ("/config/users/u", config(request_percentage="0"), Flaw.NEAR_ZERO),
        ("/config/users/50%", None, Flaw.WRONG_NAME),
        ("/config/users/u/clients/a%zz", None, Flaw.WRONG_NAME),
        ("/config/clients/a%20b", None, None),
        ("/config/users/u", config(producer_byte_rate=1), Flaw.WRONG_TYPE),
        ("/config/users/u", config(**{"SCRAM-SHA-256": SCRAM}), None),
        ("/config/users/u", config(**{"SCRAM-SHA-256": SCRAM.replace("YQ==", "a", 1)}), Flaw.NO_CREDENTIAL),
        ("/config/users/u", config(**{"SCRAM-SHA-512": "salt"}), Flaw.NO_CREDENTIAL),
        ("/config/clients/c", config(**{"SCRAM-SHA-512": "salt"}), None),
        ("/config/ips/192.0.2.7", config(connection_creation_rate="5"), None),
        ("/config/ips/2001%3Adb8%3A%3A7", config(connection_creation_rate="5"), None),
        ("/config/ips/<default>", config(connection_creation_rate="5.0"), Flaw.NO_NUMBER),
        ("/config/ips/host", config(connection_creation_rate="5"), Flaw.NO_ADDRESS),
        ("/config/ips/host", config(), None),
        ("/kafka-acl/Topic/t", raw({"version": 1, "acls": [{"host": "*"}]}), Flaw.WRONG_TYPE),
        ("/kafka-acl/Topic/t", raw({"version": 1, "acls": []}), None),
        ("/kafka-acl/Topic/t", b"x", None),
        ("/kafka-acl/Topic", b"[1]", None),
        (BLOCK, raw({"broker": 1, "block_start": "0", "block_end": "999"}), None),
        (BLOCK, raw({"broker": 1, "block_start": "0", "block_end": "9223372036854775807"}), Flaw.WRONG_TYPE),
        (BLOCK, raw({"broker": 1, "block_start": "0", "block_end": "-2"}), Flaw.NO_NEXT),
        ("/config/users/u", config(**{"SCRAM-SHA-256": SCRAM.replace("4096", "4095")}), Flaw.WEAK_CREDENTIAL),
        (BLOCK, b"x", Flaw.UNPARSABLE),
        (BLOCK, b"", None),
        ("/elsewhere", b"x", None),
    ],
)
def test_a_flaw_is_what_a_broker_cannot_read(path, data, flaw):
    found = flaw_beside(path, data)
    assert (None if found is None else found.flaw) is flaw


@pytest.mark.parametrize(
    ("values", "path", "flaw"),
    [
        (ONE, "/cluster/id", Flaw.ABSENT),
        ({**WELL, **ONE}, "/cluster/id", None),
        ({**WELL, "/brokers/ids/1": b"x", "/brokers/ids/x": b"x"}, "/brokers/ids", None),
        ({**ONE, "/brokers/ids/2": registration(endpoints=["SSL://b:1"])}, "/brokers/ids", Flaw.NO_COMMON_LISTENER),
        ({**ONE, "/brokers/ids/2": ITS_SSL}, "/brokers/ids", Flaw.NO_COMMON_PROTOCOL),
        ({"/controller": b"x"}, "/controller_epoch", Flaw.ABSENT),
        ({**ONE, "/brokers/ids/2": registration()}, "/brokers/ids/2", Flaw.SAME_ENDPOINT),
        ({**WELL, BLOCK: b"x", "/feature": raw({"version": 2, "status": 1, "features": {}})}, BLOCK, Flaw.NO_NEXT),
        ({**WELL, BLOCK: b"x", "/feature": b"x"}, BLOCK, Flaw.UNPARSABLE),
        ({"/cluster/id": raw({"version": "1", "id": ""})}, "/cluster/id", Flaw.WRONG_TYPE),
    ],
)
def test_several_znodes_have_a_flaw_together(values, path, flaw):
    found = flaws_besides(values, {}).get(path)
    assert (None if found is None else found.flaw) is flaw


@pytest.mark.parametrize(
    ("status", "supported", "version", "details"),
    [
        (1, {}, 5, LACKS),
        (1, {"group": {"min_version": 1, "max_version": 2}}, 5, LACKS),
        (1, {"group": {"min_version": 1, "max_version": 3}}, 5, None),
        (0, {}, 5, None),
        (1, {}, 4, None),
    ],
)
def test_a_feature_that_a_broker_lacks_is_a_flaw(status, supported, version, details):
    levels = {"group": {"min_version_level": 1, "max_version_level": 3}}
    feature = raw({"version": 1, "status": status, "features": levels})
    broker = registration(version, features=supported)
    found = flaws_besides({**WELL, "/feature": feature, "/brokers/ids/1": broker}, {}).get("/feature")
    assert (None if found is None else found.details) == details


def test_a_hidden_id_is_not_absent():
    assert flaws_besides({"/brokers/ids/1": registration()}, {}, hides={"/cluster/id"}) == {}


@pytest.mark.parametrize(
    ("epoch", "registered", "is_locked"),
    [
        ([Grant("digest", "kafka", 31), Grant("world", "anyone", 1)], [Grant("world", "anyone", 31)], True),
        ([Grant("digest", "kafka", 31)], [Grant("digest", "kafka", 31), Grant("world", "anyone", 1)], False),
        ([Grant("world", "anyone", 31)], [Grant("world", "anyone", 31)], False),
        ([Grant("digest", "kafka", 31)], None, False),
    ],
)
def test_a_znode_is_locked_if_no_broker_shows_its_login(epoch, registered, is_locked):
    grants = {"/controller_epoch": epoch} | ({} if registered is None else {"/brokers/ids/1": registered})
    found = flaws_besides(WELL, grants)
    assert ("/controller_epoch" in found) is is_locked
    assert all(
        flaw.details == "may be changed by digest:kafka alone, and brokers show no such login"
        for flaw in found.values()
    )


def test_each_path_has_its_place_and_only_recorded_ones_are_located():
    places = {"/": Place.CHROOT, "/brokers/ids": Place.REGISTRATIONS, BLOCK: Place.PRODUCER_IDS}
    assert {path: place_of(path) for path in places} == places
    assert place_of("/kafka-acl-extended/prefixed/Topic/t") is Place.ACL
    assert (place_of("/feature"), place_of("/elsewhere")) == (Place.FEATURE, Place.OTHER)
    assert locate("/config/users/u").place is Place.OTHER
    assert flaw_of("/config/users/u", b"x") is Flaw.UNPARSABLE


def test_every_flaw_of_the_table_has_a_predicate():
    flaws = {flaw for rows in CONSEQUENCES.values() for each in rows for flaw in each.flaws}
    assert all(flaw.predicate.startswith(("is ", "has ")) for flaw in flaws)


def a_cluster() -> ZnodeHistory:
    return ZnodeHistory(release=(3, 9)).start(1, 2, controller=1, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})


def told(history: ZnodeHistory, flaws: dict[str, FoundFlaw] | None) -> ZnodeHistory:
    history.now_ms += 60_000
    status = ForwarderStatus("connected", "persistent", flaws=flaws)
    history.send(RecordKind.HEARTBEAT, zxid=history.zxid, data=msgspec.json.encode(status).decode())
    return history


QUOTA = FoundFlaw(Flaw.NO_NUMBER, "has producer_byte_rate=10MB, which is no whole number")


def test_a_flaw_beside_the_records_is_an_alert_until_a_look_finds_none():
    history = told(a_cluster(), {"/config/users/alice": QUOTA, "/config/users/bob": QUOTA})
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "StartWillFail")
    assert alert.severity is Severity.WARN
    assert alert.cause == (
        "brokers fail at their next start: /config/users/alice has producer_byte_rate=10MB, which is no whole number: "
        "every broker reads it at its start and ends and 1 more znode"
    )
    assert alert.action.startswith("Write the number again")
    told(history, None)
    assert "StartWillFail" in {row.alert for row in history.open_alerts().values()}
    told(history, {})
    assert "StartWillFail" not in {row.alert for row in history.open_alerts().values()}


def test_a_flaw_that_ends_running_brokers_pages():
    history = told(a_cluster(), {"/feature": FoundFlaw(Flaw.INCOMPATIBLE, "finalizes x up to 3")})
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "StartWillFail")
    assert alert.severity is Severity.PAGE
    assert alert.cause.startswith("brokers end, the running ones too: /feature finalizes x up to 3: ")


def test_another_identity_pages_and_the_former_ends_the_page():
    history = a_cluster()
    history.write("/cluster/id", {"version": "1", "id": "first"})
    history.write("/cluster/id", {"version": "1", "id": "second"})
    history.heartbeat()
    assert (history.context.header.cluster_id, history.context.header.flawed) == (
        "first",
        {"/cluster/id": Flaw.REPLACED},
    )
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "StartWillFail")
    assert alert.severity is Severity.PAGE
    history.write("/cluster/id", {"version": "1", "id": "first"})
    history.heartbeat()
    assert "StartWillFail" not in {row.alert for row in history.open_alerts().values()}
    history.delete("/cluster/id")
    assert history.context.header.flawed == {"/cluster/id": Flaw.ABSENT}


def test_no_failover_is_advised_before_the_mend_of_an_unreadable_state():
    history = a_cluster()
    fails_over = Advice(remedies=(MOVE_CONTROLLER,))
    assert advice_for(fails_over, history.context.header) == MOVE_CONTROLLER.says()
    history.write(STATE, {"leader": 1})
    header = history.context.header
    assert harm_of_failover(header) == f"the next controller fails at {STATE}"
    said = advice_for(fails_over, header)
    assert said.startswith(f"Do not delete /controller yet: the next controller fails at {STATE}. Do not restart")
    assert said.endswith("leader-epoch-checkpoint. Then delete /controller.")
    told(history, {"/controller_epoch": FoundFlaw(Flaw.LOCKED, "may be changed by x alone")})
    state, _ = sorted(flawed_znodes(history.context.header))
    assert state.mend.endswith("leader-epoch-checkpoint. Delete /controller after the mend of /controller_epoch.")
    assert advice_for(fails_over, history.context.header).endswith("restart one. Then delete /controller.")
    assert len(harming_failovers(history.context.header)) == 2


def test_a_lost_state_is_written_back_before_a_failover():
    history = a_cluster()
    history.topic("new", {0: [1, 2]})
    history.heartbeat(11_000)
    assert harming_failovers(history.context.header) == ()  # the controller owes the state of a new partition
    history.delete(STATE)
    history.heartbeat(6_000)
    (lost,) = harming_failovers(history.context.header)
    assert (lost.path, lost.flaw) == (STATE, Flaw.ABSENT)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "CreationDue")
    assert alert.cause.endswith(
        "Brokers ignore the new state of an old partition, because they know a higher leader epoch"
    )
    assert re.search("Do not delete /controller yet.* Write the state back .* Then delete /controller", alert.action)
    one_look = history.context.header.copy()
    one_look.feed = replace(one_look.feed, session=LOOK)
    assert harming_failovers(one_look) == ()  # it may be new
    history.controller_dies(1)
    assert harming_failovers(history.context.header) == ()


@pytest.mark.parametrize(("own", "is_told"), [("true", True), ("false", False)])
def test_the_topics_own_setting_tells_of_the_unclean_election_to_come(own, is_told):
    history = ZnodeHistory().start(1, 2, 3, controller=3, topics={"t": {0: ([1, 2], 1, 1, [1])}})
    history.write("/config/topics/t", {"version": 1, "config": {"unclean.leader.election.enable": own}})
    history.heartbeat(61_000)
    history.heartbeat(1_000)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "PartitionsUnderReplicated")
    said = "Its loss loses records by an unclean election. Set unclean.leader.election.enable=false first"
    assert (said in alert.cause) is is_told
    for broker in (2, 1):
        history.broker_leaves(broker)
        history.heartbeat(61_000)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "PartitionsOffline")
    said = "A replica out of sync may be elected before, as unclean elections are allowed, and records are lost"
    assert (f"until broker 1 returns. {said}. Set" in alert.cause) is is_told


def test_a_persistent_controller_is_deleted_although_it_stops_elections():
    history = a_cluster()
    history.write("/controller", b"x")
    assert harming_failovers(history.context.header) == ()
    because = no_controller_because(history.context.header)
    assert because is not None
    assert because.path == "/controller"


def test_two_topics_of_one_id_let_no_failover_be_advised():
    header = a_cluster().context.header.copy()
    header.term.duplicate_topic_ids = (("id", "t", "u"),)
    assert harm_of_failover(header) == "the next controller fails at /brokers/topics/u"


def test_an_absent_brokers_step_is_for_absent_brokers():
    header = a_cluster().context.header
    steps = Advice(steps=tuple(Task(f"{need.name}.", (need,)) for need in Need))
    assert advice_for(steps, header, (1, 2)) == "CONTROLLER_ACTS. BROKERS_LIVE."
    assert advice_for(steps, header, (1, 3)) == "CONTROLLER_ACTS. BROKERS_AWAY."
    assert advice_for(steps, header) == "CONTROLLER_ACTS."


def test_a_known_reason_holds_replicas_back():
    history = a_cluster()
    assert held_back((2,), history.context.header) == ""
    history.write("/config/brokers/2", {"version": 1, "config": {"follower.replication.throttled.rate": "1"}})
    assert held_back((2,), history.context.header).startswith(
        "follower.replication.throttled.rate=1 of /config/brokers/2 holds back the replicas"
    )
    assert held_back((1,), history.context.header) == ""
    told(history, {"/brokers/ids": FoundFlaw(Flaw.NO_COMMON_LISTENER, "has none")})
    assert held_back((1,), history.context.header).startswith("/brokers/ids has none: every broker that becomes")


def test_a_state_that_was_never_read_is_not_absent():
    znodes = {"/brokers/topics/t": {"version": 3, "partitions": {"0": [1, 2]}}, STATE: b"x"}
    history = a_cluster()
    history.delete(STATE)
    history.snapshot(*znodes.items())
    partition = history.context.topics["t"].partitions[0]
    assert (partition.unreadable, partition.problem) == (True, Problem.STATE_UNREADABLE)
    assert "CreationDue" not in {row.alert for row in history.open_alerts().values()}
    history.delete(STATE)
    assert not history.context.topics["t"].partitions[0].unreadable


def test_the_same_flaw_has_one_consequence_by_release():
    absent = [consequence_of("/cluster/id", Flaw.ABSENT, release) for release in ((2, 3), (2, 4))]
    assert [each is not None and each.stops_start for each in absent] == [False, True]
    empty = [consequence_of(STATE, Flaw.EMPTY, release) for release in ((2, 0), (2, 1))]
    assert [each is not None and each.stops_controllers for each in empty] == [False, True]
    assert all(each is not None and each.harms_failover for each in empty)


def test_an_empty_isr_with_all_replicas_live_starts_no_broker():
    history = a_cluster()
    history.state("t", 0, -1, 5, [])
    history.heartbeat(6_000)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "PartitionsOffline")
    assert alert.action.endswith("You lose the records that only in-sync replicas have.")
    assert not re.search("[Ss]tart|[Bb]ring", alert.action)


def test_an_unreadable_registration_is_of_a_live_broker():
    history = ZnodeHistory(release=(3, 9))
    history.snapshot(
        ("/controller", controller_znode(1)),
        ("/controller_epoch", b"1"),
        ("/brokers/ids/1", broker_znode(1)),
        ("/brokers/ids/2", b"x"),
        ("/brokers/topics/t", topic_znode({0: [1, 2]})),
        (STATE, state_znode(1, 0, [1, 2], 1)),
    )
    history.heartbeat(61_000)
    header = history.context.header
    assert (set(header.brokers), header.flawed) == ({1, 2}, {"/brokers/ids/2": Flaw.UNPARSABLE})
    assert {row.alert for row in history.open_alerts().values()} == {"ZnodeRefused", "StartWillFail"}
    history.write("/brokers/ids/1", b"x")
    assert history.context.header.brokers[1].endpoints == header.brokers[1].endpoints
    assert place_of("/brokers/ids/two") is Place.BROKER


def test_a_partition_without_replicas_is_assigned_some():
    history = a_cluster()
    history.topic("e", {0: []})
    history.heartbeat(61_000)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "PartitionsOffline")
    assert alert.action == "Assign brokers to the partition in the topic's znode, or take it out of there."


@pytest.mark.parametrize(
    ("release", "step"), [((1, 1), "Before 1.0 delete.topic.enable"), ((2, 8), "The log of a live")]
)
def test_an_old_deletion_names_the_setting_where_the_release_may_not_delete(release, step):
    history = ZnodeHistory(release=release).start(1, 2, controller=1, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    history.delete_topic("t")
    history.heartbeat(301_000)
    (alert,) = (row for row in history.open_alerts().values() if row.alert == "DeletionStuck")
    assert alert.action.startswith(step)
    assert ("does nothing" in alert.expected) == (release < (2, 0))


def test_a_leader_of_an_older_release_does_not_cap_the_least_in_sync_replicas():
    history = ZnodeHistory(release=(3, 9))
    least = {"version": 1, "config": {"min.insync.replicas": "3"}}
    history.snapshot(
        ("/controller", controller_znode(2)),
        ("/controller_epoch", b"1"),
        ("/brokers/ids/1", {**broker_znode(1), "version": 4}),
        ("/brokers/ids/2", {**broker_znode(2), "version": 5}),
        ("/brokers/topics/t", topic_znode({0: [1, 2], 1: [2, 1]})),
        ("/config/topics/t", least),
        (STATE, state_znode(1, 0, [1, 2], 1)),
        (STATE.replace("/0/", "/1/"), state_znode(2, 0, [2, 1], 1)),
    )
    problems = [history.row("t", number).problem for number in (0, 1)]
    assert problems == [Problem.UNDER_MIN_ISR.value, None]
