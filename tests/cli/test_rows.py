"""Answers that are tables, as YAML and as CSV."""

from __future__ import annotations

import csv
import json

import pytest
import yaml
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.outputs import encode_row
from transport.journal import JournalWriter

COMMANDS = (["alerts"], ["lint"], ["maintenance", "list"], ["show", "alerts"], ["snapshot"], ["status"], ["topics"])


def kontrast(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def derived(tmp_path, rows):
    found = [
        rows.alert("page", cause='it "crashed", twice', examples=("a-0", "a-1")),
        rows.alert("warn", cause="=HYPERLINK\x1b[2J\nü", action="start it"),
    ]
    with JournalWriter(tmp_path / "derived" / "alerts", batches=True) as journal:
        journal.append_batch(1, list(map(encode_row, found)))
    return f"journal:{tmp_path / 'derived'}"


def shown(derived: str, form: str) -> str:
    done = kontrast("show", "alerts", "--from", derived, "--output", form)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_yaml_has_the_rows_of_json(derived):
    rows = [json.loads(line) for line in shown(derived, "json").splitlines()]
    assert len(rows) == 2
    assert yaml.safe_load(shown(derived, "yaml")) == rows
    assert shown(derived, "json") == kontrast("show", "alerts", "--from", derived, "--json").stdout


def test_csv_has_a_column_for_each_field_and_no_character_that_a_terminal_obeys(derived):
    rows = [json.loads(line) for line in shown(derived, "json").splitlines()]
    text = shown(derived, "csv")
    assert text.count("\n") == 3
    assert "\x1b" not in text
    read = list(csv.DictReader(text.splitlines()))
    assert list(read[0]) == list(dict.fromkeys(field for row in rows for field in row))
    assert read[0]["cause"] == 'it "crashed", twice'
    assert json.loads(read[0]["examples"]) == ["a-0", "a-1"]
    assert (read[0]["action"], read[1]["action"]) == ("", "start it")


def test_an_answer_without_rows_is_empty_and_its_exit_code_stays(derived):
    assert kontrast("alerts", "--from", derived, "--severity", "page", "--output", "csv").exit_code == 1
    none = kontrast("show", "alerts", "--from", derived, "--cluster", "south", "--output", "csv")
    assert (none.exit_code, none.stdout) == (0, "")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_whose_answer_is_a_table_offers_the_forms(command):
    assert "--output [json|yaml|csv]" in kontrast(*command, "--help").stdout
