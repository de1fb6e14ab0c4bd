"""Why a partition's leader is not its preferred replica, and when the controller moves the leadership back."""

from __future__ import annotations

from collections.abc import Iterable

from controller.contract.effect_rows import WITHDRAWN, Transition
from controller.contract.ids import BrokerId
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.row import NOT_KNOWN_MS
from controller.view.types import Partition
from questions.explain.explanation import Certainty, Statement
from questions.picture import Picture
from wording.times import near

_LIVE, _DEAD = "live", "dead"
_ENABLED, _PERCENTAGE = "auto.leader.rebalance.enable", "leader.imbalance.per.broker.percentage"
_INTERVAL = "leader.imbalance.check.interval.seconds"


def not_preferred(picture: Picture, partition: Partition, value: LeaderAndIsr) -> Statement:
    """Return the reason why another replica leads than the preferred one, and when that ends."""
    preferred = partition.replicas[0]
    why = _why(picture, preferred, is_in_sync=preferred in value.isr)
    if preferred not in picture.header.brokers:
        when = f"It can lead again once broker {preferred} is back and in sync"
    elif preferred not in value.isr:
        when = f"It can lead again once broker {preferred} is in sync"
    else:
        when = _when(picture, preferred)
    given = picture.header.configuration.given.keys() >= {_ENABLED, _PERCENTAGE, _INTERVAL}
    is_seen = preferred not in value.isr or given
    says = f"broker {preferred} is not the leader{why}. {when}"
    return Statement("preferred", says, Certainty.SEEN if is_seen else Certainty.ASSUMED)


def _why(picture: Picture, preferred: BrokerId, *, is_in_sync: bool) -> str:
    left_ms, back_ms = _absence(picture, preferred)
    if left_ms is None and preferred not in picture.header.brokers:
        return ", because it is down"
    if left_ms is None:
        registered_ms = picture.written_ms.get(f"/brokers/ids/{preferred}", NOT_KNOWN_MS)
        since = "" if registered_ms == NOT_KNOWN_MS else f" and has been registered since {_at(registered_ms, picture)}"
        return f", although it is in sync{since}" if is_in_sync else f", because it is not in sync{since}"
    if back_ms is None:
        return f", because it has been away since {_at(left_ms, picture)}"
    return f", because it was away from {_at(left_ms, picture)} to {_at(back_ms, picture)}"


def _absence(picture: Picture, broker: BrokerId) -> tuple[int | None, int | None]:
    """Return the times when the broker last left and came back, by the rows of the past."""
    left_ms = back_ms = None
    for row in _moves(picture.story or (), broker):
        if row.to_state == _DEAD:
            left_ms, back_ms = row.time_ms, None
        elif row.to_state == _LIVE:
            back_ms = row.time_ms
    return left_ms, back_ms


def _moves(rows: Iterable[object], broker: BrokerId) -> Iterable[Transition]:
    transitions = (row for row in rows if isinstance(row, Transition) and row.status is not WITHDRAWN)
    return (row for row in transitions if row.subject == "broker" and row.broker == broker)


def _when(picture: Picture, preferred: BrokerId) -> str:
    header = picture.header
    settings = header.settings
    if not settings.auto_leader_rebalance_enable:
        return f"It stays so until a preferred election is asked for, because {_ENABLED} is false"
    elector = f"Controller {header.controller}" if header.acting else "No controller is active. The next one"
    interval = f"{settings.leader_imbalance_check_interval_seconds} s"
    most = settings.leader_imbalance_per_broker_percentage
    reassigned = "" if header.profile.rebalances_while_reassigning else ", while no partition is being reassigned"
    others = f"more than {most} % of the partitions that prefer broker {preferred} have another leader"
    return f"{elector} moves it back within {interval}{reassigned}, if {others}"


def _at(ms: int, picture: Picture) -> str:
    return near(ms, picture.as_of_ms)
