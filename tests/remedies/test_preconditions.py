"""No advice harms: each advice in each case of `tests/cases` is right for the live brokers and the znodes there.

An advice starts no live broker, deletes /controller only where the next controller does no harm or after the mend, and
waits for a controller only if one acts.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping

import pytest
from kazoo.security import ACL

from controller.contract.ids import Zxid
from controller.restore.stored_context import new_context
from controller.rules.flaws_besides import Grant, flaws_besides
from controller.says.remedies.remedy import Advice
from controller.view.advice import advice_for, harm_of_failover
from controller.view.flawed_znodes import flawed_znodes, mends_before_failover
from controller.view.types import Header
from ingest.complete_read import CompleteRead
from ingest.observed.observations import Value
from ingest.observed.paths import is_recorded
from questions.everywhere.lint import Lint, told_by_check
from questions.explain.subject import Explain
from questions.gathering import Gathering
from questions.picture import Picture
from questions.whatif.may_restart import restartable
from tests.cases import deadly_znodes, znodes
from tests.cases.znodes import Case, Content
from tests.remedies.table import REMEDIES

CASES: Mapping[str, Case] = {**znodes.CASES, **deadly_znodes.CASES}
_STARTED = re.compile(r"[Ss]tart (?:broker|brokers) ((?:[0-9]+(?:, | and )?)+)|broker ([0-9]+) is down .start it")
_FAILS_OVER = re.compile(r"(?<!not )[Dd]elete /controller(?!_)")
_CURES = ("assign-topic-ids", "put-topic-id-back-and-fail-over")
_SESSION = 7


def pictures(name: str) -> Iterator[Picture]:
    """Yield a case as it is found, and without its controller."""
    case = CASES[name]
    yield _look(case)
    yield _look(case._replace(znodes={path: each for path, each in case.znodes.items() if path != "/controller"}))


def _look(case: Case) -> Picture:
    now_ms = time.time_ns() // 1_000_000
    raw = {} if "/cluster/id" in case.lacks else {"/cluster/id": b'{"version":"1","id":"x"}'}
    raw |= {path: _bytes(each) for path, each in case.znodes.items()}
    values = {
        path: Value(data, Zxid(at), Zxid(at), 0, _owner(path, case), now_ms, now_ms)
        for at, (path, data) in enumerate(raw.items(), start=1)
        if is_recorded(path)
    }
    grants = {path: [_grant(acl) for acl in acls] for path, acls in case.acls.items()}
    grants |= {path: [Grant("world", "anyone", 31)] for path in raw if path.startswith("/brokers/ids/")}
    read = CompleteRead(values, flaws=flaws_besides(raw, grants))
    return Gathering(new_context("c", chunk_count=4)).look(read.records("c"), read.written_ms)


def _bytes(content: Content) -> bytes | None:
    return content if content is None or isinstance(content, bytes) else json.dumps(content).encode()


def _owner(path: str, case: Case) -> int:
    is_ephemeral = path == "/controller" or path.startswith("/brokers/ids/")
    return _SESSION if is_ephemeral and path not in case.persistent else 0


def _grant(acl: ACL) -> Grant:
    return Grant(acl.id.scheme, acl.id.id.partition(":")[0], acl.perms)


def advice_of(picture: Picture) -> Iterator[str]:
    """Yield every advice of alerts and findings, and the sentences of `check`, `restartable` and `explain`."""
    yield from (row.action for row in picture.alerts)
    yield from (finding.mend for finding in Lint().ask(picture).findings)
    yield from told_by_check(picture)
    for broker in picture.header.brokers:
        yield from (reason.sentence for reason in restartable(picture, broker).reasons)
    topics = [name for name, topic in picture.context.topics if topic.exists and " " not in name]
    partitions = (f"{name}-{number}" for name in topics for number in picture.topic(name).partitions)
    for subject in ("controller", *topics, *partitions, *(f"broker {broker}" for broker in picture.header.brokers)):
        explained = Explain(subject).ask(picture)
        yield explained.headline
        yield from (fact.says for fact in explained.statements)


def assert_harmless(says: str, header: Header) -> None:
    """Check an advice against the cluster. The mend of a flaw may end with a failover."""
    started = {int(broker) for found in _STARTED.findall(says) for broker in re.findall("[0-9]+", " ".join(found))}
    assert not started & header.brokers.keys(), says
    for mend in (mends_before_failover(header), *(each.mend for each in flawed_znodes(header))):
        says = says.replace(mend.removesuffix("."), "")
    assert not (harm_of_failover(header) and _FAILS_OVER.search(says)), says
    assert header.acting or not re.search(r"\bWait for some seconds", says), says


@pytest.mark.parametrize("name", CASES)
def test_no_advice_in_a_case_harms(name):
    for picture in pictures(name):
        for says in advice_of(picture):
            if "no broker has that file" not in says and "FORMER" not in says:
                assert_harmless(says, picture.header)


@pytest.mark.parametrize("name", CASES)
def test_no_remedy_of_the_catalogue_fails_over_where_that_harms(name):
    for picture in pictures(name):
        release = picture.header.profile.release
        for remedy in (each for each in REMEDIES.values() if any(way.fits(release) for way in each.ways)):
            says = advice_for(Advice(remedies=(remedy,)), picture.header, tuple(picture.header.brokers))
            if remedy.name not in _CURES:
                assert_harmless(says, picture.header)


def test_the_property_finds_a_harmful_advice():
    header = next(pictures("state-of-texts")).header
    for harmful in ("Start broker 1.", "Delete /controller, so that a live broker becomes controller."):
        with pytest.raises(AssertionError):
            assert_harmless(harmful, header)
