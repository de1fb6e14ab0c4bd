"""Sampler of the gauges of every broker, about twice a second.

Reading the output of the brokers' Java agent belongs here. `gauge_samples` maps Kafka's gauges to ours.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from lab.record.broker import RecordedBroker

_INTERVAL_SECONDS = 0.5
_TIMEOUT_SECONDS = 0.4
_OF_THE_AGENT = ("jvm_", "jmx_", "process_", "#")


class GaugeSampler:
    """One thread a broker, so that a paused broker does not delay the others."""

    def __init__(self, brokers: list[RecordedBroker]) -> None:
        self._samples: list[dict[str, Any]] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._sample, args=(broker,), daemon=True) for broker in brokers]

    def start(self) -> None:
        """Begin to sample."""
        for thread in self._threads:
            thread.start()

    def write(self, file: Path) -> None:
        """End sampling and write one line for each answer of a broker."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        samples = sorted(self._samples, key=lambda sample: sample["t"])
        file.write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))

    def _sample(self, broker: RecordedBroker) -> None:
        url = f"http://127.0.0.1:{broker.gauges_port}/metrics"
        while not self._ended.wait(_INTERVAL_SECONDS):
            at = round(time.time(), 3)
            try:
                with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
                    lines = answer.read().decode().splitlines()
            except (OSError, HTTPException):  # it is not there, paused, or was killed while it answered
                continue
            pairs = (line.split() for line in lines if not line.startswith(_OF_THE_AGENT))
            gauges = {name: float(value) for name, value in pairs}
            if gauges:
                self._samples.append({"t": at, "b": broker.broker_id, "m": gauges})
