"""Any final technique over the slices of one query's own edges, for all groups.

Entries are gathered into slices that only these windows cut, and handed to a structure of the
technique when the first window that covers them is due.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregators import info
from muntin.engine.slices.finals.own_structures import Slotted, structure
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Chains
from muntin.windows import EdgeClass, Window
from muntin.windows.cut import slice_starts


@dataclass(frozen=True)
class OwnKey:
    """Whom a structure serves: windows over one accumulator and predicate that cut time alike.

    ``span`` is the range, where the technique takes only one, and 0 otherwise.
    """

    technique: str
    index: int
    member: int
    edges: tuple[EdgeClass, ...]
    span: int

    @classmethod
    def of(cls, technique: str, index: int, member: int, window: Window) -> OwnKey:
        """The structure for a query's windows."""
        span = 0 if info(technique).several_ranges else window.range
        return cls(technique, index, member, tuple(sorted(window.edge_classes())), span)


class OwnSlices:
    """One part of one predicate over windows that cut time alike, by one technique.

    ``longest`` is the longest range that is asked for. Windows must be asked for in order of
    their ends; ``reached`` is the last end.
    """

    def __init__(self, key: OwnKey, part: Part, longest: int) -> None:
        self.key = key
        self.longest = longest
        self.reached = -(2**62)
        self._part = part
        self._classes = np.array(key.edges, np.int64)
        self._structure = structure(key.technique, part)
        self._waiting: deque[tuple[int, Slotted]] = deque()
        self._gathered = 0

    @property
    def steps(self) -> int:
        """Aggregations along time, counted for every group."""
        return self._structure.steps

    @property
    def gathered(self) -> int:
        """Aggregations that made slices of these windows' own."""
        return self._gathered

    def feed(self, run: Run, chains: Chains, held: Bools) -> None:
        """Gather sealed entries, which are in order of time."""
        kept = np.flatnonzero(held[self.key.member, chains.cells[run.places]])
        if not kept.size:
            return
        starts = slice_starts(run.starts[kept], self._classes)
        slots = chains.slots[run.places[kept]].astype(np.int64)
        order = np.lexsort((slots, starts))
        starts, slots = starts[order], slots[order]
        fresh = np.ones(starts.size, np.bool_)
        fresh[1:] = (np.diff(starts) != 0) | (np.diff(slots) != 0)
        numbers = np.cumsum(fresh) - 1
        column = empty(self._part, int(numbers[-1]) + 1)
        column.merge(numbers, run.columns[self.key.index].take(kept[order]))
        self._gathered += int(starts.size - numbers[-1] - 1)
        starts, slots = starts[fresh], slots[fresh]
        bounds = np.append(np.flatnonzero(np.diff(starts, prepend=starts[0] - 1)), starts.size)
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            piece = Slotted(slots[low:high], column.take(np.arange(low, high)))
            self._add(int(starts[low]), piece)

    def _add(self, start: int, piece: Slotted) -> None:
        if self._waiting and self._waiting[-1][0] == start:
            before = self._waiting.pop()[1]
            # What makes up a slice of this query's own is no work along time.
            self._gathered += int(np.isin(before.slots, piece.slots, assume_unique=True).sum())
            piece = before.combined(piece, self._part)
        self._waiting.append((start, piece))

    def window(self, start: int, end: int, slots: Ints) -> PartColumn:
        """The accumulators of some groups over one window."""
        self.reached = end
        while self._waiting and self._waiting[0][0] < end:
            at, piece = self._waiting.popleft()
            self._structure.push(at, piece)
        self._structure.evict(end - self.longest)
        return self._structure.read(start, slots)
