"""Rows that are kept by number until they are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.operators.rows import Columns, Route, concat_columns, owned, take

# A chunk of so many rows is merged no more.
_LARGE = 1 << 17


@dataclass
class LogChunk:
    """Some rows of a log; those that are dropped stay until half of them are."""

    numbers: Ints
    columns: Columns
    alive: Bools
    dead: int = 0

    def find(self, numbers: Ints) -> Ints:
        """The places of rows, by their numbers; all of them are here."""
        first = int(self.numbers[0])
        if int(self.numbers[-1]) - first == self.numbers.size - 1:
            return np.subtract(numbers, first)
        # In order, a search begins where the one before ended.
        order = np.argsort(numbers)
        places = np.empty(numbers.size, np.int64)
        places[order] = np.searchsorted(self.numbers, numbers[order])
        return places

    def compacted(self) -> LogChunk:
        """The rows that are not dropped."""
        if not self.dead:
            return self
        kept = np.flatnonzero(self.alive)
        return LogChunk(self.numbers[kept], take(self.columns, kept), np.ones(kept.size, np.bool_))


class RowLog:
    """A log of rows in columns that any row can be read from or dropped.

    Rows lie in chunks that are merged as they grow, up to a size from which one more costs less
    than another move. What is dropped is removed once it is half of a chunk. So how often a row is
    moved does not depend on how many are kept.

    >>> log = RowLog([pa.string()])
    >>> log.append((pa.array(["a", "b", "c"]),), 3).tolist()
    [0, 1, 2]
    >>> log.drop(np.array([0, 1]))
    >>> log.take(np.array([2]))[0].to_pylist(), len(log)
    (['c'], 1)
    """

    STATE = ("_chunks", "_begins", "_next", "_size", "nulls")

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = tuple(types)
        self._chunks: list[LogChunk] = []
        self._begins = np.empty(0, np.int64)
        self._next = 0
        self._size = 0
        self.nulls = False

    def __len__(self) -> int:
        return self._size

    def append(self, columns: Columns, count: int) -> Ints:
        """Keep rows; their numbers."""
        numbers = np.arange(self._next, self._next + count)
        if not count:
            return numbers
        self._next += count
        self._size += count
        self.nulls = self.nulls or any(column.null_count for column in columns)
        self._chunks.append(LogChunk(numbers, owned(columns), np.ones(count, np.bool_)))
        # All that a cascade of merges would put together is merged at once.
        first, size = len(self._chunks) - 1, count
        while first and self._chunks[first - 1].numbers.size < min(2 * size, _LARGE):
            first -= 1
            size += self._chunks[first].numbers.size
        if first < len(self._chunks) - 1:
            self._chunks[first:] = [merged(self._chunks[first:])]
        self._index()
        return numbers

    def _index(self) -> None:
        self._chunks = [chunk for chunk in self._chunks if chunk.numbers.size]
        self._begins = np.array([chunk.numbers[0] for chunk in self._chunks], np.int64)

    def take(self, numbers: Ints) -> Columns:
        """The rows with some numbers, in their order."""
        if not numbers.size or not self._types:
            return tuple(pa.array([], kind) for kind in self._types)
        route, back = self._route(numbers)
        found = Route(tuple((at, self._chunks[at].find(each)) for at, each in route), back)
        columns = [chunk.columns for chunk in self._chunks]
        return tuple(found.column(arrays) for arrays in zip(*columns, strict=True))

    def _route(self, numbers: Ints) -> tuple[list[tuple[int, Ints]], Ints | None]:
        """Numbers by the chunk that holds them, and the way back to the order they have."""
        if len(self._chunks) == 1:
            return [(0, numbers)], None
        owners = np.searchsorted(self._begins, numbers, side="right") - 1
        back = None
        if (owners[1:] < owners[:-1]).any():
            # Few distinct numbers: of 16 bits, they are sorted by counting.
            small = owners.astype(np.uint16) if len(self._chunks) < 1 << 16 else owners
            order = np.argsort(small, kind="stable")
            back = np.empty(numbers.size, np.int64)
            back[order] = np.arange(numbers.size)
            owners, numbers = owners[order], numbers[order]
        cuts = np.flatnonzero(owners[1:] != owners[:-1]) + 1
        firsts, ends = np.r_[0, cuts], np.r_[cuts, owners.size]
        parts = [
            (int(owners[begin]), numbers[begin:end])
            for begin, end in zip(firsts.tolist(), ends.tolist(), strict=True)
        ]
        return parts, back

    def drop(self, numbers: Ints) -> None:
        """Forget rows, each once."""
        if not numbers.size:
            return
        self._size -= numbers.size
        for owner, gone in self._route(numbers)[0]:
            chunk = self._chunks[owner]
            chunk.alive[chunk.find(gone)] = False
            chunk.dead += gone.size
            if 2 * chunk.dead > chunk.numbers.size:
                self._chunks[owner] = chunk.compacted()
        self._index()


def merged(chunks: Sequence[LogChunk]) -> LogChunk:
    """The rows of several chunks as one."""
    held = [chunk.compacted() for chunk in chunks]
    return LogChunk(
        np.concatenate([each.numbers for each in held]),
        concat_columns([each.columns for each in held]),
        np.concatenate([each.alive for each in held]),
    )
