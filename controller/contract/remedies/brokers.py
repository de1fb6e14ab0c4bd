"""Remedies for brokers: registrations without a process."""

from __future__ import annotations

from typing import Final

from controller.contract.remedies.remedy import Remedy, Way

DELETE_REGISTRATION: Final = Remedy(
    name="delete-registration",
    ways=(Way("Delete /brokers/ids/BROKER.", ("zookeeper-shell.sh ZOOKEEPER delete /brokers/ids/BROKER",)),),
    requires="its ephemeralOwner is 0x0",
    changes="The controller elects other leaders, and the broker can register.",
    tried_on=("2.8.2", "3.9.2"),
)
