"""Seconds of processor time, and the constants that explain them by counts of work."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.planner.costs.machine import fitted
from muntin_bench.measure import only_new_garbage

__all__ = ["deviation", "fitted", "processor_seconds"]


def processor_seconds(sides: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The fastest of some runs of every side, in turn and in alternating order, after a warm-up.

    Processor time, because other processes on the machine lengthen the time on the clock; the
    fastest, because they also take the caches, which only ever adds.

    >>> sorted(processor_seconds({"one": lambda: 1, "two": lambda: 2}, repeats=1))
    ['one', 'two']
    """
    for work in sides.values():
        work()
    taken: dict[str, list[float]] = {side: [] for side in sides}
    with only_new_garbage():
        for repeat in range(repeats):
            for side in list(sides)[:: 1 if repeat % 2 == 0 else -1]:
                gc.collect()
                begin = time.process_time()
                sides[side]()
                taken[side].append(time.process_time() - begin)
    return {side: min(seconds) for side, seconds in taken.items()}


def deviation(estimated: Sequence[float], measured: Sequence[float]) -> float:
    """How far estimated throughputs are from measured ones: the mean of |estimated / measured - 1|.

    Both are given as seconds, of which a throughput is the inverse.

    >>> deviation([2.0, 1.0], [1.0, 1.0])
    0.25
    """
    estimates: npt.NDArray[np.float64] = np.asarray(estimated)
    return float(np.mean(np.abs(np.asarray(measured) / estimates - 1)))
