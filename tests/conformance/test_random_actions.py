"""The replica against recordings of random actions, with its remaining differences by name and count."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.agreement import account_of, as_far_as_told, moves_agreement, parted_by_epoch, requests_agreement
from tests.conformance.exceptions import GAUGES, PARTED, why
from tests.conformance.gauge_samples import compare_gauges
from tests.conformance.proof import NAMES, counted, page_with
from tests.conformance.recording import replay as replay_inferring

LIMITS = Path(__file__).parents[2] / "docs" / "explanation" / "what-a-replica-cannot-know.md"

# The rules were never fitted to these. Do not look up their differences to correct a rule, because then they count as
# seen. Make a new recording (`make record`) and use that.
UNSEEN = (
    "unseen39",
    "unseen39b",
    "unseen28",
    "unseen28b",
    "unseen10",
    "unseen11",
    "unseen22",
    "unseen24",
    "unseen35",
    "unseen35b",
    "unseen39c",
)
LEAST_SHARE = 0.985
LEAST_SHARE_OF_GAUGES = 0.92


@pytest.mark.parametrize("name", PARTED)
def test_random_actions_are_followed_but_for_what_is_known(name, recordings, report):
    recording, replay = recordings(name)
    real = recording.account()
    ours = as_far_as_told(account_of(replay.rows), real)
    assert moves_agreement(real, ours).real > 500  # an empty account would agree with anything
    _report(name, real, ours, report)
    assert parted_by_epoch(real, ours) == {epoch: parted for epoch, (_, parted) in PARTED[name].items()}


@pytest.mark.parametrize("name", GAUGES)
def test_gauges_at_quiet_moments_are_the_brokers_own_but_for_what_is_known(name, recordings, report):
    recording, replay = recordings(name)
    equal, compared, wrong = compare_gauges(recording, replay)
    report.append(f"{name:8} gauges {equal} equal of {compared} compared")
    assert compared > 300
    assert Counter(map(why, wrong)) == GAUGES[name]


@pytest.mark.parametrize("name", UNSEEN)
def test_what_no_rule_was_fitted_to_is_followed_too(name, recordings, report):
    recording, replay = recordings(name)
    real = recording.account()
    ours = as_far_as_told(account_of(replay.rows), real)
    assert moves_agreement(real, ours).real > 500
    moves, requests = _report(name, real, ours, report)
    assert moves >= LEAST_SHARE
    assert requests >= LEAST_SHARE
    equal, compared, _ = compare_gauges(recording, replay)
    report.append(f"{name:8} gauges {equal} equal of {compared} compared")
    assert equal >= LEAST_SHARE_OF_GAUGES * compared


# The znodes of these releases suffice to follow them as well as with a configured release.
TELLING = ("fuzz24a", "fuzz26a", "fuzz28d", "fuzz30a", "fuzz39b")


@pytest.mark.parametrize("name", TELLING)
def test_from_2_4_on_the_znodes_tell_enough_of_the_release(name, recordings):
    recording, told = recordings(name)
    real = recording.account()
    inferred = account_of(replay_inferring(recording.records()).rows)
    assert parted_by_epoch(real, inferred) == parted_by_epoch(real, account_of(told.rows))


def test_what_is_known_to_differ_is_explained_under_its_name():
    of_moves = {why for known in PARTED.values() for why, _ in known.values()}
    named = of_moves.union(*GAUGES.values())
    explained = re.findall(r"^\| \*([a-z ]+)\*: ", LIMITS.read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(named)


def test_the_page_of_what_cannot_be_known_says_how_much_that_is():
    known = [
        sum(counts)
        for counts in zip(*(parted for terms in PARTED.values() for _, parted in terms.values()), strict=True)
    ]
    rows = re.findall(
        r"^\| (?:transitions|requests) \| [\d,]+ \| (\d+) \| (\d+) \|$",
        LIMITS.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [int(count) for row in rows for count in row] == known


def test_the_page_shows_how_the_moves_of_every_recording_are_proved():
    assert list(counted()) == list(NAMES)
    text = LIMITS.read_text(encoding="utf-8")
    assert page_with(text, counted()) == text, "run `python -m tests.conformance.proof`"


def _report(name, real, ours, report) -> tuple[float, float]:
    moves, requests = moves_agreement(real, ours), requests_agreement(real, ours)
    report.append(f"{name:8} transitions {moves}   requests {requests}")
    return moves.share, requests.share
