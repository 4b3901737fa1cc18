"""Measured loops: two or more sides in one run, their order alternated, medians of several."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, with the lowest and the highest that single runs gave.

    >>> print(Ratio(2.0, 1.8, 2.25))
    2.00× (1.80 to 2.25)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:,.2f}× ({self.low:,.2f} to {self.high:,.2f})"

    @property
    def ranged(self) -> bool:
        """Whether there were several runs: one says nothing about how far runs differ."""
        return self.low < self.high

    def apart(self, other: Ratio) -> bool:
        """Whether the ranges of the two have nothing in common.

        >>> Ratio(2.0, 1.8, 2.25).apart(Ratio(2.3, 2.2, 2.4))
        False
        """
        return self.high < other.low or other.high < self.low


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

    @property
    def milliseconds(self) -> str:
        """The median, and the fastest and the slowest run.

        >>> Timing("side", (0.25, 0.5, 1.5)).milliseconds
        '500.0 (250.0 to 1,500.0)'
        """
        if len(self.seconds) == 1:
            return f"{self.median * 1e3:,.1f} (one run)"
        low, high = min(self.seconds), max(self.seconds)
        return f"{self.median * 1e3:,.1f} ({low * 1e3:,.1f} to {high * 1e3:,.1f})"

    def over(self, base: Timing) -> Ratio:
        """How many times as long as another side, which took turns with this one.

        The range is that of the turns, where both have run equally often: what slows down a turn
        slows down both sides. The ratio of the medians always lies within it.

        >>> print(Timing("slow", (2.0, 4.0, 3.0)).over(Timing("fast", (1.0, 2.0, 1.0))))
        3.00× (2.00 to 3.00)
        """
        if len(self.seconds) == len(base.seconds):
            turns = [a / b for a, b in zip(self.seconds, base.seconds, strict=True)]
        else:
            turns = [a / b for a in self.seconds for b in base.seconds]
        return Ratio(self.median / base.median, min(turns), max(turns))


def measure(sides: Mapping[str, Callable[[], Any]], *, repeats: int = 5) -> dict[str, Timing]:
    """Time every side ``repeats`` times, in turn and in alternating order, after one warm-up.

    >>> timings = measure({"one": lambda: 1, "two": lambda: 2}, repeats=3)
    >>> [len(timing.seconds) for timing in timings.values()]
    [3, 3]
    """
    for run in sides.values():
        run()
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    with only_new_garbage():
        for repeat in range(repeats):
            turn = list(sides) if repeat % 2 == 0 else list(sides)[::-1]
            for side in turn:
                gc.collect()
                begin = time.perf_counter()
                sides[side]()
                seconds[side].append(time.perf_counter() - begin)
    return {side: Timing(side, tuple(runs)) for side, runs in seconds.items()}


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Collections in here look at what was made in here: all else would take a while each time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
