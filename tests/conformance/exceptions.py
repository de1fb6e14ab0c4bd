"""Remaining differences between the replica and real controllers after random actions, by name and count.

The figures and the names of differing gauges belong here. Each name is a row of
docs/explanation/what-a-replica-cannot-know.md, which explains it. A figure that shrinks is a success. Write it down
here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.agreement import Parted
from tests.conformance.gauge_samples import Differing

ANSWERS, ORDER, CUT_SHORT, DEPOSED = "answers", "order", "cut short", "deposed"
SILENT_SHUTDOWN = "silent shutdown"
ZOMBIE, UNTOLD, EARLY = "zombie", "untold", "early"
JUST_REGISTERED, STRAYS, DRIFT = "just registered", "strays", "drift"

# By recording and the controller's epoch, moves and requests that only the controller's or only the replica's account
# has.
PARTED: Mapping[str, Mapping[int, tuple[str, Parted]]] = {
    "fuzz39a": {7: (ANSWERS, Parted(1, 0, 0, 0)), 8: (ANSWERS, Parted(2, 0, 0, 0))},
    "fuzz28a": {},
    "fuzz39b": {},
    "fuzz28b": {},
    "fuzz28c": {2: (ANSWERS, Parted(10, 0, 0, 0))},
    "fuzz28d": {},
    "fuzz28e": {1: (ANSWERS, Parted(0, 5, 0, 0)), 10: (ORDER, Parted(0, 1, 0, 4))},
    "fuzz28f": {1: (SILENT_SHUTDOWN, Parted(0, 0, 8, 8))},
    "fuzz28g": {},
    "fuzz28h": {},
    "fuzz39c": {2: (SILENT_SHUTDOWN, Parted(0, 1, 0, 4)), 9: (ANSWERS, Parted(3, 21, 0, 7))},
    "fuzz39d": {2: (ANSWERS, Parted(8, 0, 0, 0)), 7: (CUT_SHORT, Parted(0, 9, 0, 0))},
    "fuzz39e": {11: (ANSWERS, Parted(1, 3, 0, 0))},
    "fuzz39f": {},
    "fuzz39g": {8: (ANSWERS, Parted(2, 0, 0, 0)), 11: (ANSWERS, Parted(0, 1, 0, 0))},
    "fuzz39h": {14: (SILENT_SHUTDOWN, Parted(0, 0, 10, 0)), 19: (ORDER, Parted(0, 0, 26, 26))},
    "fuzz0102a": {5: (UNTOLD, Parted(0, 6, 0, 0)), 6: (EARLY, Parted(0, 3, 3, 3)), 9: (EARLY, Parted(3, 0, 5, 2))},
    "fuzz011a": {4: (UNTOLD, Parted(0, 1, 0, 0)), 6: (UNTOLD, Parted(0, 1, 0, 0)), 13: (EARLY, Parted(0, 0, 4, 4))},
    "fuzz10a": {5: (UNTOLD, Parted(0, 1, 0, 0)), 17: (ANSWERS, Parted(1, 0, 0, 0)), 18: (UNTOLD, Parted(0, 15, 0, 0))},
    "fuzz20a": {
        1: (CUT_SHORT, Parted(1, 0, 5, 0)),
        16: (ZOMBIE, Parted(0, 0, 0, 2)),
        17: (ANSWERS, Parted(0, 1, 0, 0)),
    },
    "fuzz20b": {10: (ANSWERS, Parted(13, 0, 0, 0))},
    "fuzz22a": {3: (CUT_SHORT, Parted(8, 0, 8, 0))},
    "fuzz23a": {4: (ANSWERS, Parted(5, 0, 2, 2))},
    "fuzz24a": {3: (ANSWERS, Parted(3, 0, 0, 0))},
    "fuzz26a": {},
    "fuzz27a": {4: (ANSWERS, Parted(6, 5, 0, 1)), 5: (ANSWERS, Parted(13, 0, 0, 0))},
    "fuzz30a": {6: (CUT_SHORT, Parted(14, 0, 0, 0))},
    "fuzz32a": {6: (SILENT_SHUTDOWN, Parted(15, 0, 53, 0)), 7: (ANSWERS, Parted(3, 6, 0, 0))},
    "fuzz28i": {5: (SILENT_SHUTDOWN, Parted(11, 0, 36, 0))},
    "fuzz20c": {
        1: (DEPOSED, Parted(16, 0, 0, 0)),
        2: (DEPOSED, Parted(0, 24, 7, 16)),
        13: (ANSWERS, Parted(8, 0, 7, 1)),
        14: (ANSWERS, Parted(3, 0, 0, 0)),
        17: (EARLY, Parted(0, 0, 5, 5)),
    },
    "fuzz11a": {
        7: (ORDER, Parted(0, 3, 0, 3)),
        8: (ANSWERS, Parted(2, 0, 0, 0)),
        10: (DEPOSED, Parted(0, 0, 8, 8)),
        12: (ANSWERS, Parted(9, 2, 3, 0)),
        13: (ANSWERS, Parted(0, 2, 0, 0)),
    },
    "fuzz11b": {},
    "fuzz11c": {5: (EARLY, Parted(0, 0, 2, 2))},
    "fuzz20d": {5: (ORDER, Parted(1, 0, 9, 5))},
    "fuzz20e": {2: (DEPOSED, Parted(0, 1, 0, 2)), 3: (DEPOSED, Parted(4, 9, 0, 14))},
    "fuzz20f": {2: (CUT_SHORT, Parted(6, 0, 18, 0)), 4: (ORDER, Parted(5, 0, 5, 0)), 6: (ANSWERS, Parted(0, 2, 0, 0))},
    "fuzz35a": {},
    "fuzz24b": {1: (ANSWERS, Parted(4, 8, 0, 4)), 2: (ANSWERS, Parted(4, 0, 0, 0)), 5: (ORDER, Parted(2, 4, 0, 1))},
}

# By recording, gauges that differed at a quiet moment.
GAUGES: Mapping[str, Mapping[str, int]] = {
    "fuzz39a": {ANSWERS: 10, JUST_REGISTERED: 6},
    "fuzz28a": {ANSWERS: 17, DRIFT: 5, JUST_REGISTERED: 6, STRAYS: 50},
    "fuzz39b": {ANSWERS: 26, JUST_REGISTERED: 10, STRAYS: 75},
    "fuzz28b": {DRIFT: 57, JUST_REGISTERED: 10},
    "fuzz28c": {ANSWERS: 21, DRIFT: 28, JUST_REGISTERED: 22, STRAYS: 25},
    "fuzz28d": {ANSWERS: 3, DRIFT: 7, JUST_REGISTERED: 3, STRAYS: 41},
    # A write by a reassignment dropped partitions from the topic znode: at five moments a broker counts one of them.
    "fuzz28e": {ANSWERS: 20, JUST_REGISTERED: 5, ORDER: 1, STRAYS: 189},
    "fuzz28f": {DRIFT: 12, STRAYS: 40},
    "fuzz28g": {ANSWERS: 18, JUST_REGISTERED: 11, STRAYS: 71},
    "fuzz28h": {ANSWERS: 14, DRIFT: 3, JUST_REGISTERED: 8, STRAYS: 29},
    "fuzz39c": {ANSWERS: 74, JUST_REGISTERED: 23, STRAYS: 78},
    "fuzz39d": {ANSWERS: 13, JUST_REGISTERED: 11, STRAYS: 54},
    "fuzz39e": {ANSWERS: 9, STRAYS: 95},
    "fuzz39f": {JUST_REGISTERED: 27, STRAYS: 22},
    "fuzz39g": {ANSWERS: 8, JUST_REGISTERED: 15},
    "fuzz39h": {JUST_REGISTERED: 16},
    "fuzz0102a": {JUST_REGISTERED: 16, STRAYS: 5},
    "fuzz011a": {JUST_REGISTERED: 12, ORDER: 1},
    "fuzz10a": {JUST_REGISTERED: 2, ORDER: 2, STRAYS: 28},
    "fuzz20a": {},
    "fuzz20b": {ORDER: 3, STRAYS: 4},
    "fuzz22a": {JUST_REGISTERED: 15, STRAYS: 4},
    "fuzz23a": {JUST_REGISTERED: 9},
    "fuzz24a": {ANSWERS: 12, STRAYS: 3},
    "fuzz26a": {JUST_REGISTERED: 33, STRAYS: 16},
    "fuzz27a": {ANSWERS: 23, DRIFT: 1},
    "fuzz30a": {ANSWERS: 6, JUST_REGISTERED: 6, STRAYS: 14},
    "fuzz32a": {ANSWERS: 22, STRAYS: 10},
    "fuzz35a": {},
    "fuzz28i": {DRIFT: 23, JUST_REGISTERED: 7},
    "fuzz20c": {JUST_REGISTERED: 3, STRAYS: 11},
    "fuzz11a": {JUST_REGISTERED: 6, STRAYS: 7},
    "fuzz11b": {DRIFT: 7, STRAYS: 6},
    "fuzz11c": {JUST_REGISTERED: 1},
    "fuzz20d": {DRIFT: 4, STRAYS: 6},
    "fuzz20e": {STRAYS: 16},
    "fuzz20f": {JUST_REGISTERED: 4},
    "fuzz24b": {ANSWERS: 12, DRIFT: 2, JUST_REGISTERED: 9, STRAYS: 1},
}


def why(differing: Differing) -> str:
    """Return the name of the reason why a gauge differs."""
    if differing.gauge.startswith("rm_"):
        return STRAYS if differing.real > differing.ours else JUST_REGISTERED
    if "delete" in differing.gauge:
        return ANSWERS
    if not differing.real:
        return JUST_REGISTERED  # the broker is named controller, but never took over
    return DRIFT if differing.gauge == "preferredreplicaimbalancecount" else ORDER
