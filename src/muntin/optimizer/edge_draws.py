"""Random edges of a set of classes, and in how many of the classes each lies."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from itertools import groupby
from math import gcd
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.windows.edges import EdgeClass

# Edges drawn at a time.
ROUND = 2**13
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
                counts += rests == first
        return counts

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
