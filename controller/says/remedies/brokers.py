"""Remedies for brokers: registrations without a process."""

from __future__ import annotations

from typing import Final

from controller.says.remedies.remedy import Remedy, by_shell

DELETE_REGISTRATION: Final = Remedy(
    name="delete-registration",
    ways=by_shell("Delete /brokers/ids/BROKER.", "delete /brokers/ids/BROKER"),
    requires="its ephemeralOwner is 0x0",
    changes="The controller elects other leaders, and the broker can register.",
    tried_on=("2.8.2", "3.9.2"),
)
