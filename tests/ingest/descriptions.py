"""Descriptions of an ensemble in a forwarder's records, and the alerts that follow from them."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.alert_row import AlertRow
from controller.contract.forwarder_status import Ensemble, ZooKeeperServer, decode_status
from controller.contract.records import Record, RecordKind
from controller.restore.stored_context import new_context
from controller.step import steps
from tests.ingest.conftest import Watching
from tests.waiting import eventually

INTERVAL_SECONDS = 1.0


def described(watching: Watching) -> list[Ensemble]:
    """Return the descriptions so far."""
    found = (
        decode_status(record.data).ensemble for record in watching.records() if record.kind is RecordKind.HEARTBEAT
    )
    return [one for one in found if one is not None]


def newest(watching: Watching, holds: Callable[[Ensemble], object]) -> Ensemble:
    """Wait for a description that holds."""
    return eventually(lambda: described(watching)[-1:], lambda last: last and holds(last[0]))[0]


def of_address(ensemble: Ensemble, server: ZooKeeper) -> ZooKeeperServer:
    (found,) = (one for one in ensemble.servers if one.address == server.connect_string)
    return found


def slowly(records: list[Record], factor: int) -> list[Record]:
    """Return the records as if everything had taken this much longer, with the durations in descriptions."""
    first = records[0]

    def later(record: Record) -> Record:
        data = record.data
        if record.kind is RecordKind.HEARTBEAT and '"interval_ms"' in (data or ""):
            status = json.loads(data or "")
            status["ensemble"]["interval_ms"] *= factor
            for server in status["ensemble"]["servers"]:
                if "silent_ms" in server:
                    server["silent_ms"] *= factor
            data = json.dumps(status)
        return msgspec.structs.replace(
            record,
            data=data,
            observed_ms=first.observed_ms + (record.observed_ms - first.observed_ms) * factor,
            steady_ms=first.steady_ms + (record.steady_ms - first.steady_ms) * factor,
        )

    return [later(record) for record in records]


def open_alerts(records: list[Record]) -> dict[str, AlertRow]:
    """Return the newest row of each open alert, by kind."""
    rows = [row for row in steps(new_context("test"), records).effects if isinstance(row, AlertRow)]
    last = {row.id: row for row in rows}
    return {row.alert: row for row in last.values() if row.state == "open"}
