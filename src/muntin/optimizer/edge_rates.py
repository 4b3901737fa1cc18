"""Edge rates for an optimizer that asks about very many unions of classes."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from muntin.optimizer.edge_checks import checked_classes, period_of, reduced_classes
from muntin.optimizer.edge_counting import rate_within
from muntin.optimizer.edge_estimate import estimate_edge_rate
from muntin.optimizer.edge_sample import SAMPLE_POSITIONS, EdgeSample, SampledEdges
from muntin.windows.edges import EdgeClass

# Work spent on an exact answer before the sample is asked; well below a millisecond for the few
# classes that small trees have.
QUICK = 200
# What is kept before a cache starts again: 64 MB of samples with the default positions.
KEPT_SAMPLES, KEPT_RATES = 2**11, 2**20

ClassSet = frozenset[EdgeClass]


class EdgeRates:
    """Edges per time unit of sets of classes, each set answered once.

    Small sets are counted exactly, larger ones read off a shared sample where that is within the
    tolerance, and estimated on their own where it is not.

    Args:
        tolerance: The relative error that the sample may have.
        sample_positions: The size of the sample.

    Attributes:
        error: The largest relative error of any answer so far, as its method states it.

    >>> rates = EdgeRates()
    >>> rates.of([(2, 0), (3, 0)]), rates.union([(2, 0), (3, 0)], [(5, 0)]), rates.error
    (0.6666666666666666, 0.7333333333333333, 0.0)
    """

    def __init__(self, tolerance: float = 0.01, sample_positions: int = SAMPLE_POSITIONS) -> None:
        self.error = 0.0
        self._tolerance = tolerance
        self._sampled = SampledEdges(sample_positions)
        self._rates: dict[ClassSet, float] = {}
        self._periods: dict[ClassSet, int] = {}
        self._samples: dict[ClassSet, EdgeSample] = {}

    def of(self, classes: Iterable[tuple[int, int]]) -> float:
        """Edges per time unit of a set of classes."""
        key = _key(classes)
        found = self._rates.get(key)
        return self._kept(key, self._counted(key)) if found is None else found

    def union(self, first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]) -> float:
        """Edges per time unit of two sets together; frozensets of checked classes are fastest.

        Sets whose slides share no divisor are independent, and the answer follows from theirs;
        otherwise their samples are joined rather than made again.
        """
        one, other = _key(first), _key(second)
        key = one | other
        found = self._rates.get(key)
        if found is not None:
            return found
        if gcd(self._period(one), self._period(other)) == 1:
            free = (1 - self.of(one)) * (1 - self.of(other))
            return self._kept(key, 1 - free)
        return self._kept(key, self._counted(key, (one, other)))

    def _counted(self, key: ClassSet, parts: tuple[ClassSet, ...] = ()) -> float:
        # Work is at least the number of classes, so larger sets need no attempt.
        if len(key) <= QUICK:
            exact = rate_within(reduced_classes(key), QUICK)
            if exact is not None:
                return float(exact)
        sample = self._sample(key, parts)
        if sample.error <= self._tolerance:
            self.error = max(self.error, sample.error)
            return sample.rate
        estimate = estimate_edge_rate(key)
        self.error = max(self.error, estimate.error)
        return estimate.rate

    def _sample(self, key: ClassSet, parts: tuple[ClassSet, ...] = ()) -> EdgeSample:
        found = self._samples.get(key)
        if found is None:
            if len(self._samples) >= KEPT_SAMPLES:
                self._samples.clear()
            if parts:
                found = self._sampled.union(*(self._sample(part) for part in parts))
            else:
                found = self._sampled.of(key)
            self._samples[key] = found
        return found

    def _period(self, key: ClassSet) -> int:
        if key not in self._periods:
            if len(self._periods) >= KEPT_RATES:
                self._periods.clear()
            self._periods[key] = period_of(key)
        return self._periods[key]

    def _kept(self, key: ClassSet, rate: float) -> float:
        if len(self._rates) >= KEPT_RATES:
            self._rates.clear()
        self._rates[key] = rate
        return rate


def _key(classes: Iterable[tuple[int, int]]) -> ClassSet:
    return classes if isinstance(classes, frozenset) else frozenset(checked_classes(classes))
