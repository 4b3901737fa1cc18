"""Edge classes: where the slices of a window begin and end, as arithmetic progressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import gcd
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.errors import WindowError, did_you_mean

Slicing: TypeAlias = Literal["panes", "pairs", "cutty"]
SLICINGS: tuple[Slicing, ...] = ("panes", "pairs", "cutty")

# The times t with (t - phase) mod period = 0, as (period, phase) with 0 <= phase < period.
EdgeClass: TypeAlias = tuple[int, int]

# Times, ranges and slides stay below this, so that sums of two of them fit into 64 bits.
# In microseconds it reaches 146,000 years to either side of the epoch.
TIME_LIMIT = 2**62

# What one call may return; 800 MB of edges is a mistake, not a plan.
MAX_EDGES = 10**8


def edge_classes(range_: int, slide: int, phase: int, slicing: Slicing) -> tuple[EdgeClass, ...]:
    """The edges that a slicing cuts for windows ending at `phase` mod `slide`, without repeats.

    >>> edge_classes(18, 15, 0, "pairs"), edge_classes(18, 15, 0, "panes")
    (((15, 0), (15, 12)), ((3, 0),))
    """
    check_slicing(slicing)
    if slicing == "panes":
        pane = gcd(range_, slide)
        return ((pane, phase % pane),)
    end, start = (slide, phase), (slide, (phase - range_) % slide)
    if slicing == "cutty":
        return (start,)
    return (end,) if start == end else (end, start)


def check_slicing(slicing: Slicing) -> None:
    """Refuses what is none of `SLICINGS`."""
    if slicing not in SLICINGS:
        raise WindowError(f"unknown slicing {slicing!r}", hint=did_you_mean(str(slicing), SLICINGS))


def reduce_classes(classes: Iterable[EdgeClass]) -> tuple[EdgeClass, ...]:
    """The fewest of the given classes that have the same edges together, in order.

    A class is left out when another one has all of its edges: its period is a multiple of the
    other's, and the phases agree.

    >>> reduce_classes([(10, 5), (5, 0), (10, 3), (5, 0)])
    ((5, 0), (10, 3))
    """
    kept: set[EdgeClass] = set()
    periods: list[int] = []
    for period, alike in groupby(sorted(set(classes)), key=itemgetter(0)):
        divisors = [other for other in periods if period % other == 0]
        fresh = [
            (period, phase)
            for _, phase in alike
            if not any((other, phase % other) in kept for other in divisors)
        ]
        if fresh:
            kept.update(fresh)
            periods.append(period)
    return tuple(sorted(kept))


def next_edge(edge_class: EdgeClass, position: int) -> int:
    """The first edge of a class strictly after a position, whatever its sign.

    >>> next_edge((15, 12), 12), next_edge((15, 12), -4)
    (27, -3)
    """
    period, phase = edge_class
    return position + period - (position - phase) % period


def edge_after(classes: Iterable[EdgeClass], position: int) -> int:
    """The first edge of all classes strictly after a position: where its slice ends.

    >>> edge_after([(15, 0), (15, 12)], 12)
    15
    """
    return min(next_edge(edge_class, position) for edge_class in classes)


def edge_until(classes: Iterable[EdgeClass], position: int) -> int:
    """The last edge of all classes at a position or before it: where its slice starts.

    >>> edge_until([(15, 0), (15, 12)], 12), edge_until([(15, 0), (15, 12)], 11)
    (12, 0)
    """
    return max(position - (position - phase) % period for period, phase in classes)


def edges_between(classes: Sequence[EdgeClass], lo: int, hi: int) -> npt.NDArray[np.int64]:
    """The edges of all classes in [lo, hi), sorted and without repeats.

    Costs what it returns, not what the classes' common period would hold.

    >>> edges_between([(15, 0), (15, 12)], -3, 28).tolist()
    [-3, 0, 12, 15, 27]
    """
    _check_bounds(lo, hi)
    firsts = [next_edge(edge_class, lo - 1) for edge_class in classes]
    counts = [
        max(0, -((first - hi) // period))
        for first, (period, _) in zip(firsts, classes, strict=True)
    ]
    if sum(counts) > MAX_EDGES:
        raise WindowError(
            f"[{lo}, {hi}) holds up to {sum(counts)} edges",
            hint="ask for the edges near the rows only, and seek past a gap",
        )
    # Counted in Python's integers: numpy.arange(first, hi, period) counts in floats.
    runs = [
        first + period * np.arange(count, dtype=np.int64)
        for first, count, (period, _) in zip(firsts, counts, classes, strict=True)
        if count
    ]
    return np.unique(np.concatenate(runs)) if runs else np.empty(0, dtype=np.int64)


def _check_bounds(lo: int, hi: int) -> None:
    for bound in (lo, hi):
        if not -TIME_LIMIT <= bound <= TIME_LIMIT:
            raise WindowError(
                f"time {bound} is out of range", hint="times lie between -2**62 and 2**62"
            )
