"""Heads of Cutty slices: what a window that ends inside a slice takes of it.

Cutty slices begin where windows start, and nowhere else. A window that ends inside one takes the
rows up to its end, the *head* that the end marks. A head is kept beside the slices, as an entry
that starts at its mark: no slice starts there. Heads of one mark in several batches are combined
like slices, so rows may come in any order.

From "Algorithms and Optimizations for Incremental Window-Based Aggregations", 2.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.engine.rows.entries import Entries
from muntin.engine.slices.partials import PartialBatch
from muntin.plan.nodes import Slicing
from muntin.windows.cut import slice_starts


def is_head(starts: Ints, slicing: Slicing) -> Bools:
    """Which entries are heads: those that start where no slice does."""
    heads: Bools = slice_starts(starts, slicing.classes) != starts
    return heads


def with_heads(slicing: Slicing, entries: Entries, batch: PartialBatch) -> PartialBatch:
    """Slices and their heads, of entries that were cut at window ends as well.

    Entries of one slice, group and code are a chain in order of time. The slice is all of it, the
    head of a mark what lies before the mark.
    """
    if not batch.starts.size:
        return batch
    own = slice_starts(batch.starts, slicing.classes)
    codes = np.zeros(own.size, np.int64) if entries.codes is None else entries.codes
    order = np.lexsort((batch.starts, codes, entries.groups, own))
    keys = (own[order], entries.groups[order], codes[order])
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = np.any([np.diff(key) != 0 for key in keys], axis=0)
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], order.size)
    slices = keys[0][begins]
    chains, marks = _chain_marks(slices, slicing)
    highs = _before(batch.starts[order], np.cumsum(fresh) - 1, chains, marks)
    held = highs > begins[chains]
    chains, marks, highs = chains[held], marks[held], highs[held]
    lows, highs = np.append(begins[chains], begins), np.append(highs, ends)
    starts = np.append(marks, slices)
    # Runs whose ends do not fall are cheapest to combine.
    by_run = np.lexsort((highs, lows))
    lows, highs, starts = lows[by_run], highs[by_run], starts[by_run]
    firsts = order[lows]
    return PartialBatch(
        starts,
        tuple(key.take(pa.array(firsts)) for key in batch.keys),
        None if entries.codes is None else codes[firsts],
        tuple(column.take(order).slide(lows, highs) for column in batch.columns),
        batch.signatures,
    )


def _chain_marks(slices: Ints, slicing: Slicing) -> tuple[Ints, Ints]:
    """The marks inside the slice of each chain: the chain of each, and the mark, in order."""
    used, numbers = np.unique(slices, return_inverse=True)
    owners, marks = _marks_inside(used, slicing)
    counts = np.bincount(owners, minlength=used.size)
    firsts = np.cumsum(counts) - counts
    each = counts[numbers]
    chains = np.repeat(np.arange(slices.size), each)
    within = np.arange(chains.size) - np.repeat(np.cumsum(each) - each, each)
    return chains, marks[firsts[numbers][chains] + within]


def _marks_inside(starts: Ints, slicing: Slicing) -> tuple[Ints, Ints]:
    """The marks inside slices: the place of each one's slice, and the mark, in order.

    A window that ends inside a slice starts at an edge once every slide, so that no slice is
    longer: each class of marks has at most one mark in it.
    """
    ends = np.min([_next(each, starts) for each in slicing.classes], axis=0)
    owners, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in slicing.marks:
        marks = _next(each, starts)
        inside = np.flatnonzero(marks < ends)
        owners.append(inside)
        found.append(marks[inside])
    pairs = np.unique(np.column_stack((np.concatenate(owners), np.concatenate(found))), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _next(edge_class: tuple[int, int], times: Ints) -> Ints:
    """The first edge of a class strictly after each time."""
    period, phase = edge_class
    after: Ints = times + period - (times - phase) % period
    return after


def _before(starts: Ints, chain: Ints, chains: Ints, marks: Ints) -> Ints:
    """One past the last entry of each chain that starts before its mark.

    ``starts`` and ``chain`` are those of all entries, in order of chain and start.
    """
    times, ranks = np.unique(np.append(starts, marks), return_inverse=True)
    keys = chain * times.size + ranks[: starts.size]
    return np.searchsorted(keys, chains * times.size + ranks[starts.size :])


class Headed:
    """Entries of which some are heads, in order of segment, group and start.

    ``segments`` has for each query the entries [low, high) that are its own. ``slices`` are the
    places of the entries that are no heads, ``slice_segments`` what each query has of them.
    """

    def __init__(self, slicing: Slicing, groups: Ints, starts: Ints, segments: Ints) -> None:
        heads = is_head(starts, slicing)
        self.slices = np.flatnonzero(~heads)
        self.slice_segments = np.append(0, np.cumsum(~heads))[segments]
        self._slicing = slicing
        self._starts = starts[self.slices]
        self._heads = np.flatnonzero(heads)
        self._segments = np.append(0, np.cumsum(heads))[segments]
        self._times, ranks = np.unique(starts[self._heads], return_inverse=True)
        self._keys = groups[self._heads] * self._times.size + ranks

    def read(
        self, asked: Ints, offsets: Ints, windows: Ints, groups: Ints, highs: Ints
    ) -> tuple[Ints, Ints]:
        """For windows of some queries one past the last slice they hold whole, and their heads.

        ``asked`` begins with the range, slide and phase of each query; its windows lie from
        ``offsets[q]`` on. ``highs`` are one past the last slice that starts before a window's
        end. A head is the place of its entry, -1 where there is none.
        """
        counts = np.diff(offsets)
        bounds = np.repeat(asked[:, 2], counts) + windows * np.repeat(asked[:, 1], counts)
        floors = slice_starts(bounds, self._slicing.classes)
        cut = (floors != bounds) & (self._starts[highs - 1] == floors)
        heads = np.full(windows.size, -1)
        for query in np.flatnonzero(counts).tolist():
            low, high = self._segments[query]
            rows = slice(offsets[query], offsets[query + 1])
            heads[rows] = self._found(groups[rows], bounds[rows], low, high)
        return highs - cut, heads

    def _found(self, groups: Ints, bounds: Ints, low: int, high: int) -> Ints:
        """The heads of some groups and marks among those from ``low`` to ``high - 1``."""
        if low == high:
            return np.full(groups.size, -1)
        ranks = np.minimum(np.searchsorted(self._times, bounds), self._times.size - 1)
        keys, wanted = self._keys[low:high], groups * self._times.size + ranks
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        hit = (keys[at] == wanted) & (self._times[ranks] == bounds)
        return np.where(hit, self._heads[low + at], -1)
