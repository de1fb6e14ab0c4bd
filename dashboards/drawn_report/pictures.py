"""Drawing of a report as SVG, topics' unwritable time with the objective, and failovers over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from dashboards.drawn_timeline import picture as lanes
from dashboards.drawn_timeline.picture import LEFT, TOP, TimeScale, begun_picture, clock
from questions.report.cluster_report import ClusterReport, TopicAvailability
from questions.report.report import Report
from transport.printable import printable

_MOST_BARS: Final = 40


def drawn_availability(report: Report) -> tuple[Element, int]:
    """Draw a bar for each topic that was not always writable, worst first.

    Return the number of topics without a bar.
    """
    everything = [(cluster, topic) for cluster in report.clusters for topic in cluster.topics]
    suffered = sorted(
        (found for found in everything if found[1].writable < 1),
        key=lambda found: (found[1].writable, found[0].cluster, found[1].topic),
    )
    shown = suffered[:_MOST_BARS]
    title = "Share of its partition-minutes that each topic rejected acks=all, or was offline"
    picture = begun_picture(len(shown), title)
    allowed = None if report.objective_percent is None else (100 - report.objective_percent) / 100
    most = max([allowed or 0.0, *(1 - topic.writable for _, topic in shown)]) * 1.05 or 1.0
    step = _round_step(most / lanes.MOST_TICKS)
    for tick in range(int(most / step) + 1):
        _line(picture, _x(tick * step / most), len(shown), f"{tick * step * 100:.3g} %")
    for number, (cluster, topic) in enumerate(shown):
        picture.append(_bar(cluster, topic, number, most))
    if allowed is not None:
        _line(picture, _x(allowed / most), len(shown), "", {"class": "objective"})
    return picture, len(everything) - len(shown)


def _bar(cluster: ClusterReport, topic: TopicAvailability, number: int, most: float) -> Element:
    lane, y = Element("g"), TOP + number * lanes.LANE
    says = (
        f"{cluster.cluster} {topic.topic}: rejected acks=all for {topic.unwritable_partition_minutes:.4g} of "
        f"{topic.partition_minutes:.4g} partition-minutes, offline for {topic.offline_partition_minutes:.4g}"
    )
    SubElement(lane, "title").text = printable(says)
    _name(lane, f"{cluster.cluster} {topic.topic}", y)
    for word, share in (("refusing", 1 - topic.writable), ("down", 1 - topic.online)):
        if share:
            width = max(lanes.LEAST_BAR, _x(share / most) - LEFT)
            place = {"x": _number(LEFT), "y": str(y + 2), "width": _number(width), "height": str(lanes.BAR)}
            SubElement(lane, "rect", {"class": word, **place})
    return lane


def _round_step(least: float) -> float:
    """Return the smallest round step of at least this size, which is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def drawn_failovers(clusters: Sequence[ClusterReport]) -> Element:
    """Draw a lane per cluster over the whole time, with its seen time and its time without a controller."""
    seen = [cluster for cluster in clusters if cluster.window.seen_from_ms is not None]
    picture = begun_picture(len(seen), "When each cluster had no controller")
    begin_ms = min((cluster.window.since_ms for cluster in seen), default=0)
    scale = TimeScale(begin_ms, max((cluster.window.until_ms for cluster in seen), default=0))
    for at_ms, words in scale.ticks():
        _line(picture, scale.x(at_ms), len(seen), words)
    for number, cluster in enumerate(seen):
        picture.append(_lane(cluster, number, scale))
    return picture


def _lane(cluster: ClusterReport, number: int, scale: TimeScale) -> Element:
    lane, y, window = Element("g"), TOP + number * lanes.LANE, cluster.window
    _name(lane, cluster.cluster, y)
    _span(lane, "well", scale, (window.seen_from_ms or 0, window.seen_until_ms or 0), y)
    for failover in cluster.failovers:
        ended_ms = failover.began_ms + (failover.without_controller_ms or 0)
        if failover.without_controller_ms is None:
            ended_ms = window.until_ms
        to = "nobody yet" if failover.to_broker is None else f"broker {failover.to_broker}"
        span = max(failover.began_ms, window.since_ms), min(ended_ms, window.until_ms)
        took = f"{(ended_ms - failover.began_ms) / 1000:.3f} s without a controller"
        rect = _span(lane, "down", scale, span, y)
        SubElement(rect, "title").text = f"{clock(failover.began_ms)} broker {failover.from_broker} to {to}: {took}"
    return lane


def _span(lane: Element, word: str, scale: TimeScale, span: tuple[int, int], y: int) -> Element:
    begin, end = scale.x(span[0]), scale.x(span[1])
    place = {"x": _number(begin), "y": str(y + 2), "height": str(lanes.BAR)}
    return SubElement(lane, "rect", {"class": word, **place, "width": _number(max(lanes.LEAST_BAR, end - begin))})


def _line(picture: Element, x: float, count: int, words: str, more: dict[str, str] | None = None) -> None:
    ends = {"x1": _number(x), "x2": _number(x), "y1": str(TOP - 6), "y2": str(lanes.height_of(count))}
    SubElement(picture, "line", {**ends, **(more or {})})
    if words:
        SubElement(picture, "text", {"x": _number(x), "y": "14", "text-anchor": "middle"}).text = words


def _name(lane: Element, name: str, y: int) -> None:
    shown = name if len(name) <= lanes.LONGEST_NAME else f"{name[: lanes.LONGEST_NAME - 1]}…"
    SubElement(lane, "text", {"x": str(LEFT - 8), "y": str(y + 13), "text-anchor": "end"}).text = printable(shown)


def _x(share: float) -> float:
    return LEFT + share * (lanes.WIDTH - LEFT - lanes.RIGHT - 20)


def _number(value: float) -> str:
    return f"{value:.2f}"
