"""Joins of four windows, eager and lazy, by nested loops and hash buckets: Figures 5.2 to 5.4.

The thesis gives seconds per 1,000 tuples; here are the candidates and tuples that were looked at,
to join and to expire, which the seconds of nested loops follow, and which are the same on any
machine. Streams are those of Table 5.5, with rate 10 for the first. Each tick brings one tuple, of
stream i with probability rate_i / 13, so windows are 1,300 ticks long, as the cost model has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muntin._typing import Ints
from muntin.operators.joins.orders import JoinStream, order_cost
from muntin.operators.library import ALGORITHMS, JoinRun, window_join
from muntin_bench.papers.claims import Claim, Part, at_least, at_most
from muntin_bench.report import Plot, Section

STREAMS = (
    JoinStream(10, 100, 40),
    JoinStream(1, 100, 100),
    JoinStream(1, 100, 8),
    JoinStream(1, 100, 5),
)
_RATES = sum(int(each.rate) for each in STREAMS)
_WINDOWS = tuple(int(each.range) * _RATES for each in STREAMS)
# The three that the text names, and the worst; the first is the best.
ORDERS = ((1, 0, 2, 3), (0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1))
NAMES = {
    "eager": "eager",
    "eager_lazy_expiry": "eager, lazy expiry",
    "lazy": "lazy",
    "lazy_restore": "lazy, restoring",
}
_EVERY = 10
_HASHED = 10

Lines = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Trace:
    """Tuples in order of time: one per tick."""

    times: Ints
    streams: Ints
    values: Ints


def trace(count: int, seed: int = 0) -> Trace:
    """Tuples of the four streams, with values spread evenly."""
    random = np.random.default_rng(seed)
    rates = np.array([float(each.rate) for each in STREAMS])
    streams = random.choice(len(STREAMS), count, p=rates / rates.sum())
    values = random.integers(0, np.array([each.values for each in STREAMS])[streams])
    return Trace(np.arange(count), streams, values)


def figures(count: int, intervals: Sequence[int]) -> Part:
    """All of them, over so many tuples, with these intervals between expiries or runs."""
    rows = trace(count)
    looped = _orders(rows, 1)
    hashed = _orders(rows, _HASHED)
    loops = _by_interval(rows, 1, intervals)
    two = _by_interval(rows, 2, intervals)
    five = _by_interval(rows, 5, intervals)
    sections = [
        _ordered("Figure 5.2: orders, relative to 2134, nested loops", looped),
        _ordered(f"Figure 5.2: the same with {_HASHED} buckets", hashed),
        _over("Figure 5.3: looked at per 1,000 tuples, by interval", intervals, loops),
        _over("Figure 5.4: with 2 buckets", intervals, two),
        _over("Figure 5.4: with 5 buckets", intervals, five),
    ]
    plots = tuple(
        Plot(
            name,
            title,
            "interval",
            "looked at per 1,000 tuples",
            {
                each: tuple(zip(map(float, intervals), line, strict=True))
                for each, line in lines.items()
            },
        )
        for name, title, lines in (
            ("figure-5-3", "Figure 5.3", loops),
            ("figure-5-4-2", "Figure 5.4, 2 buckets", two),
            ("figure-5-4-5", "Figure 5.4, 5 buckets", five),
        )
    )
    return Part(tuple(sections), _claims(looped, hashed, loops, two, five), plots)


def _claims(
    looped: Lines, hashed: Lines, loops: Lines, two: Lines, five: Lines
) -> tuple[Claim, ...]:
    ranked = [name for name in looped if list(np.argsort(looped[name])) == [0, 1, 2, 3]]
    eager, lazy, restoring = (NAMES[each] for each in ("eager_lazy_expiry", "lazy", "lazy_restore"))
    predicted, measured = looped["predicted"][2], looped[NAMES["eager"]][2]
    return (
        at_least("Figure 5.2", "ways that rank the orders as predicted, of 5", 5, len(ranked)),
        at_most("Figure 5.2", "2341 over 2134 by eager, predicted 2.63", predicted, measured,
                slack=1.1),
        at_most("Figure 5.2", "worst order by eager, 10 buckets against loops", 1,
                hashed[NAMES["eager"]][3] / looped[NAMES["eager"]][3]),
        at_least("Figure 5.3", "eager over lazy, longest interval", 1,
                 loops[eager][-1] / loops[lazy][-1]),
        at_least("Figure 5.3", "lazy that restores over lazy", 1,
                 loops[restoring][-1] / loops[lazy][-1]),
        at_least("Figure 5.3", "eager over lazy that restores", 1,
                 loops[eager][-1] / loops[restoring][-1]),
        at_least("Figure 5.3", "eager, longest interval over the shortest", 1,
                 loops[eager][-1] / loops[eager][0]),
        at_most("Figure 5.3", "lazy, longest interval over the shortest", 1,
                loops[lazy][-1] / loops[lazy][0]),
        at_most("Figure 5.4", "eager with 5 buckets over 2, shortest interval", 0.75,
                five[eager][0] / two[eager][0]),
        at_most("Figure 5.4", "spread of lazy over intervals, 5 buckets against loops", 1,
                _spread(five[lazy]) / _spread(loops[lazy])),
    )  # fmt: skip


def _spread(line: Sequence[float]) -> float:
    return max(line) - min(line)


def _orders(rows: Trace, buckets: int) -> dict[str, list[float]]:
    """What each order costs by each way, relative to the first."""
    costs = [float(order_cost([STREAMS[i] for i in order])) for order in ORDERS]
    found = {"predicted": [cost / costs[0] for cost in costs]}
    for algorithm in ALGORITHMS:
        runs = [_cost(_run(rows, algorithm, order, _EVERY, buckets)) for order in ORDERS]
        found[NAMES[algorithm]] = [each / runs[0] for each in runs]
    return found


def _by_interval(rows: Trace, buckets: int, intervals: Sequence[int]) -> dict[str, list[float]]:
    """What is looked at per 1,000 tuples, by way and interval; the order is the best one."""
    found: dict[str, list[float]] = {}
    for algorithm in ("eager_lazy_expiry", "lazy", "lazy_restore"):
        runs = [_run(rows, algorithm, ORDERS[0], every, buckets) for every in intervals]
        found[NAMES[algorithm]] = [1000 * _cost(each) / len(rows.times) for each in runs]
    return found


def _run(rows: Trace, algorithm: str, order: Sequence[int], every: int, buckets: int) -> JoinRun:
    given: tuple[Any, ...] = rows.times, rows.streams, rows.values, _WINDOWS
    return window_join(*given, algorithm=algorithm, order=order, every=every, buckets=buckets)


def _cost(run: JoinRun) -> float:
    return float(run.comparisons + run.expiries)


def _ordered(title: str, found: Lines) -> Section:
    names = ["".join(str(each + 1) for each in order) for order in ORDERS]
    lines = tuple(
        (name, *(f"{line[at]:.2f}" for line in found.values())) for at, name in enumerate(names)
    )
    return Section(title, ("order", *found), lines)


def _over(title: str, intervals: Sequence[int], found: Lines) -> Section:
    lines = tuple(
        (str(every), *(f"{line[at]:,.0f}" for line in found.values()))
        for at, every in enumerate(intervals)
    )
    return Section(title, ("interval", *found), lines)
