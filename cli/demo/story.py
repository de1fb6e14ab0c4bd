"""The demo's chapters change the cluster and wait until Kontrast publishes the effect.

Each chapter compares as an operator would. The change decides the expected picture, `published` reads the actual one,
and both must become equal in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from cli.demo.stage import BROKER_IDS, SESSION_SECONDS, Narrator, PublishedCluster, Stage
from wording.sentences import counted

_Assignments = Mapping[str, tuple[tuple[int, ...], ...]]
# By the name of a comparison, a function that returns the actual and the expected value.
_Expectations = Mapping[str, Callable[[PublishedCluster], tuple[object, object]]]

# Replicas of each partition by topic, preferred leader first. Every broker leads some of each topic.
TOPICS: _Assignments = {
    "payments": ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)),
    "orders": ((1, 2), (2, 3), (3, 1)),
    "audit": ((1,), (2,), (3,)),  # one replica each, so that a broker's death takes it offline
}
_CHAPTER_SECONDS = 60
_POLL_SECONDS = 0.1
_ADMIN_ATTEMPTS = 5


class ChapterFailedError(Exception):
    """A chapter failed, because Kontrast did not publish the expected picture in time."""


def play(stage: Stage, narrator: Narrator) -> None:
    """Play every chapter. Raise ChapterFailedError or StageError."""
    story = _Story(stage, narrator)
    picture = story.topics_are_created()
    victim = story.a_broker_is_killed(picture)
    story.the_broker_returns(victim)
    story.a_topic_is_deleted("orders")


class _Story:
    def __init__(self, stage: Stage, narrator: Narrator) -> None:
        self._stage = stage
        self._narrator = narrator

    def topics_are_created(self) -> PublishedCluster:
        shapes = [f"{topic} ({len(replicas)} × {len(replicas[0])})" for topic, replicas in TOPICS.items()]
        self._narrator.chapter(f"Topics are created, partitions × replicas: {', '.join(shapes)}")
        created = [
            NewTopic(topic, replica_assignments={number: list(brokers) for number, brokers in enumerate(replicas)})
            for topic, replicas in TOPICS.items()
        ]
        self._ask_the_cluster(lambda admin: admin.create_topics(created))
        seen = self._expect("every partition has a leader", self._all_clear(TOPICS))
        self._narrator.say(
            f"{counted(seen.online, 'partition')} of {counted(seen.topics, 'topic')} on "
            f"{counted(seen.brokers, 'broker')}, broker {seen.controller} is controller"
        )
        return seen

    def a_broker_is_killed(self, before: PublishedCluster) -> int:
        # Not the controller, because its successor would have to be elected first, which would be another story.
        victim = next(broker for broker in reversed(BROKER_IDS) if broker != before.controller)
        self._narrator.chapter(f"Broker {victim} is killed, and its ZooKeeper session ends after {SESSION_SECONDS} s")
        lost = [name for name, replicas in _assignments(TOPICS).items() if replicas == (victim,)]
        moved = [name for name, leader in before.leaders.items() if leader == victim and name not in lost]
        page = "PartitionsOffline" if lost else "BrokerCrashed"
        self._stage.cluster.brokers[victim].kill()
        seen = self._expect(
            "offline partitions are named, the others have new leaders",
            {
                "brokers": lambda picture: (picture.brokers, len(BROKER_IDS) - 1),
                "online": lambda picture: (picture.online, len(before.leaders) - len(lost)),
                "unusable": lambda picture: (picture.unusable, dict.fromkeys(lost, "no_live_in_sync_replica")),
                "pages": lambda picture: (list(picture.pages), [f"{page}/broker {victim}"]),
                "led by the dead broker": lambda picture: (_led_by(victim, picture), []),
            },
        )
        for cause in seen.pages.values():
            self._narrator.say(f"page: {cause}")
        for name in moved:
            self._narrator.say(f"new leader: {name}: broker {victim} → {seen.leaders[name]}")
        return victim

    def the_broker_returns(self, victim: int) -> None:
        self._narrator.chapter(f"Broker {victim} returns")
        with self._narrator.progress(f"start broker {victim}"):
            self._stage.cluster.brokers[victim].start()
        seen = self._expect("all clear", self._all_clear(TOPICS))
        online = counted(seen.online, "partition")
        self._narrator.say(f"{online} online, none offline, none under-replicated, no page open")

    def a_topic_is_deleted(self, topic: str) -> None:
        self._narrator.chapter(f"Topic {topic} is deleted")
        self._ask_the_cluster(lambda admin: admin.delete_topics([topic]))
        rest = {name: replicas for name, replicas in TOPICS.items() if name != topic}
        seen = self._expect("it is gone, and no other", self._all_clear(rest))
        self._narrator.say(f"{counted(seen.online, 'partition')} of {counted(seen.topics, 'topic')} are left")

    def _all_clear(self, topics: _Assignments) -> _Expectations:
        names = sorted(_assignments(topics))
        return {
            "a broker is controller": lambda picture: (picture.controller in BROKER_IDS, True),
            "brokers": lambda picture: (picture.brokers, len(BROKER_IDS)),
            "topics": lambda picture: (picture.topics, len(topics)),
            "online": lambda picture: (picture.online, len(names)),
            "unusable": lambda picture: (picture.unusable, {}),
            "under-replicated": lambda picture: (picture.under_replicated, 0),
            "partitions": lambda picture: (sorted(picture.leaders), names),
            "without a leader": lambda picture: (_led_by(-1, picture), []),
            "pages": lambda picture: (picture.pages, {}),
        }

    def _expect(self, what: str, expectations: _Expectations) -> PublishedCluster:
        patience = self._stage.patience(_CHAPTER_SECONDS)
        with self._narrator.progress(f"Kontrast publishes: {what}"):
            while True:
                self._stage.check()
                picture = self._stage.published.picture()
                wrong = _differences(picture, expectations)
                if picture is not None and not wrong:
                    return picture
                if patience.is_over():
                    raise ChapterFailedError(
                        f"after {_CHAPTER_SECONDS} seconds of work Kontrast did not publish: {what}\n"
                        + "\n".join(f"  {line}" for line in wrong)
                        + f"\n{self._stage.log_tails()}"
                    )
                time.sleep(_POLL_SECONDS)

    def _ask_the_cluster(self, ask: Callable[[KafkaAdminClient], object]) -> None:
        """Ask a broker, and repeat the request if it is too busy. A step that was already done is no error."""
        for attempt in range(1, _ADMIN_ATTEMPTS + 1):
            self._stage.check()
            try:
                with closing(KafkaAdminClient(bootstrap_servers=self._stage.cluster.bootstrap_servers)) as admin:
                    ask(admin)
            except (TopicAlreadyExistsError, UnknownTopicOrPartitionError):
                return
            except KafkaError as error:
                if attempt == _ADMIN_ATTEMPTS:
                    raise ChapterFailedError(f"the cluster refused a step of the story: {error}") from error
                time.sleep(1)
            else:
                return


def _differences(picture: PublishedCluster | None, expectations: _Expectations) -> list[str]:
    if picture is None:
        return ["no answer of the exporter, or no complete picture"]
    pairs = {what: look(picture) for what, look in expectations.items()}
    return [f"{what}: expected {expected}, saw {seen}" for what, (seen, expected) in pairs.items() if seen != expected]


def _assignments(topics: _Assignments) -> dict[str, tuple[int, ...]]:
    """Return each partition's replicas by its name."""
    return {
        f"{topic}-{number}": replicas
        for topic, partitions in topics.items()
        for number, replicas in enumerate(partitions)
    }


def _led_by(broker: int, picture: PublishedCluster) -> list[str]:
    return sorted(name for name, leader in picture.leaders.items() if leader == broker)
