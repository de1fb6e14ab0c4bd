"""Last releases that support ZooKeeper, and the supported paths from them to KRaft, as their makers state them."""

from __future__ import annotations

from typing import Final, NamedTuple

AS_OF: Final = "2026-11"  # when the sources were read


class LastRelease(NamedTuple):
    """Last release of a product with ZooKeeper, the supported path, and the pages that state both."""

    product: str
    release: str
    path: str
    sources: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the facts for people."""
        return f"{self.product} {self.release} is the last with ZooKeeper. {self.path}"


LAST_RELEASES: Final = (
    LastRelease(
        "Apache Kafka",
        "3.9",
        "Upgrade to 3.9, migrate there, then upgrade to 4.x. 4.0 and later start in KRaft mode only.",
        ("https://kafka.apache.org/40/getting-started/upgrade", "https://kafka.apache.org/43/getting-started/upgrade/"),
    ),
    LastRelease(
        "Confluent Platform",
        "7.9",
        "Migrate on 7.5 to 7.9, then upgrade to 8.x. Do not upgrade and migrate at once. CFK needs 7.6 or later.",
        (
            "https://docs.confluent.io/platform/8.3/installation/migrate-zk-kraft.html",
            "https://docs.confluent.io/operator/current/co-migrate-kraft-overview.html",
        ),
    ),
    LastRelease(
        "Strimzi",
        "0.45",
        "Migrate on 0.45 (0.45.2 is its last patch, with Kafka 3.9.2), then upgrade to 0.46 or later, which cannot "
        "migrate.",
        (
            "https://github.com/strimzi/strimzi-kafka-operator/releases/tag/0.46.0",
            "https://sourceforge.net/projects/strimzi.mirror/files/0.45.2",
        ),
    ),
    LastRelease(
        "Cloudera Runtime",
        "7.3",
        "Upgrade to 7.3.2 and migrate there. No earlier or later release can migrate.",
        ("https://docs.cloudera.com/runtime/7.3.2/public-release-notes/topics/rt-deprecated-kafka.html",),
    ),
)
