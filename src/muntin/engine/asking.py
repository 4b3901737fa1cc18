"""Which windows the queries of a family ask for, among the slices that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.engine.families import Family

Ints = npt.NDArray[np.int64]

# Windows that outnumber slices by far, or very many, are better looked for group by group.
_MOST_PER_SLICE = 4
_FEW_WINDOWS = 1 << 10
# Pairs of query and window.
_MOST_RUNS = 1 << 22


@dataclass(frozen=True)
class Asking:
    """Windows of a family, and its runs: the pairs of query and window, in that order.

    Window w covers the slices from ``lows[w]`` to ``highs[w] - 1``; lows do not fall. ``numbers``
    and ``windows`` give the number of each run's window in its query and its place here,
    ``members`` the place of its predicate; the runs of query q begin at ``offsets[q]``.
    """

    lows: Ints
    highs: Ints
    numbers: Ints
    windows: Ints
    members: Ints
    offsets: Ints

    @property
    def edges(self) -> tuple[Ints, Ints]:
        """For each run, the first slice of its window, and the first after it."""
        return self.lows[self.windows], self.highs[self.windows]

    def reach(self, slices: int) -> tuple[Ints, Ints]:
        """For each slice, the first window that ends after it, and one past the last before it.

        The first is right for all that follow it in time: none before ends later.
        """
        each = np.arange(slices)
        latest = np.maximum.accumulate(self.highs)
        firsts = np.searchsorted(latest, each, side="right")
        return firsts, np.searchsorted(self.lows, each, side="right")


def ask(family: Family, starts: Ints, members: Sequence[int]) -> Asking | None:
    """What a family asks of slices that start at ``starts``, in order; None if that is too much."""
    specs, spec_of = np.unique(family.windows, axis=0, return_inverse=True)
    spec_of = spec_of.reshape(-1)
    ranges, slides, phases, least, most = specs.T
    lowest = np.maximum((starts[0] - phases) // slides + 1, least)
    highest = np.minimum((starts[-1] + ranges - phases) // slides, most)
    sizes = np.maximum(highest - lowest + 1, 0)
    if sizes.sum(dtype=np.float64) > _FEW_WINDOWS + _MOST_PER_SLICE * starts.size * len(specs):
        return None
    if sizes[spec_of].sum() > _MOST_RUNS:
        return None
    owners, places = _listed(sizes)
    ends = phases[owners] + (lowest[owners] + places) * slides[owners]
    lows = np.searchsorted(starts, ends - ranges[owners])
    order = np.argsort(lows, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    queries, places = _listed(sizes[spec_of])
    specs_of_runs = spec_of[queries]
    own = {member: place for place, member in enumerate(members)}
    predicates = np.array([own[final.member] for final in family.finals])
    return Asking(
        lows[order],
        np.searchsorted(starts, ends[order]),
        lowest[specs_of_runs] + places,
        ranks[(np.cumsum(sizes) - sizes)[specs_of_runs] + places],
        predicates[queries],
        np.concatenate(([0], np.cumsum(sizes[spec_of]))),
    )


def _listed(sizes: Ints) -> tuple[Ints, Ints]:
    """The owner of each of ``sizes[i]`` things of every i, and its place among them."""
    owners = np.repeat(np.arange(sizes.size), sizes)
    return owners, np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]
