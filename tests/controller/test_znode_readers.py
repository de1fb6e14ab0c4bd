"""Our decoder beside the `kafka.zk` classes of three releases: what is accepted, what is refused, and the values.

`vectors/znodes.jsonl.xz` has 2,200 variants of each kind of znode with Kafka's answers. `python -m
tests.conformance.znode_readers` asks Kafka again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from controller.contract.znodes import ZnodeError
from controller.events.partition_reassignment import requested
from tests.conformance.znode_readers.answers import A_KIND, RELEASES, UNKNOWN, Answered, read_vectors
from tests.conformance.znode_readers.comparison import NOTHING, is_known_difference, kafkas, ours
from tests.conformance.znode_readers.variants import SAMPLES

# Fields that an older release does not read, so that their flaws do not matter to it. An empty text is no JSON to 1.1,
# which also reads /admin/reassign_partitions as it reads the other requests.
OTHERWISE = {
    "2.8.2": {"controller", "state", "broker", "feature"},
    "1.1.1": {"controller", "state", "broker", "topic", "reassign", "isr", "preferred", "log_dir"},
}
MOST_KNOWN = 40  # of 2,200 variants of a kind


def differing(answered: Iterable[Answered], of: int) -> list[tuple[str, bytes | None, object, object]]:
    found = []
    for (kind, content), answers in answered:
        if answers[of] != UNKNOWN:
            read, kafka = ours(kind, content), kafkas(kind, answers[of])
            if read != kafka:
                found.append((kind, content, read, kafka))
    return found


@pytest.fixture(scope="module")
def vectors() -> list[Answered]:
    return list(read_vectors())


def test_the_newest_release_reads_every_variant_as_we_do(vectors):
    assert {kind: count for kind, count in Counter(each.question.kind for each in vectors).items()} == dict.fromkeys(
        SAMPLES, A_KIND
    )
    found = differing(vectors, 0)
    assert [each for each in found if not is_known_difference(*each[:2])] == []
    assert max(Counter(kind for kind, *_ in found).values()) <= MOST_KNOWN


@pytest.mark.parametrize("release", RELEASES[1:])
def test_an_older_release_differs_only_by_the_fields_that_it_does_not_read(release, vectors):
    kinds = {
        kind for kind, *rest in differing(vectors, RELEASES.index(release)) if not is_known_difference(kind, rest[0])
    }
    assert kinds == OTHERWISE[release]


def test_kafka_1_1_reads_each_reassignment_request_as_we_do(vectors):
    asked = [each for each in vectors if each.question.kind == "reassign"]
    told = [kafkas("reassign", each.answers[RELEASES.index("1.1.1")]) for each in asked]
    read = [_requested_up_to_1_1(each.question.content) for each in asked]
    assert len(read) == A_KIND
    assert read == [{} if answer == NOTHING else answer for answer in told]


def _requested_up_to_1_1(content: bytes | None) -> dict[str, list[int]]:
    try:
        return {f"{each.topic}-{each.partition}": list(each.replicas) for each in requested(content, (1, 1))}
    except ZnodeError:
        return {}
