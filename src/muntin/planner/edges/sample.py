"""A fixed sample of times shared by all sets of classes: a union's rate is an OR and a count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.errors import WindowError
from muntin.planner.edges.checks import reduced_classes
from muntin.windows.edges import EdgeClass

SAMPLE_POSITIONS = 2**18
# Stretches of consecutive times the sample consists of: within one, a class has its share of
# edges but for one, which no independent positions would give.
RUNS = 8
SEED = 5
# Standard errors that hold 99 of 100 times: of a mean of many, and by Student's t of eight.
SURE, SURE_OF_RUNS = 2.576, 3.499
WORD = 64

Counts: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class EdgeSample:
    """Which positions of the sample are edges of a set of classes.

    Attributes:
        classes: The set; no two of its classes are the same.
        words: One bit a position, one row a run.
        total: The sum of the classes' own rates, exact but for rounding.
        hits: Edges in each run, counted in each class.
        marked: Edges in each run, each counted once.
    """

    classes: frozenset[EdgeClass]
    words: npt.NDArray[np.uint64]
    total: float
    hits: Counts
    marked: Counts

    @property
    def rate(self) -> float:
        """Edges per time unit: the sum of the rates, less what the sample says is shared.

        Only the shared edges are estimated, so a set whose classes never meet has no error.
        """
        shared = int((self.hits - self.marked).sum()) / (WORD * self.words.size)
        return min(1.0, max(self.total - shared, self.total / max(1, len(self.classes))))

    @property
    def error(self) -> float:
        """The relative error that `rate` keeps in 99 of 100 sets.

        From the larger of two deviations: of as many independent edges, and between the runs,
        which is larger where many classes meet at the same few times. Large for sets with few
        edges in the sample: these are better counted exactly.
        """
        if len(self.classes) < 2:
            return 0.0
        shared = self.hits - self.marked
        alone = SURE * sqrt(int(shared.sum())) + SURE**2
        between = SURE_OF_RUNS * sqrt(RUNS) * float(shared.std(ddof=1))
        return max(alone, between) / (WORD * self.words.size * self.rate)


class SampledEdges:
    """Sampled sets of classes, over one sample that never changes.

    The stated error is below 1% for classes that meet by chance once their set has a thousand
    edges in the sample. It is larger, and `EdgeSample.error` says so, for fewer edges and for
    classes that meet often.

    Args:
        sample_positions: How many times to look at, a multiple of 512.

    >>> sampled = SampledEdges()
    >>> both = sampled.union(sampled.of([(2, 0), (3, 0)]), sampled.of([(4, 0), (5, 0)]))
    >>> round(both.rate, 2), both.error < 0.01
    (0.73, True)
    """

    def __init__(self, sample_positions: int = SAMPLE_POSITIONS) -> None:
        if sample_positions <= 0 or sample_positions % (RUNS * WORD):
            raise WindowError(
                f"{sample_positions} sample positions",
                hint=f"use a positive multiple of {RUNS * WORD}",
            )
        self.positions = sample_positions
        rng = np.random.default_rng(SEED)
        self._begins: list[int] = rng.integers(2**61, 2**62, RUNS).tolist()

    def of(self, classes: Iterable[tuple[int, int]]) -> EdgeSample:
        """The sample of a set of classes, after those that add no edge are dropped."""
        kept = reduced_classes(classes)
        marks = np.zeros((RUNS, self.positions // RUNS), dtype=np.bool_)
        hits = np.zeros(RUNS, dtype=np.int64)
        for edge_class in kept:
            hits += self._mark(marks, edge_class)
        words = np.packbits(marks, axis=1).view(np.uint64)
        total = sum(1 / slide for slide, _ in kept)
        return EdgeSample(frozenset(kept), words, total, hits, _marked(words))

    def union(self, first: EdgeSample, second: EdgeSample) -> EdgeSample:
        """The sample of two sets together, without looking at the classes they do not share."""
        total, hits = first.total + second.total, first.hits + second.hits
        if not first.classes.isdisjoint(second.classes):
            # What both have is in both sums; as classes are known, it need not be estimated.
            for edge_class in first.classes & second.classes:
                total -= 1 / edge_class[0]
                hits -= self._hits(edge_class)
        words = first.words | second.words
        return EdgeSample(first.classes | second.classes, words, total, hits, _marked(words))

    def _mark(self, marks: npt.NDArray[np.bool_], edge_class: EdgeClass) -> Counts:
        slide, shift = edge_class
        for run, begin in zip(marks, self._begins, strict=True):
            run[(shift - begin) % slide :: slide] = True
        return self._hits(edge_class)

    def _hits(self, edge_class: EdgeClass) -> Counts:
        slide, shift = edge_class
        length = self.positions // RUNS
        firsts = ((shift - begin) % slide for begin in self._begins)
        return np.array([max(0, -((first - length) // slide)) for first in firsts], dtype=np.int64)


def _marked(words: npt.NDArray[np.uint64]) -> Counts:
    counts: Counts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return counts
