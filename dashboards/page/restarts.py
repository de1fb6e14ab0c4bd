"""Requests about restarts. Only leases change anything, and only in the memory of this process."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from controller.contract.ids import BrokerId
from dashboards.page.config import PageConfig
from dashboards.page.known_clusters import KnownClusters, now_ms
from dashboards.page.leases import Leases
from dashboards.page.request_parts import found, named, number
from questions.lease import LONGEST_LEASE_SECONDS, SHORTEST_LEASE_SECONDS, Lease
from questions.question import NotFoundError
from questions.restartable import MayRestart, Restartable, Verdict, under_lease
from transport.printable import printable

_LONGEST_HOLDER: Final = 100
_HEADERS_OF_BROWSERS: Final = ("origin", "sec-fetch-site")
_NO_WEB_PAGES: Final = "A web page may not change leases. Use `kontrast restartable --hold` or an HTTP client."
_NO_LOGIN: Final = (
    "kontrast serve has no login, so it changes leases only for requests from its own machine. "
    "Set username and password_file in [serve]."
)


class Restarts:
    """Answers to requests about restarts."""

    def __init__(self, clusters: KnownClusters, leases: Leases, config: PageConfig) -> None:
        self._clusters = clusters
        self._leases = leases
        self._config = config

    def restartable(self, request: Request) -> Restartable:
        """Judge the restart of a broker."""
        answer = self._judged(request)
        lease = self._leases.held(named(request, "cluster"), now_ms())
        return answer if lease is None else under_lease(answer, lease, request.query_params.get("holder", ""))

    def hold(self, request: Request) -> Restartable:
        """Judge the restart and take the lease if the answer is yes. A holder can extend its own lease at any time."""
        self._refuse_stranger(request)
        holder, seconds = _holder(request), _seconds(request)
        answer, cluster = self._judged(request), named(request, "cluster")
        lease = self._leases.held(cluster, now_ms())
        owns = lease is not None and (lease.broker, lease.holder) == (answer.broker, holder)
        if owns or answer.verdict is Verdict.YES:
            lease = self._leases.take(cluster, answer.broker, holder, seconds, now_ms())
        return answer if lease is None else under_lease(answer, lease, holder)

    def release(self, request: Request) -> Lease:
        """Release the holder's lease."""
        self._refuse_stranger(request)
        holder, broker = _holder(request), BrokerId(number(request.query_params.get("broker", ""), "broker"))
        released = self._leases.release(named(request, "cluster"), broker, holder, now_ms())
        return found(released, f"{holder} holds no lease to restart broker {broker}.")

    def _judged(self, request: Request) -> Restartable:
        asked, cluster = request.query_params, self._clusters.snapshot(named(request, "cluster"))
        question = MayRestart(
            broker=number(asked.get("broker", ""), "broker"),
            accept_topics=tuple(asked.getlist("accept_topic")),
            accept_absent=tuple(number(each, "accept_absent") for each in asked.getlist("accept_absent")),
        )
        try:
            return question.ask(self._clusters.whole(cluster))
        except NotFoundError as error:
            raise HTTPException(404, f"{error}.") from error

    def _refuse_stranger(self, request: Request) -> None:
        """Refuse a web page, because it acts with its reader's login, and any other machine if there is no login.

        Refuse everyone if another `kontrast serve` grants the leases, because each keeps only its own in memory.
        """
        if any(header in request.headers for header in _HEADERS_OF_BROWSERS):
            raise HTTPException(403, _NO_WEB_PAGES)
        if self._config.leases_at is not None:
            raise HTTPException(
                403, f"Another kontrast serve grants the leases. Ask the one on {self._config.leases_at}."
            )
        if not self._config.has_login and not (request.client and _is_this_machine(request.client.host)):
            raise HTTPException(403, _NO_LOGIN)


def _is_this_machine(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:  # a proxy on this machine may forward any text as the client's address
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _holder(request: Request) -> str:
    holder = request.query_params.get("holder", "").strip()
    if not holder or printable(holder, _LONGEST_HOLDER) != holder:
        raise HTTPException(400, f"holder is missing. Give a name of up to {_LONGEST_HOLDER} printable characters.")
    return holder


def _seconds(request: Request) -> int:
    said = request.query_params.get("seconds", "")
    shortest, longest = SHORTEST_LEASE_SECONDS, LONGEST_LEASE_SECONDS
    if not (said.isascii() and said.isdigit() and len(said) < 9 and shortest <= int(said) <= longest):
        raise HTTPException(400, f"seconds is the time of the lease. Give {shortest} to {longest}.")
    return int(said)
