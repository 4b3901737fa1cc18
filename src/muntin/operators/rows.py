"""Rows with lifetimes in columns, and how the rows of an edge change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints

# The end of rows that never end, and the watermark of a stream that is over. Its opposite is the
# watermark of a stream that has not spoken yet.
NEVER = 1 << 62
ALWAYS = -NEVER

Columns = tuple[pa.Array, ...]
Result = TypeVar("Result")
NONE: Ints = np.empty(0, np.int64)


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
        columns = take(self.columns, places)
        return Rows(columns, self.ids[places], self.start[places], self.end[places])

    def slice(self, begin: int, end: int) -> Rows:
        """The rows from one place to before another, not copied."""
        columns = tuple(column.slice(begin, end - begin) for column in self.columns)
        cut = slice(begin, end)
        return Rows(columns, self.ids[cut], self.start[cut], self.end[cut])

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
    return tuple(column.take(indices) for column in columns)


def concat(parts: Sequence[Rows]) -> Rows:
    """Rows of one schema, one after the other; at least one part is given."""
    held = [part for part in parts if len(part)] or [parts[0]]
    if len(held) == 1:
        return held[0]
    return Rows(
        concat_columns([part.columns for part in held]),
        np.concatenate([part.ids for part in held]),
        np.concatenate([part.start for part in held]),
        np.concatenate([part.end for part in held]),
    )


def concat_columns(parts: Sequence[Columns]) -> Columns:
    """Columns of several tables, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return tuple(pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True))


def gather(parts: Sequence[Columns], begins: Ints, places: Ints) -> Columns:
    """Values at places of several tables that are numbered through.

    Part ``i`` holds the places from ``begins[i]`` on. Only the parts that are asked are read.
    """
    if len(parts) == 1:
        return take(parts[0], places - begins[0])
    if not places.size:
        return take(parts[0], places)
    owners = np.searchsorted(begins, places, side="right") - 1
    order = np.argsort(owners, kind="stable")
    used, firsts = np.unique(owners[order], return_index=True)
    bounds = [*firsts.tolist(), places.size]
    taken = [
        take(parts[owner], places[order[bounds[i] : bounds[i + 1]]] - begins[owner])
        for i, owner in enumerate(used.tolist())
    ]
    if len(taken) == 1:
        return taken[0]
    back = np.empty(places.size, np.int64)
    back[order] = np.arange(places.size)
    return take(concat_columns(taken), back)


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


def gather_ints(parts: Sequence[Ints], begins: Ints, places: Ints) -> Ints:
    """Numbers at places of several arrays that are numbered through."""
    if len(parts) == 1:
        only: Ints = parts[0][places - begins[0]]
        return only
    owners = np.searchsorted(begins, places, side="right") - 1
    found = np.empty(places.size, np.int64)
    for owner in np.unique(owners).tolist():
        mine = owners == owner
        found[mine] = parts[owner][places[mine] - begins[owner]]
    return found
