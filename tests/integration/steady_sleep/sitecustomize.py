"""Python sleeps by select(2) while libfaketime sets its wall clock.

libfaketime 0.9.10 takes the deadline of clock_nanosleep for one of the wall clock, and time.sleep fails with EINVAL.
"""

from __future__ import annotations

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
