"""Measured loops: two or more sides in one run, their order alternated, medians of several."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds that one side took, run by run."""

    side: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of the runs, which a busy moment of the machine does not move."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """The distance from the fastest to the slowest run, relative to the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def measure(sides: Mapping[str, Callable[[], Any]], *, repeats: int = 5) -> dict[str, Timing]:
    """Time every side ``repeats`` times, in turn and in alternating order, after one warm-up.

    >>> timings = measure({"one": lambda: 1, "two": lambda: 2}, repeats=3)
    >>> [len(timing.seconds) for timing in timings.values()]
    [3, 3]
    """
    for run in sides.values():
        run()
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for repeat in range(repeats):
        turn = list(sides) if repeat % 2 == 0 else list(sides)[::-1]
        for side in turn:
            gc.collect()
            begin = time.perf_counter()
            sides[side]()
            seconds[side].append(time.perf_counter() - begin)
    return {side: Timing(side, tuple(runs)) for side, runs in seconds.items()}
