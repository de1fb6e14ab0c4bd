"""The shipped receivers, read by amtool and rendered with alerts of a recorded incident."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.scripts import script
from tests.programs import program

DEPLOY = Path(__file__).parents[2] / "deploy" / "alertmanager"
RECEIVERS = script("receivers")
TEXTS: dict[str, dict[str, str]] = RECEIVERS.texts()


@pytest.fixture(scope="module")
def message(recorded_files) -> dict[str, Any]:
    """Return a message with several alerts."""
    sent: dict[str, Any] = RECEIVERS.message(recorded_files)
    assert len(sent["alerts"]) > 1
    return sent


def test_amtool_accepts_the_receivers(amtool):
    checked = amtool("check-config", str(DEPLOY / "receivers.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(TEXTS) - 1} receivers" in checked.stdout


@pytest.mark.deploy
def test_a_newer_amtool_accepts_the_receiver_of_teams():
    command = [program("amtool-of-teams"), "check-config", str(DEPLOY / "teams.yml")]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "1 receivers" in checked.stdout


@pytest.mark.parametrize("receiver", TEXTS)
def test_every_text_of_a_receiver_has_words_for_a_real_alert(receiver, message):
    assert bool(TEXTS[receiver]) is (receiver != "page-webhook")
    resolved = {**message, "status": "resolved", "alerts": [{**a, "status": "resolved"} for a in message["alerts"]]}
    for text in TEXTS[receiver].values():
        words = RECEIVERS.rendered(text, message)
        assert words
        assert "<no value>" not in words + RECEIVERS.rendered(text, resolved)
