"""Rates of techniques over windows of growing size, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muntin.aggregators import Aggregator
from muntin_bench.aggregators.work import STREAM, Workload, full

_LARGEST_RUN = STREAM // 4


@dataclass(frozen=True)
class Rate:
    """What one technique did on one window; `slower` is its slowest run over its fastest."""

    technique: str
    window: int
    steps: int
    seconds: float
    operations: float
    bytes_per_partial: float
    slower: float = 1.0

    @property
    def per_second(self) -> float:
        """Steps per second: the median of several runs."""
        return self.steps / self.seconds


def rates(
    work: Workload, windows: Sequence[int], budget: float, repeats: int = 3
) -> Iterator[Rate]:
    """Time every technique on every window, for about `budget` seconds each.

    The techniques take turns, in alternating order, so that a busy moment of the machine falls
    on all of them.
    """
    for window in windows:
        sides = {name: full(work, name, window) for name in work.techniques}
        steps = {name: _affordable(side, work, budget / repeats) for name, side in sides.items()}
        before = {name: side.operations for name, side in sides.items()}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for repeat in range(repeats):
            for name in list(sides)[:: 1 if repeat % 2 == 0 else -1]:
                seconds[name].append(_seconds(sides[name], work, steps[name]))
        for name, side in sides.items():
            done = side.operations - before[name]
            yield Rate(
                name,
                window,
                steps[name],
                statistics.median(seconds[name]),
                done / (steps[name] * repeats),
                side.nbytes / window,
                max(seconds[name]) / min(seconds[name]),
            )


def _affordable(side: Aggregator, work: Workload, budget: float) -> int:
    """How many steps fit into so many seconds, found by doubling."""
    steps = 1
    while True:
        # The faster of two: one may have been interrupted.
        taken = min(_seconds(side, work, steps) for _ in range(2))
        if taken > budget / 4 or steps >= _LARGEST_RUN:
            return max(1, min(_LARGEST_RUN, int(steps * budget / max(taken, 1e-9))))
        steps *= 4


def _seconds(side: Aggregator, work: Workload, steps: int) -> float:
    values = work.take(0, steps)
    begin = time.perf_counter()
    answers = side.run(values)
    taken = time.perf_counter() - begin
    # The answers are there to be read: reading one keeps that honest.
    assert len(answers) == steps
    return taken
