"""Rows with lifetimes in columns, and how the rows of an edge change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints

# The end of rows that never end, and the watermark of a stream that is over. Its opposite is the
# watermark of a stream that has not spoken yet.
NEVER = 1 << 62
ALWAYS = -NEVER

Columns = tuple[pa.Array, ...]
Result = TypeVar("Result")
NONE: Ints = np.empty(0, np.int64)
# Slices that hold fewer bytes are not worth a copy.
_WIDE = 1 << 14


@dataclass(frozen=True)
class Rows:
    """Rows that each live for ``[start, end)``.

    ``ids`` tell the rows of one edge apart, so that a later end can name them. ``end`` is the end
    that a row has by itself; on some edges rows end earlier, and `Changes` says which.
    """

    columns: Columns
    ids: Ints
    start: Ints
    end: Ints

    @classmethod
    def none(cls, schema: pa.Schema) -> Rows:
        """No rows."""
        return cls(tuple(pa.array([], field.type) for field in schema), NONE, NONE, NONE)

    def __len__(self) -> int:
        return int(self.start.size)

    def take(self, places: Ints) -> Rows:
        """The rows at some places, in their order."""
        start = take_ints(self.start, places)
        # Where rows are not told apart, starts stand for ids.
        ids = start if self.ids is self.start else take_ints(self.ids, places)
        return Rows(take(self.columns, places), ids, start, take_ints(self.end, places))

    def slice(self, begin: int, end: int) -> Rows:
        """The rows from one place to before another, not copied."""
        columns = tuple(column.slice(begin, end - begin) for column in self.columns)
        start = self.start[begin:end]
        ids = start if self.ids is self.start else self.ids[begin:end]
        return Rows(columns, ids, start, self.end[begin:end])

    def owned(self) -> Rows:
        """The rows to be kept: copied where they are the lesser part of what they lie in."""
        base = self.start.base
        lies_wide = isinstance(base, np.ndarray) and 2 * self.start.size < base.size
        if lies_wide or any(map(_lies_wide, self.columns)):
            return self.take(np.arange(len(self)))
        return self

    def where(self, mask: Bools) -> Rows:
        """The rows that a mask names; not copied where it names all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))


@dataclass(frozen=True)
class Changes:
    """What became known of an edge: rows that are born, and rows that end before their time.

    ``ended`` names rows by their ids, born here or before, and ``at`` says when each ends: after
    its start, and before the end that it would have by itself.
    """

    born: Rows
    ended: Ints
    at: Ints

    @classmethod
    def births(cls, born: Rows) -> Changes:
        """Rows that are born, and no ends."""
        return cls(born, NONE, NONE)


def take(columns: Columns, places: Ints) -> Columns:
    """The values at some places of each column."""
    if not columns:
        return ()
    indices = pa.array(places)
    return tuple(_at(column, indices) for column in columns)


def _at(column: pa.Array, indices: pa.Array) -> pa.Array:
    """The values at some places, which are known to be there."""
    return pc.take(column, indices, boundscheck=False)


def owned(columns: Columns) -> Columns:
    """Columns to be kept: copied where they are the lesser part of what they lie in."""
    if any(map(_lies_wide, columns)):
        return take(columns, np.arange(len(columns[0])))
    return columns


def _lies_wide(column: pa.Array) -> bool:
    """Whether a slice holds memory of which it shows the lesser part."""
    held = column.get_total_buffer_size()
    return bool(held > _WIDE and 2 * column.nbytes < held)


def take_ints(values: Ints, places: Ints) -> Ints:
    """The numbers at some places, which are known to be there."""
    return np.take(values, places, out=empty_ints(places.size), mode="clip")


# Numpy uses the memory of smaller arrays again.
_LARGE = 1 << 20


def empty_ints(count: int) -> Ints:
    """Room for numbers; for many, in Arrow's memory, which is used again.

    Large arrays of numpy's have pages that were never touched. Where the system is a guest, a
    first touch may take longer than all that is done with a page.
    """
    if count < _LARGE:
        return np.empty(count, np.int64)
    return np.frombuffer(pa.allocate_buffer(8 * count), np.int64)


def concat(parts: Sequence[Rows]) -> Rows:
    """Rows of one schema, one after the other; at least one part is given."""
    held = [part for part in parts if len(part)] or [parts[0]]
    if len(held) == 1:
        return held[0]
    start = np.concatenate([part.start for part in held])
    same = all(part.ids is part.start for part in held)
    return Rows(
        concat_columns([part.columns for part in held]),
        start if same else np.concatenate([part.ids for part in held]),
        start,
        np.concatenate([part.end for part in held]),
    )


def concat_columns(parts: Sequence[Columns]) -> Columns:
    """Columns of several tables, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return tuple(pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True))


@dataclass(frozen=True)
class Route:
    """Places of several tables that are numbered through, by the table that holds them.

    ``back`` brings what is taken table by table into the order it was asked for; None where it is.
    """

    parts: tuple[tuple[int, Ints], ...]
    back: Ints | None

    @classmethod
    def of(cls, begins: Ints, places: Ints) -> Route:
        """The way to places; table ``i`` holds those from ``begins[i]`` on, the first from 0."""
        if begins.size == 1 or not places.size:
            return cls(((0, places),), None)
        owners: Any = np.searchsorted(begins, places, side="right") - 1
        if begins.size <= 1 << 16:
            # Short numbers are sorted by counting.
            owners = owners.astype(np.uint16)
        back = None
        if (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
            back = np.empty(places.size, np.int64)
            back[order] = np.arange(places.size)
            owners, places = owners[order], places[order]
        firsts = [0, *(1 + np.flatnonzero(owners[1:] != owners[:-1])).tolist(), places.size]
        parts = [
            (int(owners[first]), places[first:last] - begins[owners[first]])
            for first, last in pairwise(firsts)
        ]
        return cls(tuple(parts), back)

    def column(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The values of one column, of which each table has an array."""
        taken = [_at(arrays[owner], pa.array(places)) for owner, places in self.parts]
        whole = taken[0] if len(taken) == 1 else pa.concat_arrays(taken)
        return whole if self.back is None else whole.take(pa.array(self.back))

    def ints(self, arrays: Sequence[Ints]) -> Ints:
        """The numbers of one array of each table."""
        taken = [arrays[owner][places] for owner, places in self.parts]
        whole: Ints = taken[0] if len(taken) == 1 else np.concatenate(taken)
        return whole if self.back is None else whole[self.back]


# What takes less than so many rows is not worth a thread.
_MANY = 50_000


def in_threads(
    threads: int, function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], rows: int
) -> list[Result]:
    """Calls of a function that holds no lock of Python's for long, in their order."""
    if threads < 2 or rows < _MANY or len(tasks) < 2:
        return [function(*task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda task: function(*task), tasks))
