"""Entries without groups in order of time, as they lie in the batches that they came in.

A sweep, or a scan, adds up what a slice and a cell have in several batches by itself. So nothing
is merged before it, and nothing as large as all entries is written: fresh memory costs more than
what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np

from muntin._typing import Ints
from muntin.aggregates.columns.column import AdditiveColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.engine.slices.partials import PartialBatch

# The numbers of a row are a multiple of this: they lie side by side, and are added by one
# instruction.
LANES = 4
# So many rows are brought side by side at a time; they stay in the cache.
_CHUNK = 1 << 13


@dataclass(frozen=True)
class Unmerged:
    """Entries with codes, batch after batch; entries are numbered through all of them."""

    batches: tuple[PartialBatch, ...]

    @classmethod
    def of(cls, batches: Sequence[PartialBatch]) -> Unmerged | None:
        """The entries of batches; None where they are not in order of time, or have no codes."""
        held = tuple(batch for batch in batches if batch.starts.size)
        if any(batch.codes is None for batch in held):
            return None
        if any(after.starts[0] < before.starts[-1] for before, after in pairwise(held)):
            return None
        if any((batch.starts[1:] < batch.starts[:-1]).any() for batch in held):
            return None
        return cls(held)

    @property
    def codes(self) -> list[Ints]:
        """The codes of entries, batch by batch."""
        return [batch.codes for batch in self.batches if batch.codes is not None]

    @cached_property
    def slices(self) -> tuple[Ints, Ints]:
        """The start of each slice, and the number of its first entry; the last is past all."""
        starts, begins = [], []
        first, last = 0, None
        for batch in self.batches:
            own = batch.starts
            new = np.flatnonzero(own[1:] != own[:-1]) + 1
            if own[0] != last:
                new = np.concatenate((np.zeros(1, np.int64), new))
            starts.append(own[new])
            begins.append(new + first)
            first, last = first + own.size, own[-1]
        begins.append(np.array([first]))
        return np.concatenate([np.empty(0, np.int64), *starts]), np.concatenate(begins)

    def additive(self, index: int) -> list[AdditiveColumn] | None:
        """An accumulator's columns, batch by batch; None where they do not add up."""
        columns = [batch.columns[index] for batch in self.batches]
        if not all(isinstance(column, AdditiveColumn) for column in columns):
            return None
        return cast("list[AdditiveColumn]", columns)

    def held(self) -> list[Ints]:
        """A number above zero for each entry, batch by batch: how many rows it holds, or one."""
        rows = [batch.columns[0] for batch in self.batches]
        if all(isinstance(e, CountColumn) and e.counts.min(initial=1) > 0 for e in rows):
            return [cast("CountColumn", each).counts for each in rows]
        return [np.ones(batch.starts.size, np.int64) for batch in self.batches]


Part = TypeVar("Part")
Done = TypeVar("Done")


def side_by_side(work: Callable[[Part], Done], parts: Sequence[Part]) -> list[Done]:
    """What comes of parts, each worked on in a thread of its own."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts), thread_name_prefix="muntin-runs") as pool:
        return list(pool.map(work, parts))


class Lanes:
    """Columns of integers, each once, without those that are zero; rows are read from them.

    A column is an array a piece.

    >>> lanes = Lanes()
    >>> one, none = np.array([1, 2]), np.array([0, 0])
    >>> lanes.place([one, one]), lanes.place([none, none]), lanes.place([one.copy(), one])
    (0, -1, 0)
    >>> lanes.rows().tolist()
    [[1, 0, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]]
    """

    def __init__(self) -> None:
        self._held: list[Sequence[Ints]] = []

    def place(self, column: Sequence[Ints]) -> int:
        """The place of a column; -1 if it is all zero."""
        if not any(piece.any() for piece in column):
            return -1
        for place, held in enumerate(self._held):
            # Equal columns are counts of the same rows, and unequal ones differ soon.
            pairs = list(zip(held, column, strict=True))
            if all(np.array_equal(a[:64], b[:64]) for a, b in pairs[:1]) and all(
                np.array_equal(a, b) for a, b in pairs
            ):
                return place
        self._held.append(column)
        return len(self._held) - 1

    @property
    def width(self) -> int:
        """How many numbers a row has, zeros at its end included."""
        return -(-len(self._held) // LANES) * LANES

    def rows(self) -> Ints:
        """All rows."""
        chunks = [rows.copy() for _, _, rows in self.chunks()]
        return np.concatenate([np.empty((0, self.width), np.int64), *chunks])

    def chunks(self) -> Iterator[tuple[int, slice, Ints]]:
        """Some rows at a time: of which piece they are, where they stand there, and the rows.

        The memory of rows is used again for the next ones.
        """
        room = np.zeros((_CHUNK, self.width), np.int64)
        for number, piece in enumerate(self._held[0] if self._held else ()):
            for low in range(0, piece.size, _CHUNK):
                own = slice(low, min(low + _CHUNK, piece.size))
                rows = room[: own.stop - low]
                for place, column in enumerate(self._held):
                    rows[:, place] = column[number][own]
                yield number, own, rows
