"""Ticks as a time column shows them: whole numbers, dates or times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.plan.timeline import Timeline

_EPOCH = dt.datetime(1970, 1, 1)


def shown_time(timeline: Timeline, tick: int | None) -> Any:
    """A tick as the time column shows it."""
    return shower(timeline)(tick)


@lru_cache
def shower(timeline: Timeline) -> Callable[[int | None], Any]:
    """What shows ticks of a timeline; for times, a few additions instead of an array.

    >>> shower(Timeline("ts", pa.timestamp("s", "UTC")))(1_700_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=...)
    """
    step = timeline.resolution

    def exact(tick: int) -> Any:
        return timeline.from_ticks(np.array([tick])).to_pylist()[0]

    zone = getattr(exact(0), "tzinfo", None)
    # Where every hour has the same offset, there is no rule to look up.
    epoch = _EPOCH.replace(tzinfo=zone) if str(zone) == "UTC" else _EPOCH
    is_plain = timeline.plain
    is_time = pa.types.is_timestamp(timeline.type) and timeline.type.unit != "ns"

    def show(tick: int | None) -> Any:
        if tick is None:
            return None
        tick -= tick % step
        if is_plain:
            return tick
        if not is_time:
            return exact(tick)
        try:
            time = epoch + dt.timedelta(microseconds=tick)
        except OverflowError:
            return exact(tick)
        return time if time.tzinfo is zone else time.replace(tzinfo=dt.UTC).astimezone(zone)

    return show
