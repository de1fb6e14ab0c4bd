"""Actions of a soak, those of the recorder, and others on ZooKeeper and on Kontrast itself.

The choice and the course of the additional actions belong here. `lab.record.actions` has an operator's
actions on Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cli.embedded.process import EmbeddedError
from lab.record.actions import Actions, Course
from lab.record.admin import Admin
from lab.record.releases import RELEASES
from lab.record.steps import Steps
from lab.record.topics import Topics
from lab.soak.clusters import REAL, RELEASE, SYNTHETIC, Clusters
from lab.soak.kontrast import PARTS, SESSION_SECONDS, WATCHERS, Kontrast
from lab.soak.synthetic import Synthetic
from tests.processes import descendants, is_running

SETTLE_SECONDS = 120
_ORDERLY_SECONDS = 90
_LEFT_BEHIND_SECONDS = 30
# Until a process has installed its handlers, SIGTERM ends it with status -15. On a busy machine that took a minute, so
# a process that has logged nothing is killed instead.
_STARTING_SECONDS = 15.0
# Weights of drawn operations. All actions on Kafka together have 95.
_ZOOKEEPER_WEIGHTS = {"kill_zookeeper_leader": 3, "restart_zookeeper": 3, "restart_ensemble": 1}
_SYNTHETIC_WEIGHT = 15
_RESTART_WEIGHT = 3  # of each process, while all are restarted
_WATCH_WEIGHT = 5  # of the second watcher from then on, and of a pause of the first


class Operations(Actions):
    """A seeded operator of the real cluster, its ZooKeeper, the made-up cluster and Kontrast.

    Topics never reuse a name. `violations` are sentences about forbidden behaviour of Kontrast's processes.
    """

    chance_of_a_former_name = 0.0

    def __init__(self, seed: int, clusters: Clusters, kontrast: Kontrast, steps: Steps) -> None:
        client = clusters.client_of(REAL)
        admin = Admin(clusters.brokers, steps)
        super().__init__(seed, RELEASES[RELEASE], clusters.brokers, Topics(client, "t"), admin, steps)
        self._ensemble = clusters.ensemble
        self._kontrast = kontrast
        self._synthetic = Synthetic(clusters.client_of(SYNTHETIC), self._random, steps)
        self._zookeeper_is_away = False
        self._restarting: set[str] = set()
        self._log_bytes_at_launch: dict[str, int] = {}
        self.violations: list[str] = []
        self._weights |= {getattr(self, name): weight for name, weight in _ZOOKEEPER_WEIGHTS.items()}
        self._weights |= dict.fromkeys(self._synthetic.changes(), _SYNTHETIC_WEIGHT)
        self._restarts: dict[str, Callable[[], None]] = {name: partial(self.restart, name) for name in PARTS}
        self._weights |= dict.fromkeys(self._restarts.values(), _RESTART_WEIGHT)
        self._weights |= dict.fromkeys((partial(self.pause_watch, name) for name in WATCHERS), _RESTART_WEIGHT)

    def let_live(self) -> None:
        """Restart only the second watcher from now on, so that the other processes live long.

        Each topic of the made-up cluster changes once first. Else the job's workers would load chunks of it until the
        end, more and more of its partitions would be under-replicated, and both would look like a leak.
        """
        self._synthetic.change_every_topic()
        for name, restart in self._restarts.items():
            self._weights[restart] = _WATCH_WEIGHT if name == WATCHERS[1] else 0

    def settle(self) -> None:
        """Let the current operations end. An operation that does not end is a violation."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._courses and time.monotonic() < deadline:
            self._go_on(0.2)
        if self._courses:
            self.violations.append(f"{len(self._courses)} operations were not over after {SETTLE_SECONDS} s of rest")

    def watch_processes(self) -> None:
        """Note processes of Kontrast that ended by themselves, and start them again."""
        for name, part in self._kontrast.parts.items():
            if name not in self._restarting and not part.running:
                self.violations.append(part.describe(f"ended by itself with status {part.exit_status}"))
                part.launch()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            super()._try(act)
        except EmbeddedError as error:
            self.violations.append(f"the soak's own server failed: {error}")

    def _wait(self) -> float:
        """Return a pause. A third of the actions begin in the middle of the previous one."""
        choices = ((0, 0.3), (1, 4), (3, 7))
        return self._random.uniform(*self._random.choice(choices))

    def _targets(self) -> dict[tuple[str, int], list[int]]:
        """Draw targets on existing brokers only, because a topic on an absent one could never be deleted."""
        drawn = {tp: [broker for broker in to if broker in self._brokers] for tp, to in super()._targets().items()}
        return {tp: replicas for tp, replicas in drawn.items() if replicas}

    # ZooKeeper

    def kill_zookeeper_leader(self) -> None:
        servers = self._ensemble.servers
        leading = [number for number, server in servers.items() if "Mode: leader" in server.ask("srvr")]
        if leading and not self._zookeeper_is_away:
            self._steps.note("kill ZooKeeper's leader", server=leading[0])
            servers[leading[0]].kill()
            self._follow(self._zookeeper_returns(leading, self._random.uniform(0, 10)))

    def restart_zookeeper(self) -> None:
        number = self._random.choice(sorted(self._ensemble.servers))
        if not self._zookeeper_is_away:
            self._steps.note("restart a ZooKeeper server", server=number)
            self._ensemble.servers[number].stop()
            self._follow(self._zookeeper_returns([number], self._random.uniform(0, 10)))

    def restart_ensemble(self) -> None:
        """Restart all servers without another action meanwhile, because every action asks ZooKeeper first."""
        if not self._zookeeper_is_away:
            self._steps.note("kill all ZooKeeper servers")
            self._ensemble.kill()
            time.sleep(self._random.uniform(0, 10))
            self._steps.note("start all ZooKeeper servers")
            self._ensemble.start()

    def _zookeeper_returns(self, numbers: list[int], away_seconds: float) -> Course:
        self._zookeeper_is_away = True
        yield away_seconds
        self._steps.note("start ZooKeeper", servers=numbers)
        for number in numbers:
            self._ensemble.servers[number].launch()
        while not all("Mode: " in self._ensemble.servers[number].ask("srvr") for number in numbers):
            yield 0.2
        self._zookeeper_is_away = False

    # Kontrast

    def restart(self, name: str) -> None:
        """Kill a process, or end it cleanly, and start it again after a while."""
        if name not in self._restarting:
            self._restarting.add(name)
            self._follow(self._restarted(name))

    def _restarted(self, name: str) -> Course:
        part = self._kontrast.parts[name]
        began = descendants(part.pid) if part.pid is not None else []
        is_starting = _bytes_of(part.log) <= self._log_bytes_at_launch.get(name, 0)
        if self._random.random() < 0.5 or is_starting:
            self._steps.note("kill Kontrast", process=name)
            part.kill()
        else:
            self._steps.note("stop Kontrast", process=name)
            part.ask_to_stop()
            deadline = time.monotonic() + _ORDERLY_SECONDS
            while part.running and time.monotonic() < deadline:
                yield 0.1
            if part.running or part.exit_status:
                how = f"was still there {_ORDERLY_SECONDS} s after" if part.running else f"gave {part.exit_status} to"
                self.violations.append(part.describe(f"{how} SIGTERM"))
                part.kill()
        yield from self._left_behind(name, began)
        yield self._random.uniform(0, 5)
        self._steps.note("start Kontrast", process=name)
        self._log_bytes_at_launch[name] = _bytes_of(part.log)
        part.launch()
        yield _STARTING_SECONDS
        self._restarting.discard(name)

    def _left_behind(self, name: str, began: list[int]) -> Course:
        deadline = time.monotonic() + _LEFT_BEHIND_SECONDS
        while any(map(is_running, began)) and time.monotonic() < deadline:
            yield 0.2
        if left := [pid for pid in began if is_running(pid)]:
            self.violations.append(f"{name} left the processes {left} behind, {_LEFT_BEHIND_SECONDS} s after its end")

    def pause_watch(self, name: str) -> None:
        """Freeze a watcher for longer than its sessions last."""
        if name not in self._restarting:
            self._restarting.add(name)
            self._follow(self._paused(name, self._random.uniform(1.2, 2.5) * SESSION_SECONDS))

    def _paused(self, name: str, seconds: float) -> Course:
        self._steps.note("pause Kontrast", process=name, seconds=round(seconds, 1))
        self._kontrast.parts[name].pause()
        yield seconds
        self._steps.note("resume Kontrast", process=name)
        self._kontrast.parts[name].resume()
        self._restarting.discard(name)


def _bytes_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
