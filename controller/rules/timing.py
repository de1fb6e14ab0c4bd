"""Times that limit a controller's possible reads and actions, with their measurements and growth.

A write that shows more overrides a time. Measurements of a cluster's own controllers replace a time that proves too
short for the cluster (`Header.loaded_within_ms`).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Time(NamedTuple):
    """Time of a controller or broker in a small cluster, and the addition for each partition."""

    ms: int
    us_per_partition: int
    measured: str

    def of(self, partitions: int) -> int:
        """Return the milliseconds in a cluster with this number of partitions."""
        return self.ms + self.us_per_partition * partitions // 1_000


# Reads of a new controller, in its order of brokers, names of topics, assignments, states of partitions, deletions. It
# requests the states of all partitions in one go, which takes nearly all of the time.

BROKERS_READ: Final = Time(
    10,
    0,
    "Measured in 430 loads of controllers that had run for 5 s, with up to 100 partitions. Between 189 and 309 had not "
    "read the brokers by then. Their logs have a line before and one after the read, with medians of 9 and 16 ms. The "
    "one broker that left sooner was read as gone. 59 brokers that left 43 ms to 4 s after an election were read as "
    "registered.",
)
BROKERS_READ_AT_LAST: Final = Time(250, 0, "A load of 10,000 partitions missed a broker that registered after 323 ms.")
TOPICS_READ: Final = Time(
    20,
    0,
    "Measured with 33 topics created within a second after a failover. The controller had read those after 5 and 30 "
    "ms, and was notified from 31 ms on. It reads the brokers just before. That takes 13 ms (median of 322 that had "
    "run for 5 s, with up to 100 partitions) or 31 ms (of 24 with 10,000), and does not grow. A new process takes up "
    "to 0.5 s.",
)
CONTEXT_LOADED: Final = Time(
    700,
    300,
    "The slowest of 506 loads with up to 100 partitions took 0.68 s, in a new process. 28 loads with 10,000 to 12,000 "
    "took 1.2 to 3.7 s. Loads with 200,000 took 28 to 53 s.",
)
FAILED_OVER: Final = Time(
    1_200,
    600,
    "The slowest of 505 failovers with up to 100 partitions took 1.15 s. The median of 24 with 10,000 is 6.2 s, mostly "
    "for the log lines and requests of every replica. A wait for a dead broker may prolong it.",
)

# Actions of an active controller.

HEARD: Final = Time(20, 0, "Chosen. A controller that writes that long after a notification has taken it up.")
FIRST_WRITE: Final = Time(
    100,
    100,
    "Measured with 12 events without a write when /controller was deleted by hand. 5 were in progress and had waited "
    "for 12 to 63 ms. 7 of controllers that hung had waited for 121 ms to 6.5 s. The growth is an estimate.",
)
ACTING: Final = Time(1_000, 0, "Chosen. With the session timeout, it is enough to have begun an event.")
UNFINISHED: Final = Time(
    3_000,
    300,
    "Chosen. An event that no later one has overtaken may still write for this long. It grows like the load before it, "
    "because twice the growth lost the actions of a controller of 1.1 in a term of 9.5 s.",
)
OVERTAKEN: Final = Time(3_000, 0, "Chosen. An event that has not written for this long, while later ones do, is over.")
LONGEST_WAIT: Final = Time(30_000, 0, "The longest wait for a dead broker's connection (controller.socket.timeout.ms).")

# Requests of operators and brokers.

FIRST_REBALANCE: Final = Time(5_000, 0, "From the failover to the first rebalance (Kafka's `onControllerFailover`).")
REBALANCE_SLACK: Final = Time(2_000, 300, "Chosen. For the failover before it, which grows, and for the drift.")
ONE_REBALANCE: Final = Time(2_000, 0, "Chosen. A rebalance writes all leaders of a broker in one batch.")
REQUEST_CONSEQUENCE: Final = Time(
    5_000, 0, "Chosen. From a request that was not read to the last write that it may explain."
)
REPORT_CONSEQUENCE: Final = Time(5_000, 0, "Chosen. From a report of a failed log directory to the last write for it.")

# Answers of brokers.

ANSWER: Final = Time(50, 0, "From the last write before StopReplica to its response. The median of 2,422 was 53 ms.")
STARTING: Final = Time(
    3_000, 0, "A broker that gets StopReplica within this time of its registration still starts (see STARTED)."
)
STARTED: Final = Time(900, 0, "A starting broker answers this long after. The median of 294, from 0.2 to 2.6 s.")
CLOSING_SOCKETS: Final = Time(
    25,
    0,
    "A broker whose controlled shutdown succeeds closes its sockets about as fast as it would answer. 41 were found "
    "closed 22 to 380 ms later, with a median of 81 ms. The request shows only some 20 ms after the broker sent it.",
)
SHUTDOWN_ANSWERED: Final = Time(300, 0, "Chosen. Until a new controller answers a controlled shutdown.")
CLOSING: Final = Time(200, 0, "From a broker's last shutdown attempt to its session's end, 0.07 to 0.5 s from 3.2 on.")
SLOW_CLOSING: Final = Time(2_000, 0, "As CLOSING, 0.7 to 2.6 s up to 3.1.")

# Clocks of the forwarder's machine. A wall clock that differs from the expected time by more than this was set. From
# this difference on chrony sets a clock at once instead of slewing it (`makestep 1 3`). The forwarder reads its two
# clocks within 10 ms of one another.
CLOCK_STEP_MS: Final = 1_000

CLEAN_STOP_MS: Final = 60_000  # how long a clean stop excuses what it takes from clients, by default
