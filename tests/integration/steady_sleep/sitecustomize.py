"""Let Python sleep by select(2) while libfaketime sets its wall clock.

Otherwise time.sleep fails with EINVAL, because libfaketime 0.9.10 takes the deadline of clock_nanosleep for a time of
the wall clock.
"""

from __future__ import annotations

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
