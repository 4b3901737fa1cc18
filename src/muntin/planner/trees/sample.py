"""A fixed sample of positions, so that the edge rate of any tree is an OR and a count of bits.

Short common periods are taken whole, and rates are exact. Otherwise positions are drawn: runs
anywhere in time where edges are dense, else edges themselves, each as likely as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import expm1, gcd, lcm, log, log2

import numpy as np
import numpy.typing as npt

from muntin._typing import Ints, Words
from muntin.planner.trees.groups import Groups

WORD = 64
# Groups whose edges are marked at a time.
ROWS = 64

# Bits of a common period that is taken whole, and words of the largest and smallest sample: with
# 65,536 positions the rate of a tree of independent groups is off by less than half a percent.
WHOLE = 2**19
MOST, FEWEST = 2**12, 2**10
# Words over all groups: past the first samples shrink to the fewest, and none exceeds the second.
BUDGET, MEMORY = 2**21, 2**25
# Edges per position below which positions are drawn from the edges.
SPARSE = 0.25
# Positions lie below this, so that a run of 64 of them fits into 64 bits with any phase.
HORIZON = 2**61
SEED = 2019


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions in steps of `unit` from `origin`, and what an edge at one of them stands for.

    Attributes:
        origin: The position 0 of the sample, in time.
        unit: How far apart neighbouring positions are.
        positions: Where runs of 64 begin, or single positions.
        runs: Whether positions are the beginnings of runs.
        scale: Edges per unit that one marked position stands for.
        whole: The common period, in units, if the sample is all of it; else 0.
    """

    origin: int
    unit: int
    positions: Ints
    runs: bool
    scale: float
    whole: int = 0

    def fits(self, groups: Groups) -> bool:
        """Whether the edges of some groups can be told on these positions."""
        shifts = np.concatenate([groups.first, groups.second[groups.second >= 0]]) - self.origin
        multiples = np.concatenate([groups.period, shifts]) % self.unit == 0
        periods = groups.period // self.unit
        return bool(multiples.all() and (not self.whole or not np.any(self.whole % periods)))

    def mark(self, groups: Groups) -> Words:
        """One row of bits per group: which positions are its edges."""
        period, first, second = in_units(groups, self.origin, self.unit)
        columns = len(self.positions) if self.runs else -(-len(self.positions) // WORD)
        bits = np.zeros((len(groups), columns), dtype=np.uint64)
        order = np.argsort(period, kind="stable")
        bounds = np.flatnonzero(np.diff(period[order], prepend=-1)).tolist()
        for low, high in pairwise([*bounds, len(order)]):
            # Groups of one slide differ in their phases only.
            residues = self.positions % period[order[low]]
            for begin in range(low, high, ROWS):
                rows = order[begin : min(begin + ROWS, high)]
                bits[rows] = self._marked(int(period[rows[0]]), residues, first[rows])
                rows = rows[second[rows] >= 0]
                bits[rows] |= self._marked(int(period[order[low]]), residues, second[rows])
        if self.whole % WORD:
            bits[:, -1] &= np.uint64(2 ** (self.whole % WORD) - 1)
        return bits

    def _marked(self, step: int, residues: Ints, phases: Ints) -> Words:
        """The edges of one slide, a row for each phase."""
        if not self.runs:
            words = -(-len(residues) // WORD)
            rows = [_packed(residues == phase, words) for phase in phases.tolist()]
            return np.array(rows, dtype=np.uint64).reshape(-1, words)
        ahead = phases[:, None] - residues
        ahead[ahead < 0] += step
        return _runs(step, ahead)

    def rate(self, count: float, hits: float, rate: float) -> float:
        """Edges per time unit of a tree with so many marked positions.

        Args:
            count: Positions that are edges of the tree.
            hits: Positions that are edges of its groups, summed over the groups.
            rate: The groups' own edges per time unit, summed.
        """
        sums = rate * self.unit
        return union_rate(self.scale, self.whole > 0, float(count), float(hits), sums) / self.unit


def sample_for(groups: Groups) -> Sample:
    """The sample for some groups; the same groups always get the same sample."""
    origin = int(groups.first[0])
    shifts = np.concatenate([groups.first, groups.second[groups.second >= 0]]) - origin
    unit = gcd(int(np.gcd.reduce(groups.period)), int(np.gcd.reduce(shifts)))
    period, first, second = in_units(groups, origin, unit)
    whole = _whole_period(period)
    if whole:
        bases = np.arange(0, whole, WORD, dtype=np.int64)
        return Sample(origin, unit, bases, runs=True, scale=1 / whole, whole=whole)
    words = max(FEWEST, min(MOST, BUDGET // len(groups)))
    random = np.random.default_rng(SEED)
    density = float(np.sum(np.where(second < 0, 1.0, 2.0) / period))
    if density >= SPARSE:
        bases = random.integers(0, HORIZON, words)
        return Sample(origin, unit, bases, runs=True, scale=1 / (words * WORD))
    edges, kept = _drawn_edges(random, words * WORD, period, first, second)
    return Sample(origin, unit, edges, runs=False, scale=density * kept / len(edges))


def in_units(groups: Groups, origin: int, unit: int) -> tuple[Ints, Ints, Ints]:
    """Periods and phases of groups, counted in units from an origin."""
    period = groups.period // unit
    first = (groups.first - origin) // unit % period
    second = (groups.second - origin) // unit % period
    return period, first, np.where(groups.second < 0, -1, second)


def _packed(marked: npt.NDArray[np.bool_], words: int) -> Words:
    """Flags as bits of words, the first the lowest."""
    padded = np.zeros(words * WORD, dtype=np.bool_)
    padded[: len(marked)] = marked
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


@lru_cache(maxsize=WORD)
def _short_runs(step: int) -> Words:
    """For each distance of the first edge of a run, less than the step, the edges in it."""
    bits = [sum(1 << at for at in range(first, WORD, step)) for first in range(step)]
    return np.array(bits, dtype=np.uint64)


def _runs(step: int, ahead: Ints) -> Words:
    """The edges in runs of 64 positions, the first of them so far ahead."""
    if step < WORD:
        return _short_runs(step)[ahead]
    bits = np.uint64(1) << (ahead & (WORD - 1)).astype(np.uint64)
    return np.where(ahead < WORD, bits, np.uint64(0))


def _whole_period(period: Ints) -> int:
    """The common period, or 0 where it is too long to be written out for every group."""
    longest = min(WHOLE, WORD * MEMORY // len(period))
    common = 1
    for each in np.unique(period).tolist():
        common = lcm(common, each)
        if common > longest:
            return 0
    return common


def _drawn_edges(
    random: np.random.Generator, wanted: int, period: Ints, first: Ints, second: Ints
) -> tuple[Ints, float]:
    """Positions spread evenly over the edges of all groups, and the share of draws kept."""
    weights = np.where(second < 0, 1.0, 2.0) / period
    bounds = np.cumsum(weights) / weights.sum()
    found: list[Ints] = []
    drawn = kept = 0
    # Groups nested in one another keep few draws; sixteen rounds bound the work.
    for _ in range(16):
        owners = np.minimum(np.searchsorted(bounds, random.random(wanted)), len(period) - 1)
        use_second = (random.random(wanted) < 0.5) & (second[owners] >= 0)
        phase = np.where(use_second, second[owners], first[owners])
        repeats = random.integers(0, np.maximum(1, HORIZON // period[owners]))
        positions = phase + period[owners] * repeats
        fresh = _claimed(positions, owners, period, first, second)
        found.append(fresh)
        drawn, kept = drawn + wanted, kept + len(fresh)
        if kept >= wanted:
            break
    return np.concatenate(found)[:wanted], kept / drawn


def _claimed(positions: Ints, owners: Ints, period: Ints, first: Ints, second: Ints) -> Ints:
    """The positions that no group but their owner claims first, by rising slide.

    An edge of several groups is kept for one of them only, so what is kept is spread evenly over
    the edges of all.
    """
    kept = np.zeros(len(positions), dtype=np.bool_)
    left = np.arange(len(positions))
    for group in np.argsort(period, kind="stable"):
        residues = positions[left] % period[group]
        claimed = (residues == first[group]) | (residues == second[group])
        kept[left[claimed]] = owners[left[claimed]] == group
        left = left[~claimed]
    return positions[kept]


# Euler's constant: a harmonic number less the logarithm, in the long run.
EULER = 0.5772156649015329


def union_rate(scale: float, exact: bool, count: float, hits: float, sums: float) -> float:
    """The edge rate of a tree from marked positions and the exact rates of its groups.

    The error of the groups' own counts is known and shared by the tree's, so most of it can be
    taken off; the less, the more the groups overlap.

    Args:
        scale: What one marked position stands for.
        exact: Whether positions are a whole period, so that there is no error.
        count: Positions that are edges of the tree.
        hits: Positions that are edges of a group, summed over its groups.
        sums: The rates of its groups, summed.

    >>> union_rate(0.01, False, 10.0, 12.0, 0.12), union_rate(0.01, False, 0.0, 0.0, 1e-6)
    (0.1, 1e-06)
    """
    if exact:
        return scale * count
    if hits == 0.0:
        return sums
    share = count / hits
    return min(sums, scale * count + share * share * (sums - scale * hits))


def quick_omega(
    technique: int, edges: float, count: float, overlap: float, logs: float, longest: float
) -> float:
    """Ω from four numbers a tree: windows, Σ range/slide, Σ log₂ range and the longest range.

    Exact for panes, FlatFIT and SlickDeque (Non-Inv) but for rounding to whole partials. FlatFAT
    takes the mean logarithm, and SlickDeque (Inv) the distinct values that are expected when
    ranges fall anywhere below the longest. Techniques are numbered as in `TECHNIQUES`.

    >>> quick_omega(0, 0.5, 2.0, 5.0, 5.6, 8.0), quick_omega(2, 0.5, 2.0, 5.0, 5.6, 8.0)
    (5.0, 6.0)
    """
    if technique == 0:
        return overlap
    if technique == 1:
        return max(0.0, logs + count * (log2(edges) + 0.5))
    if technique == 2:
        return 3.0 * count
    partials = max(1.0, edges * longest)
    if technique == 3:
        return 2.0 * max(1.0, -partials * expm1(-count / partials))
    if partials < 1.5:
        return 1.0 + count
    return 2.0 - 1.5 / partials + count + log(partials) + EULER
