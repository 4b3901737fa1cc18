"""Sums of windows with many predicates, in one sweep over time.

A sweep takes in every entry once, into a running total of its cell; at a window's edges the
totals of the cells that its predicate holds in are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.engine.answers.unmerged import LANES, Lanes, side_by_side
from muntin.engine.answers.windows import Asking, slice_order


@dataclass(frozen=True)
class Spans:
    """The cells that each predicate holds in, as ranges; those of member m from ``firsts[m]`` on.

    >>> spans = Spans.of(np.array([[True, True, False, True], [False, False, False, True]]))
    >>> spans.bounds.tolist(), spans.firsts.tolist()
    ([[0, 2], [3, 4], [3, 4]], [0, 2, 3])
    """

    bounds: Ints
    firsts: Ints

    @classmethod
    def of(cls, held: Bools) -> Spans:
        """The ranges of a table with a row a predicate and a column a cell."""
        padded = np.zeros((held.shape[0], held.shape[1] + 2), np.int8)
        padded[:, 1:-1] = held
        steps = np.diff(padded, axis=1)
        members, lows = np.nonzero(steps == 1)
        highs = np.nonzero(steps == -1)[1]
        firsts = np.searchsorted(members, np.arange(held.shape[0] + 1))
        return cls(np.column_stack((lows, highs)), firsts)

    def reads(self) -> Ints:
        """How many totals are read for each predicate: whole blocks of cells, and single ones."""
        lows, highs = self.bounds.T
        firsts, lasts = (lows + BLOCK - 1) // BLOCK, highs // BLOCK
        whole = lasts - firsts + firsts * BLOCK - lows + highs - lasts * BLOCK
        totals = np.concatenate(([0], np.cumsum(np.where(firsts < lasts, whole, highs - lows))))
        return totals[self.firsts[1:]] - totals[self.firsts[:-1]]


class Sweep:
    """A sweep over entries in order of time; ``begins`` says where each slice's begin.

    The entries of piece p have the cells ``numbers[codes[p]]``, of ``size`` different ones.
    ``cost`` is the number of totals that are read, and those that entries are added to. Where
    much is read, each of some ``threads`` adds all entries up and reads for some of the runs.
    """

    def __init__(
        self,
        asking: Asking,
        begins: Ints,
        codes: Sequence[Ints],
        numbers: Ints,
        spans: Spans,
        size: int,
        threads: int = 1,
    ) -> None:
        edges = np.concatenate(asking.edges)
        self._edges, self._order = begins[edges], slice_order(edges, begins.size)
        self._codes, self._numbers, self._spans, self._size = codes, numbers, spans, size
        lows, highs = np.split(self._edges, 2)
        reads = np.cumsum(np.where(lows < highs, 2 * spans.reads()[asking.members], 0))
        self._entries = int(begins[-1])
        self._reads = int(reads[-1]) if reads.size else 0
        self.cost = 2 * self._entries + self._reads
        shares = max(1, min(threads, self._reads // _SHARE))
        bounds = np.searchsorted(reads, self._reads * np.arange(1, shares) / shares, side="right")
        self._runs = np.array([0, *bounds, reads.size])

    @property
    def steps(self) -> int:
        """How many aggregations it takes: one for an entry, one for a total that is read."""
        return (self._runs.size - 1) * self._entries + self._reads

    def sums(self, lanes: Lanes, members: Ints) -> Ints:
        """For each run the sum of the entries' rows that its predicate holds in."""
        firsts = self._spans.firsts
        places = np.column_stack((firsts[members], firsts[members + 1]))
        out = np.zeros((members.size, lanes.width), np.int64)

        def work(bounds: tuple[int, int]) -> None:
            runs = self._order % members.size
            own = self._order[(runs >= bounds[0]) & (runs < bounds[1])]
            self._sweep(lanes, own, places, out)

        side_by_side(work, list(pairwise(self._runs.tolist())))
        return out

    def _sweep(self, lanes: Lanes, order: Ints, places: Ints, out: Ints) -> None:
        """Add up all entries, and read totals at some edges, in order."""
        totals = np.zeros((self._size, lanes.width), np.int64)
        blocks = np.zeros(((self._size >> _BITS) + 1, lanes.width), np.int64)
        first = done = 0
        for piece, own, rows in lanes.chunks():
            cells = self._numbers[self._codes[piece][own]]
            done = sweep(
                rows, cells, first, self._edges, order, done,
                self._spans.bounds, places, totals, blocks, out,
            )  # fmt: skip
            first += cells.size


# Reading fewer totals than this is not worth a thread.
_SHARE = 1 << 20
_BITS = 4
BLOCK = 1 << _BITS
_Four = tuple[Any, Any, Any, Any]


@compiled
def _more(totals: Ints, lane: int, low: int, high: int, four: _Four) -> _Four:
    """Four sums, and the totals from ``low`` to ``high - 1`` with them."""
    a, b, c, d = four
    # Places are unsigned: numba would make each of a signed one ready to count from the end.
    first, second = np.uint64(lane), np.uint64(lane + 1)
    third, fourth = np.uint64(lane + 2), np.uint64(lane + 3)
    for i in range(low, high):
        at = np.uint64(i)
        a, b = a + totals[at, first], b + totals[at, second]
        c, d = c + totals[at, third], d + totals[at, fourth]
    return a, b, c, d


@compiled
def total_of(totals: Ints, blocks: Ints, lane: int, spans: Ints) -> _Four:
    """The sums of the totals of cells in some spans ``[low, high)``, of four lanes.

    Where a span holds whole blocks, their totals are read instead.
    """
    four = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    for span in range(spans.shape[0]):
        low, high = spans[span, 0], spans[span, 1]
        first, last = (low + BLOCK - 1) >> _BITS, high >> _BITS
        if first >= last:
            four = _more(totals, lane, low, high, four)
        else:
            four = _more(totals, lane, low, first << _BITS, four)
            four = _more(blocks, lane, first, last, four)
            four = _more(totals, lane, last << _BITS, high, four)
    return four


@compiled
def sweep(
    rows: Ints,
    cells: Ints,
    first: int,
    edges: Ints,
    order: Ints,
    done: int,
    spans: Ints,
    places: Ints,
    totals: Ints,
    blocks: Ints,
    out: Ints,
) -> int:
    """For each run the sum of the rows between its edges whose cells are in its spans.

    It takes some rows after the other: these are the ones from number ``first`` on. Row i of them
    is of cell ``cells[i]``; the numbers of a row are a multiple of four. Of n runs, run r covers
    the rows from number ``edges[r]`` to ``edges[n + r] - 1``; ``order`` sorts the edges, of which
    ``done`` are dealt with, and so many more when it returns. Its spans ``[low, high)`` of cells
    are those from ``places[r, 0]`` to ``places[r, 1] - 1``.

    ``totals`` of cells, and those of ``blocks`` of them, only grow with the sweep, and a run is
    what they gained between its edges: a row is added once, however many runs it is in. They may
    wrap around; differences stay right.
    """
    width, runs = rows.shape[1], places.shape[0]
    row, last = 0, rows.shape[0]
    while done < order.size:
        edge = order[done]
        run = edge % runs
        # A window without rows reads nothing.
        if edges[run] < edges[runs + run]:
            until = edges[edge] - first
            while row < min(until, last):
                _add(totals, np.uint64(cells[row]), rows, row)
                _add(blocks, np.uint64(cells[row] >> _BITS), rows, row)
                row += 1
            if until > last:
                return int(done)
            # Before the first row all totals are zero.
            if edges[edge] > 0:
                sign = 1 if edge >= runs else -1
                own = spans[places[run, 0] : places[run, 1]]
                for lane in range(0, width, LANES):
                    a, b, c, d = total_of(totals, blocks, lane, own)
                    out[run, lane] += sign * a
                    out[run, lane + 1] += sign * b
                    out[run, lane + 2] += sign * c
                    out[run, lane + 3] += sign * d
        done += 1
    return int(done)


@compiled
def _add(totals: Ints, at: Any, rows: Ints, row: int) -> None:
    """Add the numbers of a row, four at a time."""
    own = np.uint64(row)
    for lane in range(0, rows.shape[1], LANES):
        for k in range(LANES):
            totals[at, np.uint64(lane + k)] += rows[own, np.uint64(lane + k)]
