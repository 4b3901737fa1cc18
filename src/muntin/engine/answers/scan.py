"""Sums of windows with predicates over several quantities, by a scan inside a category each.

Predicates over three and more quantities tell so many cells apart that hardly two entries share
one, and each predicate holds in thousands. Then it is cheaper to look at every entry that has the
right category, which is the quantity that leaves the fewest of them, once for each query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.engine.answers.unmerged import Lanes, side_by_side
from muntin.engine.answers.windows import Asking
from muntin.predicates import Shape

Int32s = npt.NDArray[np.int32]

# As many entries are looked at while a total of a sweep is read.
_LOOKS = 4
# Entries are brought into the order of a category while so many totals are read.
_SORTED = 4
# The table of ranks that predicates accept, in bytes.
_MOST_RANKS = 1 << 25


class Scan:
    """Scans over entries in order of time; ``begins`` says where each slice's begin.

    The entries of piece p have the cells ``numbers[codes[p]]``, whose ranks are ``ranks``.
    ``cost`` is in totals that a sweep would read in the same time. ``steps`` counts aggregations
    as they are done.
    """

    def __init__(
        self,
        asking: Asking,
        begins: Ints,
        codes: Sequence[Ints],
        numbers: Ints,
        ranks: Sequence[Ints],
        shape: Shape,
        members: Sequence[int],
        threads: int = 1,
    ) -> None:
        self._threads = threads
        self._asking, self._codes, self._numbers, self._shape = asking, codes, numbers, shape
        self._edges = begins[np.array(asking.edges)]
        self._boxes = [shape.boxes[member] for member in members]
        self._ranks = [each.astype(np.int32) for each in ranks]
        runs = np.bincount(asking.members, minlength=len(members))
        firsts = asking.members[asking.offsets[:-1][np.diff(asking.offsets) > 0]]
        asked = np.bincount(firsts, minlength=len(members))
        # Each query scans for itself, also where several have one predicate.
        costs = self._costs(runs // np.maximum(asked, 1)) * np.maximum(asked, 1)[:, None]
        sorting = _SORTED * sum(each.size for each in codes)
        used = [int(np.argmin(costs.sum(axis=0)))]
        for place in range(costs.shape[1]):
            gained = np.maximum(costs[:, used].min(axis=1) - costs[:, place], 0).sum()
            if gained > sorting:
                used.append(place)
        self._categories = np.array(used)[np.argmin(costs[:, used], axis=1)]
        self.cost = float(costs[:, used].min(axis=1).sum() + len(used) * sorting)
        self.steps = 0

    @staticmethod
    def takes(shape: Shape, members: Sequence[int]) -> bool:
        """Whether all predicates are conditions on single quantities, all of which must hold."""
        ranks = sum(dimension.size for dimension in shape.dimensions)
        if ranks * len(members) > _MOST_RANKS:
            return False
        return all(shape.boxes[member] is not None for member in members)

    def _costs(self, runs: Ints) -> npt.NDArray[np.float64]:
        """What scanning for each predicate costs inside each quantity.

        ``runs`` is the number of windows that are asked of it.
        """
        costs = np.zeros((len(self._boxes), len(self._ranks)))
        held = np.zeros(self._ranks[0].size)
        for codes in self._codes:
            held += np.bincount(self._numbers[codes], minlength=held.size)
        for place, ranks in enumerate(self._ranks):
            sizes = np.bincount(ranks, held, minlength=self._shape.dimensions[place].size)
            entries = np.concatenate(([0], np.cumsum(sizes)))
            lists = np.concatenate(([0], np.cumsum(sizes > 0)))
            for member, box in enumerate(self._boxes):
                assert box is not None
                for low, high in box[place]:
                    looked = (entries[high] - entries[low]) / _LOOKS
                    walked = 2 * (lists[high] - lists[low]) * runs[member]
                    costs[member, place] += looked + walked
        return costs

    def sums(self, lanes: Lanes, members: Ints) -> Ints:
        """For each run the sum of the entries' rows that its predicate holds in."""
        rows = lanes.rows()
        out = np.zeros((members.size, rows.shape[1]), np.int64)
        cells = np.concatenate([self._numbers[codes] for codes in self._codes])
        ranks = [each[cells] for each in self._ranks]
        offsets = self._asking.offsets
        queries = np.flatnonzero(np.diff(offsets))
        asked = members[offsets[queries]]
        categories = self._categories[asked]
        for category in np.unique(categories).tolist():
            own = categories == category
            self._scan(category, ranks, rows, asked[own], queries[own], out)
        return out

    def _scan(
        self,
        category: int,
        ranks: Sequence[Int32s],
        rows: Ints,
        asked: Ints,
        queries: Ints,
        out: Ints,
    ) -> None:
        """Scan inside a category for some queries, of which each thread takes a share."""
        sizes = [dimension.size for dimension in self._shape.dimensions]
        firsts = np.concatenate(([0], np.cumsum(sizes)))
        allowed = self._allowed(firsts)
        order = np.argsort(ranks[category], kind="stable").astype(np.int32)
        bounds = np.searchsorted(ranks[category][order], np.arange(sizes[category] + 1))
        ordered, ordered_rows = np.array([each[order] for each in ranks]), rows[order]
        offsets = self._asking.offsets

        def work(own: Ints) -> int:
            return scan(
                ordered_rows, order, bounds, ordered, allowed, firsts, category,
                asked[own], offsets[queries[own]], offsets[queries[own] + 1], self._edges, out,
            )  # fmt: skip

        shares = min(self._threads, queries.size)
        # Dealt out in turn: neighbours differ less than the first and the last.
        self.steps += sum(
            side_by_side(work, [np.arange(each, queries.size, shares) for each in range(shares)])
        )

    def _allowed(self, firsts: Ints) -> Bools:
        """Whether each predicate accepts each rank; those of quantity d from ``firsts[d]`` on."""
        allowed = np.zeros((len(self._boxes), int(firsts[-1])), np.bool_)
        for member, box in enumerate(self._boxes):
            assert box is not None
            for first, intervals in zip(firsts.tolist(), box, strict=False):
                for low, high in intervals:
                    allowed[member, first + low : first + high] = True
        return allowed


@compiled
def scan(
    rows: Ints,
    order: Int32s,
    bounds: Ints,
    ranks: Int32s,
    allowed: Bools,
    firsts: Ints,
    category: int,
    members: Ints,
    begins: Ints,
    ends: Ints,
    edges: Ints,
    out: Ints,
) -> int:
    """Scan for some queries inside one category; returns the number of aggregations.

    Entries of rank r of the category are ``order[bounds[r]]`` to ``order[bounds[r + 1] - 1]``, in
    order of time; ``rows`` and ``ranks`` are in that order, too. Query q has the predicate
    ``members[q]``, and the runs from ``begins[q]`` to ``ends[q] - 1``, in order of time.
    """
    chosen = np.empty(order.size, np.int32)
    total = np.empty(rows.shape[1], np.int64)
    steps = 0
    for q in range(members.size):
        member = members[q]
        for rank in range(bounds.size - 1):
            if bounds[rank] == bounds[rank + 1] or not allowed[member, firsts[category] + rank]:
                continue
            size = -1
            for place in range(ranks.shape[0]):
                accepts = allowed[member, firsts[place] : firsts[place + 1]]
                if place == category or accepts.all():
                    continue
                size = _choose(ranks[place], accepts, bounds[rank], bounds[rank + 1], size, chosen)
            if size < 0:
                size = bounds[rank + 1] - bounds[rank]
                chosen[:size] = np.arange(bounds[rank], bounds[rank + 1])
            if size:
                total[:] = 0
                steps += size + 2 * (ends[q] - begins[q])
                _walk(rows, order, chosen[:size], edges, begins[q], ends[q], total, out)
    return steps


@compiled
def _choose(ranks: Int32s, accepts: Bools, low: int, high: int, size: int, chosen: Int32s) -> int:
    """Choose the entries of accepted ranks, among those from ``low`` on or ``size`` chosen ones.

    Without a branch: whether an entry is accepted cannot be foreseen.
    """
    count = np.uint64(0)
    if size < 0:
        for place in range(low, high):
            chosen[count] = place
            count += np.uint64(accepts[np.uint64(ranks[np.uint64(place)])])
        return int(np.int64(count))
    for i in range(size):
        own = np.uint64(chosen[i])
        chosen[count] = own
        count += np.uint64(accepts[np.uint64(ranks[own])])
    return int(np.int64(count))


@compiled
def _walk(
    rows: Ints,
    order: Int32s,
    chosen: Int32s,
    edges: Ints,
    run: int,
    end: int,
    total: Ints,
    out: Ints,
) -> None:
    """Add the chosen entries up, and what the total gains between the edges of runs to these."""
    width = total.size
    begins, ends = edges[0], edges[1]
    at = 0
    opening, closing = run, run
    while closing < end:
        opens = opening < end and begins[opening] <= ends[closing]
        edge = begins[opening] if opens else ends[closing]
        while at < chosen.size and order[chosen[at]] < edge:
            place = np.uint64(chosen[at])
            for k in range(width):
                total[k] += rows[place, k]
            at += 1
        for k in range(width):
            if opens:
                out[opening, k] -= total[k]
            else:
                out[closing, k] += total[k]
        if opens:
            opening += 1
        else:
            closing += 1
