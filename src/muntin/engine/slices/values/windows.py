"""Windows over blocks of sealed values: their values are looked up in the indexes of all blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.holistic.rows import is_sorted, spread
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.holistic.windows import Windows, value_bytes
from muntin.aggregates.columns.sums import SumColumn
from muntin.engine.slices.values import ranks
from muntin.engine.slices.values.heaviest import heaviest_codes

if TYPE_CHECKING:
    from muntin.engine.slices.values.blocks import Block, Index


class _Part(NamedTuple):
    """The windows of one predicate: which they are, and where their occurrences lie."""

    rows: Ints
    blocks: tuple[Block, ...]
    indexes: tuple[Index, ...]
    table: Ints
    begins: Ints
    ends: Ints


class BlockWindows(Windows):
    """Windows of several predicates; a value that is found gets the next rank."""

    def __init__(self, coders: RunColumn, size: int) -> None:
        self._coders, self._size = coders, size
        self._parts: list[_Part] = []
        self._found: list[Ints] = []
        self._many = 0
        self._totals = np.zeros(size, np.int64)
        self._occurrences = np.zeros(size, np.int64)

    def add(
        self,
        rows: Ints,
        blocks: Sequence[Block],
        indexes: Sequence[Index],
        slots: Ints,
        lows: Ints,
        highs: Ints,
    ) -> None:
        """Take in the windows of a predicate."""
        table = np.array([index.row for index in indexes]).reshape(-1, ranks.FIELDS)
        begins, ends = ranks.find_stretches(table, slots, lows, highs)
        self._parts.append(_Part(rows, tuple(blocks), tuple(indexes), table, begins, ends))
        self._totals[rows] = ranks.add_totals(table, begins, ends)
        most = np.minimum(ends - begins, table[:, ranks.DISTINCT])
        self._occurrences[rows] = most.sum(axis=1)

    def __len__(self) -> int:
        return self._size

    @property
    def totals(self) -> Ints:  # type: ignore[override]
        """How many values each window has, with repeats."""
        return self._totals

    @property
    def occurrences(self) -> Ints:  # type: ignore[override]
        """At most so many different values each window has."""
        return self._occurrences

    def only(self, kept: Ints) -> BlockWindows:
        """Some of the windows."""
        chosen = BlockWindows(self._coders, kept.size)
        places = np.full(self._size, -1)
        places[kept] = np.arange(kept.size)
        for part in self._parts:
            own = np.flatnonzero(places[part.rows] >= 0)
            chosen._parts.append(
                part._replace(
                    rows=places[part.rows[own]], begins=part.begins[own], ends=part.ends[own]
                )
            )
        chosen._totals, chosen._occurrences = self._totals[kept], self._occurrences[kept]
        return chosen

    def codes_at(self, places: Ints) -> Ints:
        """The codes of ranks."""
        held = np.concatenate(self._found) if len(self._found) > 1 else self._found[0]
        self._found = [held]
        return held[places]

    def values(self, places: Ints) -> pa.Array:
        """The values of ranks."""
        if not self._found:
            self._named(np.empty((0, self._coders.rows.codes.shape[1]), np.int64))
        return self._coders.decoded(self.codes_at(places))

    def _named(self, codes: Ints) -> Ints:
        """Ranks for codes that were found."""
        self._found.append(codes)
        named = np.arange(self._many, self._many + len(codes))
        self._many += len(codes)
        return named

    def select(self, windows: Ints, places: Ints) -> Ints:
        """The rank of the value at a place, from 0 on, among the sorted values of a window."""
        width = self._coders.rows.codes.shape[1]
        codes = np.zeros((windows.size, width), np.int64)
        at = np.full(self._size, -1)
        for part in self._parts:
            at[part.rows] = np.arange(part.rows.size)
            asked = np.flatnonzero(at[windows] >= 0)
            codes[asked] = ranks.select_codes(
                part.table, part.begins, part.ends, at[windows[asked]], places[asked], width
            )
            at[part.rows] = -1
        return self._named(codes)

    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough."""
        counts, sizes = np.zeros(0, np.int64), np.zeros(self._size, np.int64)
        codes, owners = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for part in self._parts:
            totals, least = self._totals[part.rows], np.maximum(floors[part.rows], 1)
            room = np.minimum(self._occurrences[part.rows], np.minimum(totals // least, most))
            offsets = np.concatenate(([0], np.cumsum(room)))
            found, numbers, held = heaviest_codes(
                part.table, part.begins, part.ends, totals, most, least, offsets
            )
            kept = spread(offsets[:-1], np.concatenate(([0], np.cumsum(held))))
            codes, counts = np.append(codes, found[kept]), np.append(counts, numbers[kept])
            owners = np.append(owners, np.repeat(part.rows, held))
            sizes[part.rows] = held
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        return offsets, self._named(codes[order, None]), counts[order]

    def gathered(self, window: int) -> tuple[Ints, Ints]:
        """The codes of all occurrences of a window, in order of time, and how often each is."""
        for part in self._parts:
            (at,) = np.nonzero(part.rows == window)
            if at.size:
                return self._listed(part, part.begins[at[0]], part.ends[at[0]])
        return np.empty((0, self._coders.rows.codes.shape[1]), np.int64), np.empty(0, np.int64)

    def _listed(self, part: _Part, begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
        codes, weights = [self._coders.rows.codes[:0]], [np.empty(0, np.int64)]
        pieces = zip(part.blocks, part.indexes, begins.tolist(), ends.tolist(), strict=True)
        for block, index, begin, end in pieces:
            at = index.at[begin:end]
            codes.append(block.codes[block.held[at]])
            plain = np.ones(at.size, np.int64)
            weights.append(block.weights[at] if block.weights.size else plain)
        return np.concatenate(codes), np.concatenate(weights)

    def different(self) -> tuple[Ints, Ints]:
        """Offsets by window, and the ranks of its different values, in order."""
        lists = [np.unique(self.gathered(window)[0][:, 0]) for window in range(self._size)]
        offsets = np.cumsum([0, *map(len, lists)])
        codes = np.concatenate(lists) if lists else np.empty(0, np.int64)
        return offsets, self._named(codes[:, None])

    def every(self) -> tuple[Ints, pa.Array]:
        """Offsets by window, and its values in order, each as often as it occurs."""
        lists = [np.repeat(*self._in_order(window), axis=0) for window in range(self._size)]
        offsets = np.cumsum([0, *map(len, lists)])
        empty = self._coders.rows.codes[:0]
        return offsets, self._coders.decoded(np.concatenate([empty, *lists]))

    def _in_order(self, window: int) -> tuple[Ints, Ints]:
        codes, weights = self.gathered(window)
        if not is_sorted(codes, np.array([0, len(codes)])):
            order = np.lexsort(codes.T[::-1])
            codes, weights = codes[order], weights[order]
        return codes, weights

    @property
    def is_listed(self) -> bool:  # type: ignore[override]
        """Whether windows hold lists, whose values are all counted."""
        return bool(self._coders.rows.codes.shape[1] > 1)

    @property
    def longest(self) -> int:  # type: ignore[override]
        """The most bytes that a value has."""
        coder = self._coders.values
        if not isinstance(coder, DictionaryCoder):
            return 16 if pa.types.is_decimal(self._coders.part.types[0]) else 8
        known = np.ones((len(coder.dictionary), self._coders.rows.codes.shape[1]), np.int64)
        known[:, -1] = np.arange(len(coder.dictionary))
        return int(value_bytes(self._coders, known).max(initial=0))

    @property
    def known(self) -> int:  # type: ignore[override]
        """At most so many bytes all different values together have."""
        coder = self._coders.values
        return int(coder.dictionary.nbytes) if isinstance(coder, DictionaryCoder) else 1 << 62

    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, or values of a list, and their bytes."""
        found = np.zeros((self._size, 2), np.int64)
        for window in range(self._size):
            codes, weights = self.gathered(window)
            if not self.is_listed:
                codes = np.unique(codes[:, 0])[:, None]
                weights = np.ones(len(codes), np.int64)
            found[window] = weights.sum(), weights @ value_bytes(self._coders, codes)
        return found[:, 0], found[:, 1]

    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""
        offsets, ranks = self.different()
        sums = SumColumn.empty(Part("sum", types), self._size)
        owners = np.repeat(np.arange(self._size), np.diff(offsets))
        sums.update(owners, (self.values(ranks),))
        return sums
