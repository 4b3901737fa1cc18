"""An edge rate that is exact where that is cheap, and otherwise estimated with a stated error.

The estimate draws edges, not times: a class in proportion to its own rate, then one of its edges
at random. An edge that lies in c classes is c times as likely to be drawn, so the mean of 1/c
over the draws, times the sum of the classes' rates, is the rate of the union. Rare edges cost
no more than frequent ones, and where classes hardly overlap there is hardly any error. Thousands of
classes with dense edges are estimated from marked times instead.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from math import gcd, sqrt
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.planner.edges.checks import reduced_classes
from muntin.planner.edges.counts import rate_within
from muntin.windows.edges import EdgeClass

# Classes looked at while digits are eliminated, before the rate is estimated; about 0.1 s.
EDGE_BUDGET = 10**4
# Draws end when the error is below the target, or after this many remainders; about 0.5 s.
TARGET_ERROR = 0.005
REMAINDERS = 10**8
# Standard errors that hold 99 of 100 times: the mean of thousands of draws is nearly normal.
SURE = 2.576
# More classes than this are not worth an attempt at exactness, and drawing edges one by one is
# slow: where they are dense, marking a million times is faster and better.
MANY_CLASSES, POSITIONS = 2000, 2**20
WANTED_ERROR = 0.01
# The stretches of consecutive times that are marked: within one, a class has its share of edges
# but for one, which no independent times would give. By Student's t of eight, the standard errors
# that hold 99 of 100 times.
RUNS, SURE_OF_RUNS, SEED = 8, 3.499, 5


@dataclass(frozen=True)
class EdgeEstimate:
    """An edge rate, and how far to trust it.

    Attributes:
        rate: Edges per time unit.
        error: The relative error, not exceeded in 99 of 100 estimates; 0 where exact.
        exact: Whether the rate is exact, but for its rounding to a float.
        fraction: The rate without rounding, where exact.
    """

    rate: float
    error: float
    exact: bool
    fraction: Fraction | None

    def __str__(self) -> str:
        if self.exact:
            return f"{self.rate:.6g} edges per unit (exact)"
        return f"{self.rate:.6g} edges per unit (estimate, ±{self.error:.2%} in 99 of 100)"


def estimate_edge_rate(
    classes: Iterable[tuple[int, int]], budget: int = EDGE_BUDGET
) -> EdgeEstimate:
    """Edges per time unit: exact within a budget of work, else an estimate that says so.

    The same classes and budget always give the same answer.

    Args:
        classes: Pairs `(slide, shift)`.
        budget: How many classes may be looked at for an exact answer; 0 estimates whatever is
            not plain at first sight.

    >>> print(estimate_edge_rate([(2, 0), (3, 0)]))
    0.666667 edges per unit (exact)
    >>> estimate_edge_rate([(2, 0), (3, 0), (6, 1)], budget=0).exact
    False
    """
    return _estimated(tuple(reduced_classes(classes)), budget)


# A query that joins a tree is weighed with it, and the next one with both: half is known.
@lru_cache(maxsize=64)
def _estimated(kept: tuple[EdgeClass, ...], budget: int) -> EdgeEstimate:
    if len(kept) > MANY_CLASSES:
        found = marked(kept)
        return found if found.error <= WANTED_ERROR else _drawn(kept)
    fraction = rate_within(kept, budget)
    if fraction is not None:
        return EdgeEstimate(float(fraction), 0.0, exact=True, fraction=fraction)
    return _drawn(kept)


def marked(classes: Sequence[EdgeClass], positions: int = POSITIONS) -> EdgeEstimate:
    """The sum of the classes' rates, less what they share at a fixed sample of times.

    Only shared edges are estimated, so classes that never meet have their exact rate. The error is
    from the larger of two deviations: of as many independent edges, and between the runs of the
    sample, which is larger where many classes meet at the same few times. It is large where few
    edges are in the sample.

    >>> found = marked([(2, 0), (3, 0), (4, 0), (5, 0)])
    >>> round(found.rate, 2), found.error < 0.01
    (0.73, True)
    """
    length = positions // RUNS
    begins = np.random.default_rng(SEED).integers(2**61, 2**62, RUNS).tolist()
    marks = np.zeros((RUNS, length), dtype=np.bool_)
    hits = np.zeros(RUNS, dtype=np.int64)
    for slide, shift in classes:
        for run, begin in enumerate(begins):
            first = (shift - begin) % slide
            marks[run, first::slide] = True
            hits[run] += max(0, -((first - length) // slide))
    shared = hits - marks.sum(axis=1, dtype=np.int64)
    total = sum(1 / slide for slide, _ in classes)
    rate = total - int(shared.sum()) / positions
    rate = min(1.0, max(rate, total / max(1, len(classes))))
    if len(classes) < 2:
        return EdgeEstimate(rate, 0.0, exact=False, fraction=None)
    alone = SURE * sqrt(int(shared.sum())) + SURE**2
    between = SURE_OF_RUNS * sqrt(RUNS) * float(shared.std(ddof=1))
    return EdgeEstimate(rate, max(alone, between) / (positions * rate), exact=False, fraction=None)


def _drawn(classes: Sequence[EdgeClass]) -> EdgeEstimate:
    draws = EdgeDraws(classes)
    shares: list[npt.NDArray[np.float64]] = []
    work, error = 0, 1.0
    while error > TARGET_ERROR and work < REMAINDERS:
        shares.append(1 / draws.multiplicities())
        work += draws.work
        seen = np.concatenate(shares)
        deviation = float(seen.std(ddof=1)) / sqrt(len(seen))
        # Where no drawn edge is shared the deviation is 0: the error is never below that of a
        # few shared edges that happened not to be drawn.
        error = (SURE * deviation + SURE**2 / len(seen)) / float(seen.mean())
    rate = min(1.0, sum(1 / slide for slide, _ in classes) * float(seen.mean()))
    return EdgeEstimate(rate, error, exact=False, fraction=None)


# Edges drawn at a time.
ROUND = 2**13
FULL = 2**8 - 1
# Up to this slide edges are drawn from a stretch of 2⁶² time units that begins anywhere and has
# thousands of edges of each class. Longer slides need a longer stretch, and Python's integers.
STRETCH, LONG_SLIDE = 2**62, 2**50


class EdgeDraws:
    """Draws edges: a class in proportion to its rate, then any of its edges.

    Seeded by the classes, so the same classes give the same draws.

    >>> int(EdgeDraws([(2, 0), (4, 1)]).multiplicities().max())
    1
    """

    def __init__(self, classes: Sequence[EdgeClass]) -> None:
        digest = hashlib.sha256(repr(tuple(classes)).encode()).digest()
        self._random = random.Random(digest)
        self._rng = np.random.default_rng(list(digest))
        classes = _rescaled(classes)
        rates = np.array([1 / slide for slide, _ in classes])
        self._shares = rates / rates.sum()
        self._shifts_of: dict[int, list[int]] = {}
        for slide, shift in classes:
            self._shifts_of.setdefault(slide, []).append(shift)
        longest = max(self._shifts_of)
        self._stretch = STRETCH if longest <= LONG_SLIDE else longest**3
        # A remainder of Python's integers takes as long as fifty of numpy's.
        self.work = ROUND * len(self._shifts_of) * (50 if self._stretch > STRETCH else 1)

    def multiplicities(self) -> npt.NDArray[np.int64]:
        """For `ROUND` drawn edges, the number of classes that each lies in; at least 1."""
        begin = self._random.randrange(self._stretch)
        firsts = [
            (slide, (shift - begin) % slide)
            for slide, shifts in self._shifts_of.items()
            for shift in shifts
        ]
        # Times count from the beginning of the stretch, so a class's shift is its first edge.
        times = self._times(firsts)
        counts = np.zeros(ROUND, dtype=np.int64)
        # Bytes are added four times as fast; they hold up to 255 classes.
        few, added = np.zeros(ROUND, dtype=np.uint8), 0
        for slide, alike in groupby(firsts, key=itemgetter(0)):
            # numpy has a fast division by one number, but no fast remainder.
            rests = times - times // slide * slide
            shifts = [first for _, first in alike]
            if len(shifts) > 2 and slide <= ROUND:
                is_edge = np.zeros(slide, dtype=np.int64)
                is_edge[shifts] = 1
                counts += is_edge[rests.astype(np.int64, copy=False)]
                continue
            for first in shifts:
                if added == FULL:
                    counts += few
                    few[:], added = 0, 0
                few += (rests == first).view(np.uint8)
                added += 1
        return counts + few

    def _times(self, firsts: Sequence[EdgeClass]) -> Any:
        drawn = np.repeat(np.arange(len(firsts)), self._rng.multinomial(ROUND, self._shares))
        if self._stretch > STRETCH:
            return np.array(
                [self._any_edge(*firsts[place]) for place in drawn.tolist()], dtype=object
            )
        slides, shifts = np.array(firsts, dtype=np.int64)[drawn].T
        return shifts + slides * self._rng.integers(0, (STRETCH - 1 - shifts) // slides + 1)

    def _any_edge(self, slide: int, first: int) -> int:
        return first + slide * self._random.randrange(self._stretch // slide)


def _rescaled(classes: Sequence[EdgeClass]) -> list[EdgeClass]:
    """The classes in the largest unit that all their edges are multiples of, but for an offset.

    Rates grow by the unit, but shares of edges stay; and in seconds more slides are short than
    in microseconds.
    """
    offset = classes[0][1]
    unit = gcd(*(number for slide, shift in classes for number in (slide, shift - offset)))
    return [(slide // unit, (shift - offset) // unit) for slide, shift in classes]
