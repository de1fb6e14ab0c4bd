"""Producers and consumers of several groups in a process of their own, which prints each success.

    python -m tests.dashboards.group_clients SPEC.json

Each line is a pair in JSON: ["g1", "read:t-0"], ["g1", "commit"], ["tx1", "commit"]. The process ends when it is
killed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

_PAUSE_SECONDS = 0.3


def say(who: str, what: str) -> None:
    sys.stdout.write(f"{json.dumps([who, what])}\n")  # a name may have any character
    sys.stdout.flush()


def produce(bootstrap: Sequence[str], partitions: Sequence[tuple[str, int]]) -> None:
    """Write to every partition for ever. Writes to a partition without a leader fail."""
    producers: dict[tuple[str, int], KafkaProducer] = {}
    while True:
        for topic, number in partitions:
            producer = producers.setdefault((topic, 0), KafkaProducer(bootstrap_servers=bootstrap, max_block_ms=2_000))
            producer.send(topic, b"x", partition=number)
        time.sleep(_PAUSE_SECONDS)


def consume(bootstrap: Sequence[str], group: str, way: Mapping[str, Any]) -> None:
    """Read and commit for ever: by topics, by a `pattern`, as a static `member`, or by `numbers` of its own choice."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=10_000,
        group_instance_id=way.get("member"),
    )
    if "numbers" in way:
        consumer.assign([TopicPartition(topic, number) for topic in way["topics"] for number in way["numbers"]])
    elif "pattern" in way:
        consumer.subscribe(pattern=way["pattern"])
    else:
        consumer.subscribe([*way["topics"], *way.get("deleted", ())])
    read: dict[TopicPartition, OffsetAndMetadata] = {}
    while True:
        for tp, records in consumer.poll(timeout_ms=500).items():
            say(group, f"read:{tp.topic}-{tp.partition}")
            read[tp] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        if read:  # commit even without new records, which shows whether the coordinator works
            consumer.commit(read)
            say(group, "commit")


def transact(bootstrap: Sequence[str], name: str, topic: str) -> None:
    """Commit transactions for ever."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name, max_block_ms=5_000)
    producer.init_transactions()
    while True:
        producer.begin_transaction()
        producer.send(topic, b"t", partition=0)
        producer.commit_transaction()
        say(name, "commit")
        time.sleep(_PAUSE_SECONDS)


def for_ever(job: Callable[..., None], *arguments: object) -> None:
    """Begin the job again after an error, as a supervisor would."""

    def run() -> None:
        while True:
            try:
                job(*arguments)
            except (KafkaError, AssertionError, RuntimeError) as error:
                sys.stderr.write(f"{arguments[1]}: {error!r}\n")
                time.sleep(_PAUSE_SECONDS)

    threading.Thread(target=run, daemon=True).start()


def main(spec: Mapping[str, Any]) -> None:
    bootstrap = spec["bootstrap"]
    for_ever(
        produce, bootstrap, [(topic, number) for topic, count in spec["topics"].items() for number in range(count)]
    )
    for group, way in spec["groups"].items():
        for_ever(consume, bootstrap, group, way)
    for name in spec["transactional_ids"]:
        for_ever(transact, bootstrap, name, spec["transactions_to"])
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
