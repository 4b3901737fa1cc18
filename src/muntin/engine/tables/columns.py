"""The rows of one table that keys lead to, and its columns read at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bytes, Ints
from muntin.engine.tables.loops import Codes, expand, gather_bits


@dataclass(frozen=True)
class Found:
    """The matches of a batch.

    Attributes:
        rows: The rows to go on with, in order; None if each has one match and goes on as it is.
        places: Where each match stands among the table's rows; None if its number says it.
        complete: Whether every row that goes on has a match.
    """

    rows: Ints | None
    places: Ints | None
    complete: bool


class Lookup:
    """One table's rows by the number of their key.

    Where each key occurs once, columns are kept in the order of the numbers, so that a row's
    number is its place. Otherwise they are kept sorted by number, and a number leads to a run.

    Args:
        left: Whether rows without a match are kept.
        numbers: The number of each row's key, -1 for NULL.
        size: How many numbers there are; it stands for keys that have none.
        columns: The columns to read, by their joined names.
    """

    def __init__(
        self, left: bool, numbers: Ints, size: int, columns: Mapping[str, pa.Array]
    ) -> None:
        keyed = np.flatnonzero(numbers >= 0)
        order = keyed[np.argsort(numbers[keyed], kind="stable")]
        counts = np.bincount(numbers[keyed], minlength=size + 1).astype(np.int64)
        self.left = left
        self.size = size
        self._matched = counts > 0
        self._covers = bool(self._matched[:size].all())
        self._once = int(counts.max(initial=0)) <= 1
        self._starts = np.cumsum(counts) - counts
        if left:
            self._starts[~self._matched] = order.size
        self._counts = np.maximum(counts, 1) if left else counts
        if self._once:
            places = np.where(self._matched, self._starts, order.size)
            order = np.append(order, -1)[places]
        else:
            order = np.append(order, -1)
        self._columns = {name: _Stored(column, order) for name, column in columns.items()}

    def find(self, codes: Codes, misses: int) -> Found:
        """Where the keys of a batch lead, of which so many have no number."""
        if misses == 0 and self._covers and self._once:
            return Found(None, None, True)
        matched = self._matched[codes]
        complete = bool(matched.all())
        if self._once:
            if complete or self.left:
                return Found(None, None, complete)
            return Found(np.flatnonzero(matched), None, True)
        counts = self._counts[codes]
        if counts.min(initial=1) == counts.max(initial=1) == 1:
            return Found(None, self._starts[codes], complete)
        rows, places = expand(codes, self._starts, self._counts, int(counts.sum()))
        return Found(rows, places, complete or not self.left)

    @property
    def table(self) -> pa.Table:
        """The columns at all places, NULL where there is no match."""
        return pa.table({name: stored.padded for name, stored in self._columns.items()})

    def take(self, name: str, places: Codes | Ints, complete: bool) -> pa.Array:
        """A column at some places; NULL where there is no match."""
        return self._columns[name].take(places, complete)


class _Stored:
    """A column in an order of its rows, where -1 is no row."""

    def __init__(self, column: pa.Array, order: Ints) -> None:
        none = order < 0
        rows = np.where(none, 0, order) if len(column) else order[:0]
        # Places without a row hold the first one: they are read only where the join left NULLs.
        self._filled = _Values(column.take(pa.array(rows)))
        self.padded = column.take(pa.array(order, mask=none))
        self._padded = _Values(self.padded)

    def take(self, places: Codes | Ints, complete: bool) -> pa.Array:
        return (self._filled if complete else self._padded).take(places)


class _Values:
    """Values to read at many places.

    Booleans and NULLs are read bit by bit: Arrow's take is several times as slow on both.
    """

    def __init__(self, values: pa.Array) -> None:
        kind = values.type
        self._type = kind
        self._plain = values
        self._bits: Bytes | None = None
        self._valid: Bytes | None = None
        fixed = pa.types.is_primitive(kind) and not pa.types.is_float16(kind)
        if values.null_count and fixed:
            self._valid = _bytes(values.is_valid())
            self._plain = pa.Array.from_buffers(
                kind, len(values), [None, values.buffers()[1]], 0, values.offset
            )
        if pa.types.is_boolean(kind):
            self._bits = _bytes(self._plain)

    def take(self, places: Codes | Ints) -> pa.Array:
        if self._bits is not None:
            data = pa.py_buffer(gather_bits(self._bits, places))
        else:
            taken = pc.take(self._plain, pa.array(places), boundscheck=False)
            if self._valid is None:
                return taken
            data = taken.buffers()[1]
        valid = None
        if self._valid is not None:
            valid = pa.py_buffer(gather_bits(self._valid, places))
        return pa.Array.from_buffers(self._type, places.size, [valid, data])


def _bytes(flags: pa.Array) -> Bytes:
    """Booleans, none of them NULL, a byte each."""
    flat: Bytes = flags.to_numpy(zero_copy_only=False).view(np.uint8)
    return flat
