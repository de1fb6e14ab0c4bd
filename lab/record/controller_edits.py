"""Record the reaction of the controller to an edit of /controller by hand.

`python -m lab.record.controller_edits 3.9.2` starts ZooKeeper and one broker of the release, edits the
znode in each way, and prints a JSON line for each: whether the broker counts itself as controller
(`ActiveControllerCount`), and whether it acts, because it writes the first state of a topic that is made by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from kazoo.client import KazooClient

from cli.embedded.zookeeper import ZooKeeper
from lab.record.broker import RecordedBroker
from lab.record.releases import RELEASES
from tests.waiting import eventually

_QUIET_SECONDS = 2.0  # a broker hears of the change and reads it within milliseconds
_ACTS_WITHIN_SECONDS = 6.0


class Editor:
    """Somebody with a session of their own, who edits /controller of a cluster with one broker."""

    def __init__(self, client: KazooClient, broker: RecordedBroker) -> None:
        self._client = client
        self._broker = broker
        self._topics = 0
        self.elected = self._read()

    def set(self, value: bytes) -> None:
        self._client.set("/controller", value)

    def with_id(self, broker: int) -> bytes:
        """Return an election's value with another broker's id and another time."""
        return json.dumps({**json.loads(self.elected), "brokerid": broker, "timestamp": "99"}).encode()

    def replace_in_one_transaction(self, value: bytes, *, ephemeral: bool = True) -> None:
        """Replace the znode by one of this session or of no session, without a moment in which it does not exist."""
        transaction = self._client.transaction()
        transaction.delete("/controller")
        transaction.create("/controller", value, ephemeral=ephemeral)
        assert not any(isinstance(result, Exception) for result in transaction.commit())

    def elect_anew(self) -> None:
        """Delete /controller, and wait until the broker has elected itself."""
        self._client.delete("/controller")
        eventually(lambda: self._client.exists("/controller"))
        time.sleep(_QUIET_SECONDS)
        self.elected = self._read()

    def acts(self) -> bool:
        """Return whether the broker writes the first state of another topic."""
        self._topics += 1
        path = f"/brokers/topics/made-by-hand-{self._topics}"
        self._client.create(path, b'{"version":1,"partitions":{"0":[1]}}')
        give_up_at = time.monotonic() + _ACTS_WITHIN_SECONDS
        while time.monotonic() < give_up_at:
            if self._client.exists(f"{path}/partitions/0/state"):
                return True
            time.sleep(0.1)
        return False

    def counts_itself(self) -> bool:
        """Return its gauge ActiveControllerCount as a truth value."""
        address = f"http://127.0.0.1:{self._broker.gauges_port}/metrics"
        with urllib.request.urlopen(address, timeout=30) as answer:
            (value,) = re.findall(r"^activecontrollercount\S* (\S+)", answer.read().decode(), re.MULTILINE | re.I)
        return float(value) == 1

    def _read(self) -> bytes:
        content: bytes = self._client.get("/controller")[0]
        return content


def _another_then_its_own(editor: Editor) -> None:
    editor.set(editor.with_id(7))
    time.sleep(_QUIET_SECONDS)
    editor.set(editor.with_id(1))


def _itself_twice(editor: Editor) -> None:
    for _ in range(2):
        editor.replace_in_one_transaction(editor.elected)


EDITS: dict[str, Callable[[Editor], object]] = {
    "nothing": lambda _: None,
    "the same value": lambda editor: editor.set(editor.elected),
    "the same id": lambda editor: editor.set(editor.with_id(1)),
    "another id": lambda editor: editor.set(editor.with_id(7)),
    "another id, then its own": _another_then_its_own,
    "no JSON": lambda editor: editor.set(b"garbage"),
    "JSON without an id": lambda editor: editor.set(b'{"version":1}'),
    "empty": lambda editor: editor.set(b""),
    "deleted and created by another session in one transaction": lambda editor: editor.replace_in_one_transaction(
        editor.elected
    ),
    "the same, with another time in it": lambda editor: editor.replace_in_one_transaction(editor.with_id(1)),
    "the same, with another id": lambda editor: editor.replace_in_one_transaction(editor.with_id(7)),
    "the same, twice": _itself_twice,
    "the same, nobody's": lambda editor: editor.replace_in_one_transaction(editor.elected, ephemeral=False),
}


def record(release: str, edits: Sequence[str], directory: Path) -> None:
    """Print the broker's reaction to each of these edits, or to all if the list is empty."""
    with ZooKeeper(directory / "zookeeper") as zookeeper:
        broker = RecordedBroker(1, release, zookeeper.connect_string, directory / "broker", directory / "logs")
        broker.launch()
        client = KazooClient(zookeeper.connect_string, timeout=30)
        client.start()
        try:
            eventually(lambda: client.exists("/controller") and client.exists("/brokers/ids/1"))
            time.sleep(2 * _QUIET_SECONDS)
            editor = Editor(client, broker)
            for edit in edits or EDITS:
                EDITS[edit](editor)
                time.sleep(_QUIET_SECONDS)
                seen = {"counts_itself": editor.counts_itself(), "acts": editor.acts()}
                print(json.dumps({"kafka": release, "edit": edit, **seen}), flush=True)
                editor.elect_anew()
        finally:
            client.stop()
            client.close()
            broker.kill()


def main() -> None:
    """Record one release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("edits", nargs="*", metavar="edit", help=f"some of: {'; '.join(EDITS)} (none: all)")
    arguments = parser.parse_args()
    if unknown := [edit for edit in arguments.edits if edit not in EDITS]:
        parser.error(f"no edit that is known: {'; '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="kontrast-") as directory:
        record(arguments.release, arguments.edits, Path(directory))


if __name__ == "__main__":
    main()
