"""What the replica and real controllers disagree on in large and unusual clusters, by recording and term.

Here belong the figures, under names that recordings/README.md explains. They are those of the first sight until a rule
is mended by one of these recordings: a figure that shrinks is a success, write it down here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.conformance.agreement import Parted

CUT_UNSEEN, LOADING = "cut unseen", "loading"
NOTIFIED, SHUTDOWNS = "notified", "shutdowns"
CUT_SHORT, DEPOSED = "cut short", "deposed"


class Known(NamedTuple):
    """Where the accounts part by the controller's epoch, and how many gauges differ at quiet moments.

    Of the quiet moments at which other partitions had no leader than the rows say, the numbers of the records;
    None where that was not looked at yet.
    """

    parted: Mapping[int, tuple[str, Parted]]
    gauges: int
    leaderless: Sequence[int] | None = []


LARGE: Mapping[str, Known] = {
    "large39": Known(
        {
            2: (CUT_UNSEEN, Parted(29_400, 0, 29_400, 0)),
            4: (CUT_UNSEEN, Parted(30_183, 0, 30_042, 0)),
            6: (LOADING, Parted(15, 157, 4, 0)),
            9: (LOADING, Parted(3, 144, 476, 440)),
            10: (LOADING, Parted(0, 0, 0, 132)),
        },
        248,
        leaderless=None,
    ),
    "roll28to39": Known(
        {
            1: (SHUTDOWNS, Parted(4, 3, 17, 4)),
            3: (SHUTDOWNS, Parted(0, 0, 1, 0)),
        },
        4,
    ),
    "below39": Known(
        {
            1: (NOTIFIED, Parted(0, 0, 2, 2)),
            2: (NOTIFIED, Parted(0, 0, 3, 3)),
            4: (NOTIFIED, Parted(0, 0, 2, 2)),
            5: (NOTIFIED, Parted(0, 3, 3, 3)),
            6: (NOTIFIED, Parted(0, 1, 2, 2)),
        },
        50,
    ),
    "operator39": Known(
        {},
        24,
        leaderless=[666],  # the last record of all: elections are due that nobody writes any more
    ),
    "roll11to24": Known(
        {
            1: (CUT_SHORT, Parted(14, 0, 0, 0)),
            2: (CUT_SHORT, Parted(0, 0, 0, 1)),
            3: (CUT_SHORT, Parted(0, 0, 1, 0)),
        },
        0,
    ),
    "large28": Known(
        {
            2: (CUT_UNSEEN, Parted(35_400, 0, 35_400, 0)),
            3: (LOADING, Parted(27, 3, 849, 0)),
        },
        127,
        leaderless=None,
    ),
    "large24": Known(
        {
            2: (LOADING, Parted(15, 4, 10, 0)),
            4: (CUT_UNSEEN, Parted(28_628, 0, 28_628, 0)),
            5: (LOADING, Parted(0, 0, 0, 3)),
            7: (CUT_UNSEEN, Parted(26_385, 0, 16_169, 0)),
            9: (LOADING, Parted(42, 7, 17, 2)),
        },
        50,
        leaderless=None,
    ),
    "large11": Known(
        {
            2: (DEPOSED, Parted(1_593, 16, 3_567, 0)),
            3: (DEPOSED, Parted(0, 845, 258, 258)),
            4: (DEPOSED, Parted(0, 83, 28, 18)),
        },
        559,
        leaderless=None,
    ),
}
