"""Types of a cluster's state, to name its parts outside the core, which alone builds and changes them."""

from __future__ import annotations

from controller.model.brokers import Broker as Broker
from controller.model.context import (
    BOOTSTRAPPING as BOOTSTRAPPING,
    FOLLOWING as FOLLOWING,
    THROTTLES as THROTTLES,
    Context as Context,
    Header as Header,
)
from controller.model.event import StoredEvent as StoredEvent
from controller.model.tally import CountingRules as CountingRules
from controller.model.topics import InTopic as InTopic, Partition as Partition, Topic as Topic
