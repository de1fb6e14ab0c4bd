"""Servers of an ensemble and left sessions, from texts of real servers of 3.4 to 3.9."""

from __future__ import annotations

import pytest

from controller.contract.forwarder_status import LeftSession
from ingest.zookeeper.ensemble import Member, left_sessions, named_servers, read_dump, read_members, servers_of
from ingest.zookeeper.four_letter_words import Server, milliseconds, number

LEADER = """SessionTracker dump:
Session Sets (2)/(2):
1 expire at Tue Nov 24 12:30:30 UTC 2026:
\t0x300017b6fb10000
1 expire at Tue Nov 24 12:30:42 UTC 2026:
\t0xb00017b6fb10001
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x300017b6fb10000:
\t/kafka/brokers/ids/1
\t/kafka/controller
0xb00017b6fb10001:
\t/kafka/brokers/ids/2
\t/brokers/ids/3
Connections dump:
Connections Sets (1)/(2):
2 expire at Tue Nov 24 12:30:35 UTC 2026:
\tip: /127.0.0.1:33928 sessionId: 0x300017b6fb10000
\tip: /127.0.0.1:33940 sessionId: 0x0
"""
FOLLOWER = """SessionTracker dump:
Global Sessions(2):
0x300017b6fb10000\t18000ms
0xb00017b6fb10001\t18000ms
ephemeral nodes dump:
Sessions with Ephemerals (1):
0xb00017b6fb10001:
\t/kafka/brokers/ids/2
Connections dump:
Connections Sets (1)/(1):
1 expire at Tue Nov 24 12:30:25 UTC 2026:
\tip: /127.0.0.1:32926 sessionId: 0x0
"""
OF_3_4 = """SessionTracker dump:
Session Sets (1):
1 expire at Tue Nov 24 12:30:30 UTC 2026:
\t0x300017b6fb10000
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x300017b6fb10000:
\t/kafka/brokers/ids/1
"""
AT_12_30_30 = 1_795_523_430.0


def left(*answers: str, now_seconds: float = AT_12_30_30) -> list[LeftSession]:
    return list(left_sessions([read_dump(answer) for answer in answers], "/kafka", now_seconds))


def test_the_owner_of_a_registration_without_a_connection_is_left():
    assert left(LEADER, FOLLOWER) == [LeftSession(2, 0xB00017B6FB10001, 12_000)]
    assert left(LEADER.replace("0xb00017b6fb10001", "0xff00017b6fb10001"))[0].session == 0xFF00017B6FB10001 - 2**64


@pytest.mark.parametrize("hours", [-8, 5.75])
def test_an_expiry_in_another_time_zone_is_as_far_away(hours):
    assert left(LEADER, now_seconds=AT_12_30_30 - hours * 3600)[0].expires_ms == 12_000


def test_an_expiry_is_unknown_without_the_leader():
    assert left(FOLLOWER) == [LeftSession(2, 0xB00017B6FB10001, -1)]
    assert left(LEADER.replace("Nov 24 12:30:42 UTC 2026", "Nov 99 12:30:42 UTC 2026"))[0].expires_ms == -1


def test_a_server_that_does_not_list_its_connections_leaves_all_open():
    assert left(OF_3_4) == left(LEADER, "") == []


@pytest.mark.parametrize(
    ("line", "member"),
    [
        ("server.1=zk1:2888:3888:participant;0.0.0.0:2181", Member("zk1", 2181, True)),
        ("server.2=zk2:2888:3888:observer;10.0.0.2:2182", Member("10.0.0.2", 2182, False)),
        ("server.3=zk3:2888:3888:participant;2181", Member("zk3", 2181, True)),
        ("server.4=zk4:2888:3888", Member("zk4", None, True)),
        ("server.5=[fd00::5]:2888:3888:participant;[::]:2181", Member("fd00::5", 2181, True)),
        ("server.6=zk6:2888:3888|zk6b:2888:3888:participant;2181", Member("zk6", 2181, True)),
        ("version=100000000", None),
        ("server.7=zk 7:2888:3888", None),
        ("server.8=zk8;rm:2888", None),
    ],
)
def test_a_line_of_the_configuration_names_a_member(line, member):
    assert read_members(f"{line}\nversion=0".encode()) == ([] if member is None else [member])


def test_without_a_configuration_the_address_alone_counts():
    named = named_servers("zk1.invalid:2181,[fd00::5]:2182")
    assert named == [Server("zk1.invalid", 2181), Server("fd00::5", 2182)]
    assert servers_of(named, read_members(None)) == named
    assert [str(server) for server in named] == ["zk1.invalid:2181", "[fd00::5]:2182"]


def test_a_server_is_asked_once_under_the_operators_name():
    named = named_servers("localhost:2181,127.0.0.1:2182")
    lines = [
        "server.1=127.0.0.1:2888:3888:participant;127.0.0.1:2181",
        "server.2=127.0.0.2:2888:3888:participant",
        "server.3=127.0.0.1:2889:3889:participant",
        "server.4=127.0.0.2:2889:3889:participant;2183",
    ]
    asked = servers_of(named, read_members("\n".join(lines).encode()))
    assert list(map(str, asked)) == ["localhost:2181", "127.0.0.1:2182", "127.0.0.2:2181", "127.0.0.2:2183"]


def test_numbers_that_do_not_fit_are_unknown():
    assert [number(text) for text in ("7", "", None, "x", str(2**63), "-5")] == [7, -1, -1, -1, -1, -1]
    assert number("0x10", 16) == 16
    assert [milliseconds(text) for text in ("2.25", "nan", "-3", None, "1e300")] == [2.25, -1, -1, -1, -1]
