"""A linted cluster, and the form of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

import msgspec

from controller.contract.alert_row import Severity
from controller.contract.records import Record
from controller.says.remedies.remedy import Advice
from controller.view.types import Partition, Topic
from questions.picture import Picture

TOPICS: Final = "/brokers/topics"
NOTIFICATIONS: Final = ("/isr_change_notification", "/log_dir_event_notification")
CONFIGS: Final = ("/config/topics", "/config/brokers")
LISTED: Final = (TOPICS, *CONFIGS, "/admin/delete_topics", *NOTIFICATIONS)
STEP_FOLLOWS: Final = Advice("Take the step that follows the znode.")


class Linted(msgspec.Struct, frozen=True):
    """A linted cluster: its picture, prepared for the checks."""

    picture: Picture
    records: Mapping[str, Record]  # of znodes, empty if the picture does not know them
    topics: tuple[tuple[str, Topic], ...]  # without a requested deletion, by name
    children: Mapping[str, Mapping[str, Record]]  # znodes right below each parent, by name
    states: tuple[str, ...]  # paths of partition states

    def partitions(self, wanted: Callable[[Partition], object]) -> Iterator[tuple[str, Partition]]:
        """Yield each wanted partition with its name, in order."""
        for name, topic in self.topics:
            found = [(number, partition) for number, partition in topic.partitions.items() if wanted(partition)]
            for number, partition in sorted(found, key=itemgetter(0)):
                yield f"{name}-{number}", partition


def linted(picture: Picture) -> Linted:
    """Return the cluster, sorted once for all checks."""
    topics = (item for item in picture.context.topics if item[1].exists and not item[1].queued_for_deletion)
    children: dict[str, dict[str, Record]] = {parent: {} for parent in LISTED}
    states = []
    for path, record in (picture.records or {}).items():
        parent, _, name = path.rpartition("/")
        if parent in children:
            children[parent][name] = record
        elif name == "state":
            states.append(path)
    return Linted(picture, picture.records or {}, tuple(sorted(topics, key=itemgetter(0))), children, tuple(states))


class LintCheck(msgspec.Struct, frozen=True):
    """A check. As a decorator it takes the name of the function that finds the names of the places of trouble."""

    severity: Severity
    will: str
    advice: Advice
    reads_znodes: bool = False  # it looks at znodes beyond the controller's context
    is_in_check: bool = False  # `kontrast check` tells it too, unless an alert does
    name: str = ""
    find: Callable[[Linted], Iterable[str]] = lambda _: ()

    def __call__(self, find: Callable[[Linted], Iterable[str]]) -> LintCheck:
        """Return the check that this function makes."""
        return msgspec.structs.replace(self, name=find.__name__.replace("_", "-"), find=find)
