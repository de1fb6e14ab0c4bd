"""Differences between the replica and real controllers in large and unusual clusters, by recording and term.

The figures belong here, under names that recordings/README.md explains. They date from the first sight until one of
these recordings corrects a rule. If a figure shrinks, which is a success, write the new one here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.conformance.agreement import Parted

CUT_UNSEEN, CUT_SHORT, DEPOSED = "cut unseen", "cut short", "deposed"
LOADING = "loading"
NOTIFIED, SHUTDOWNS = "notified", "shutdowns"


class Known(NamedTuple):
    """Known differences, by the controller's epoch, and the number of differing gauges at quiet moments, by name.

    `cut` has the epochs that were cut before a write. `impaired` numbers the records before quiet moments at which
    other partitions were impaired than in the rows, for which a dead member of an ISR acknowledges nothing.
    """

    parted: Mapping[int, tuple[str, Parted]]
    gauges: Mapping[str, int]
    cut: Sequence[int] = ()
    impaired: Sequence[int] = ()


LARGE: Mapping[str, Known] = {
    "large39": Known(
        {4: (CUT_UNSEEN, Parted(37, 0, 0, 0)), 6: (LOADING, Parted(15, 157, 6, 2))},
        {
            "replicastodeletecount": 8,
            "rm_atminisrpartitioncount": 3,
            "rm_leadercount": 3,
            "rm_partitioncount": 18,
            "rm_underreplicatedpartitions": 2,
        },
        cut=[2, 4, 8],
        impaired=[10293, 11535, 16691],
    ),
    "roll28to39": Known(
        {1: (SHUTDOWNS, Parted(4, 3, 17, 4))}, {"replicasineligibletodeletecount": 2, "replicastodeletecount": 2}
    ),
    "below39": Known(
        {
            1: (NOTIFIED, Parted(0, 0, 2, 2)),
            2: (NOTIFIED, Parted(0, 0, 3, 3)),
            4: (NOTIFIED, Parted(0, 0, 2, 2)),
            5: (NOTIFIED, Parted(0, 3, 3, 3)),
            6: (NOTIFIED, Parted(0, 1, 2, 2)),
        },
        {"replicasineligibletodeletecount": 11, "replicastodeletecount": 12, "rm_partitioncount": 21},
    ),
    "operator39": Known(
        {},
        {
            "activebrokercount": 4,
            "globalpartitioncount": 4,
            "globaltopiccount": 4,
            "offlinepartitionscount": 4,
            "preferredreplicaimbalancecount": 4,
            "rm_partitioncount": 4,
        },
    ),
    "roll11to24": Known(
        {1: (CUT_SHORT, Parted(14, 0, 0, 0)), 2: (CUT_SHORT, Parted(0, 0, 0, 1)), 3: (CUT_SHORT, Parted(0, 0, 1, 0))},
        {},
        cut=[5],
    ),
    "large28": Known(
        {},
        {
            "preferredreplicaimbalancecount": 19,
            "rm_atminisrpartitioncount": 1,
            "rm_leadercount": 1,
            "rm_partitioncount": 12,
        },
        cut=[2],
        impaired=[12306, 18581],
    ),
    # Its brokers begin with 10,000 partitions, and have not applied their first requests at the first quiet moments.
    "large28b": Known(
        {},
        {
            "preferredreplicaimbalancecount": 46,
            "replicastodeletecount": 32,
            "rm_leadercount": 108,
            "rm_partitioncount": 159,
        },
        cut=[2, 3, 6, 7],
        # In the midst of a reassignment. Rows follow the target, which the next controller had not reached.
        impaired=[11235],
    ),
    "large24": Known(
        {7: (CUT_UNSEEN, Parted(0, 0, 0, 10216))},
        {
            "rm_atminisrpartitioncount": 4,
            "rm_leadercount": 3,
            "rm_partitioncount": 12,
            "rm_underminisrpartitioncount": 4,
            "rm_underreplicatedpartitions": 1,
        },
        cut=[3, 4, 7],
        impaired=[16405],
    ),
    "large11": Known(
        {3: (DEPOSED, Parted(0, 0, 258, 258)), 4: (DEPOSED, Parted(0, 36, 28, 18))},
        {
            "rm_leadercount": 3,
            "rm_partitioncount": 351,
            "rm_underminisrpartitioncount": 1,
            "rm_underreplicatedpartitions": 1,
        },
        cut=[4],
        # A reassignment across a takeover. The rows know the adding replicas, the znodes of this release do not.
        impaired=[10215, 10711, 12259, 12269, 12272, 12353, 12437, 12450, 13363, 13367, 13378],
    ),
}
