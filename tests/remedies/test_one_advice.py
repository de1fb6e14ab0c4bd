"""Alerts, `lint`, `migration check` and runbooks give one advice for a finding, and each command exists once."""

from __future__ import annotations

import re

import pytest

from controller.says.remedies.remedy import Advice
from tests.remedies.situations import CASES, TRIED_ELSEWHERE
from tests.remedies.table import REMEDIES
from tests.remedies.texts import (
    FINDINGS,
    RUNBOOKS,
    is_of_a_remedy,
    remedies_in,
    texts,
    without_remedies,
    writing_commands,
)

TEXTS = texts()
_WRITES = re.compile(r"(?:[Dd]elete|[Ss]et) /[a-z]|kafka-(?:leader|preferred|reassign)[a-z-]*\.sh")


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_the_same_remedies_in_every_answer(finding):
    by_name = {name: remedies_in(TEXTS[name]) for name in FINDINGS[finding]}
    assert len(set(map(frozenset, by_name.values()))) == 1, by_name


@pytest.mark.parametrize("name", TEXTS)
def test_an_advice_changes_a_cluster_only_by_a_remedy(name):
    assert not _WRITES.search(without_remedies(TEXTS[name])), TEXTS[name]


@pytest.mark.parametrize("page", sorted(RUNBOOKS.iterdir()), ids=lambda page: page.stem)
def test_a_command_of_a_runbook_is_one_of_a_remedy(page):
    assert [command for command in writing_commands(page) if not is_of_a_remedy(command)] == []


def test_a_remedy_that_was_not_tried_has_no_command():
    with_commands = {name for name, remedy in REMEDIES.items() if any(way.commands for way in remedy.ways)}
    assert with_commands == {name for name, remedy in REMEDIES.items() if remedy.tried_on}


def test_each_remedy_of_the_catalogue_has_a_case():
    tried = {name for name, remedy in REMEDIES.items() if remedy.tried_on}
    assert tried == CASES.keys() | TRIED_ELSEWHERE.keys()
    assert all((RUNBOOKS.parents[1] / file).exists() for file in TRIED_ELSEWHERE.values())


def test_an_advice_that_loses_something_says_what():
    for remedy in REMEDIES.values():
        if remedy.loses:
            assert remedy.says().endswith(f" You lose {remedy.loses}.")


def test_a_remedy_has_a_way_in_every_release_that_tried_it():
    for remedy in REMEDIES.values():
        for release in remedy.tried_on:
            major, minor, *_ = map(int, release.split("."))
            assert remedy.way((major, minor)).says in Advice(remedies=(remedy.met,)).in_words((major, minor)) or (
                remedy.loses
            )
