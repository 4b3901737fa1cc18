"""The open slices of a set of partials: runs of entries, appended as batches bring them.

Runs are merged when eight of a size are there, so that an entry is written again as often as its
run grows eightfold. Each run is in order of time: what is sealed is cut off its front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.rows.dictionary import compact
from muntin.engine.slices.radix_sort import sort_entries

_FAN_OUT = 8


@dataclass
class Run:
    """Entries in order of start, then place; each pair once. Those before ``begin`` left."""

    starts: Ints
    places: Ints
    columns: tuple[PartColumn, ...]
    begin: int = 0

    @property
    def size(self) -> int:
        """How many entries are left."""
        return int(self.starts.size) - self.begin

    def cut(self, begin: int, end: int) -> Run:
        """The entries from ``begin`` to ``end - 1``."""
        if begin == 0 and end == self.starts.size:
            return self
        rows = np.arange(begin, end)
        columns = tuple(column.take(rows) for column in self.columns)
        return Run(self.starts[begin:end], self.places[begin:end], columns)


class OpenLog:
    """Runs of entries that are not sealed yet."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        # Runs by how often they were merged.
        self._tiers: list[list[Run]] = [[]]

    def runs(self) -> list[Run]:
        """All runs, oldest first: what was merged most often came first."""
        return [run for tier in reversed(self._tiers) for run in tier if run.size]

    @property
    def size(self) -> int:
        """How many entries there are; one of several runs counts for each."""
        return sum(run.size for run in self.runs())

    def append(self, starts: Ints, places: Ints, columns: tuple[PartColumn, ...]) -> None:
        """Take in the entries of a batch."""
        if not starts.size:
            return
        self._tiers[0].append(merged(self._parts, [Run(starts, places, columns)]))
        tier = 0
        while len(self._tiers[tier]) >= _FAN_OUT:
            if tier + 1 == len(self._tiers):
                self._tiers.append([])
            whole = merged(self._parts, [run.cut(run.begin, len(run.starts)) for run in
                                         self._tiers[tier] if run.size])  # fmt: skip
            self._tiers[tier] = []
            if whole.size:
                self._tiers[tier + 1].append(whole)
            tier += 1

    def whole(self) -> Run | None:
        """All entries in one run, which is the only one from then on; None if there are none."""
        runs = [run.cut(run.begin, len(run.starts)) for run in self.runs()]
        if not runs:
            return None
        self._tiers = [[merged(self._parts, runs)]]
        return self._tiers[0][0]

    def begin(self, run: Run) -> None:
        """Take in a run that was whole before."""
        self._tiers[0].append(run)

    def seal(self, frontier: int) -> Run | None:
        """Take out the entries of slices that start before the frontier; None if there are none."""
        sealed = []
        for run in self.runs():
            end = int(np.searchsorted(run.starts, frontier))
            if end > run.begin:
                sealed.append(run.cut(run.begin, end))
                run.begin = end
        self._tiers = [[run for run in tier if run.size] for tier in self._tiers]
        return merged(self._parts, sealed) if sealed else None


def merged(parts: Sequence[Part], runs: Sequence[Run]) -> Run:
    """One run of several: entries of the same slice and place are combined."""
    starts = np.concatenate([run.starts for run in runs])
    places = np.concatenate([run.places for run in runs])
    if not starts.size:
        return Run(starts, places, tuple(empty(part, 0) for part in parts))
    distances, ticks = compact(starts - starts.min())
    ranks = np.empty(ticks.size, np.int64)
    ranks[np.argsort(ticks)] = np.arange(ticks.size)
    numbers, kept = sort_entries(ranks[distances], places, np.empty(0, np.int64))
    if len(runs) == 1 and kept.size == numbers.size:
        if np.array_equal(kept, np.arange(kept.size)):
            return runs[0]
        columns = tuple(column.take(kept) for column in runs[0].columns)
        return Run(starts[kept], places[kept], columns)
    columns = tuple(_united(part, i, runs, numbers, kept.size) for i, part in enumerate(parts))
    return Run(starts[kept], places[kept], columns)


def _united(part: Part, index: int, runs: Sequence[Run], numbers: Ints, size: int) -> PartColumn:
    column = empty(part, size)
    column.merge_all(
        np.split(numbers, np.cumsum([run.starts.size for run in runs])[:-1]),
        [run.columns[index] for run in runs],
    )
    return column
