"""first, last, min_by and max_by as a column of chosen rows."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import TIMED, Part
from muntin.aggregates.columns.arrow_views import live_cells, valid_mask
from muntin.aggregates.columns.codes import NOTHING, Coder, coder
from muntin.aggregates.columns.column import PartColumn, grown
from muntin.errors import DataError

_GREATEST = frozenset({"last", "last_valid", "max_by"})
_SKIPS_NULL_VALUES = frozenset({"first_valid", "last_valid"})


class PickColumn(PartColumn):
    """The extreme (key, value) a cell; the key is the event time or the second argument."""

    def __init__(
        self, part: Part, seen: Bools, rows: tuple[Ints, Bools, Ints], coders: tuple[Coder, Coder]
    ) -> None:
        super().__init__(part)
        self.seen = seen
        self.keys, self.valid, self.values = rows
        self.key_coder, self.value_coder = coders
        self.flip = -1 if part.kind in _GREATEST else 0

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No rows."""
        key_type = pa.int64() if part.kind in TIMED else part.types[1]
        rows = np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int64)
        return cls(part, np.zeros(size, np.bool_), rows, (coder(key_type), coder(part.types[0])))

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def nbytes(self) -> int:
        """18 bytes a cell, and the dictionaries of types that need one."""
        return 18 * len(self) + self.key_coder.nbytes + self.value_coder.nbytes

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Keep the row that comes first, or last; NULL keys are left out."""
        if self.part.kind not in TIMED:
            keys = args[1]
        elif times is None:
            raise DataError(f"{self.part} needs event times", hint="pass `times` to `update`")
        else:
            keys = pa.array(times)
        cells = live_cells(cells, keys)
        if self.part.kind in _SKIPS_NULL_VALUES:
            cells = live_cells(cells, args[0])
        self.keep(cells, keys, args[0])

    def keep(self, cells: Ints, keys: pa.Array, values: pa.Array) -> None:
        """Keep the rows that come first, whatever the NULL rules say of them."""
        key_codes, keys_moved = self.key_coder.encode(keys)
        if self.value_coder.moves:
            # Only values that may stay are sorted into the dictionary.
            rows = key_winners(cells, key_codes, len(self), self.flip)
            cells, key_codes, values = cells[rows], key_codes[rows], values.take(pa.array(rows))
        value_codes, values_moved = self.value_coder.encode(values)
        self._move(keys_moved, values_moved)
        valid = valid_mask(values)
        if valid is None:
            valid = np.ones(len(values), np.bool_)
        keep_picks(
            self.seen,
            self.keys,
            self.valid,
            self.values,
            self.flip,
            cells,
            key_codes,
            valid,
            value_codes,
        )
        self._drop_unused()

    def _move(self, keys_moved: Ints | None, values_moved: Ints | None) -> None:
        """Follow dictionaries whose codes have moved."""
        if keys_moved is not None:
            self.keys[self.seen] = keys_moved[self.keys[self.seen]]
        if values_moved is not None:
            held = self.seen & self.valid
            self.values[held] = values_moved[self.values[held]]

    def _drop_unused(self) -> None:
        if self.key_coder.moves:
            self._move(self.key_coder.drop_unused(self.keys[self.seen]), None)
        if self.value_coder.moves:
            held = self.seen & self.valid
            self._move(None, self.value_coder.drop_unused(self.values[held]))

    def result(self) -> pa.Array:
        """The chosen values; NULL also where no row was seen."""
        return self.value_coder.decode(self.values, self.seen & self.valid)

    def merge(self, cells: Ints, other: Self) -> None:
        """Keep the row that comes first, or last."""
        cells = np.where(other.seen, cells, -1)
        if self.key_coder.moves or self.value_coder.moves:
            self.keep(cells, other._decoded_keys(), other.result())
        else:
            keep_picks(
                self.seen,
                self.keys,
                self.valid,
                self.values,
                self.flip,
                cells,
                other.keys,
                other.valid,
                other.values,
            )

    def _decoded_keys(self) -> pa.Array:
        return self.key_coder.decode(self.keys, self.seen)

    def take(self, indices: Ints) -> Self:
        """The rows at `indices`."""
        return self._with(
            self.seen[indices], (self.keys[indices], self.valid[indices], self.values[indices])
        )

    def _with(self, seen: Bools, rows: tuple[Ints, Bools, Ints]) -> Self:
        coders = self.key_coder.copy(), self.value_coder.copy()
        return type(self)(self.part, seen, rows, coders)

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Chosen rows of runs of cells, by a monotone deque."""
        best = slide_picks(self.seen, self.keys, self.valid, self.values, self.flip, starts, ends)
        if len(self) == 0:
            return self.empty(self.part, len(best))
        found = self.take(best)
        found.seen &= best >= 0
        return found

    def resize(self, size: int) -> None:
        """Grow with cells that hold no row."""
        self.seen, self.valid = grown(self.seen, size), grown(self.valid, size)  # type: ignore[assignment]
        self.keys, self.values = grown(self.keys, size), grown(self.values, size)  # type: ignore[assignment]

    def to_arrow(self) -> pa.RecordBatch:
        """Whether there is a row, its key and its value."""
        columns = [pa.array(self.seen), self._decoded_keys(), self.result()]
        return pa.RecordBatch.from_arrays(columns, names=["seen", "key", "value"])

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The rows of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        seen = batch.column("seen").to_numpy(zero_copy_only=False)
        cells = np.where(seen, np.arange(batch.num_rows), -1)
        column.keep(cells, batch.column("key"), batch.column("value"))
        return column


@compiled
def _before(
    keys: Ints,
    valid: Bools,
    values: Ints,
    i: int,
    other_keys: Ints,
    other_valid: Bools,
    other_values: Ints,
    j: int,
    flip: int,
) -> bool:
    """Whether row i comes before row j of the others."""
    if keys[i] != other_keys[j]:
        return bool((keys[i] ^ flip) < (other_keys[j] ^ flip))
    if valid[i] != other_valid[j]:
        return bool(valid[i] == (flip != 0))
    return bool(valid[i] and (values[i] ^ flip) < (other_values[j] ^ flip))


@compiled
def key_winners(cells: Ints, keys: Ints, size: int, flip: int) -> Ints:
    """The rows that no other row of the same cell precedes by its key alone; `size` cells."""
    best = np.full(size, NOTHING, np.int64)
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            best[cells[i]] = min(best[cells[i]], keys[i] ^ flip)
    out = np.empty(cells.shape[0], np.int64)
    found = 0
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and best[cells[i]] == (keys[i] ^ flip):
            out[found] = i
            found += 1
    return out[:found]


@compiled
def keep_picks(
    seen: Bools,
    keys: Ints,
    valid: Bools,
    values: Ints,
    flip: int,
    cells: Ints,
    other_keys: Ints,
    other_valid: Bools,
    other_values: Ints,
) -> None:
    """Keep the row that comes first a cell; -1 skips a row."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        # Most rows are settled by their key alone, without a call.
        if cell < 0 or (seen[cell] and (keys[cell] ^ flip) < (other_keys[i] ^ flip)):
            continue
        if not seen[cell] or _before(
            other_keys, other_valid, other_values, i, keys, valid, values, cell, flip
        ):
            seen[cell] = True
            keys[cell] = other_keys[i]
            valid[cell] = other_valid[i]
            values[cell] = other_values[i]


@compiled
def slide_picks(
    seen: Bools, keys: Ints, valid: Bools, values: Ints, flip: int, starts: Ints, ends: Ints
) -> Ints:
    """The index of the first row in [starts[i], ends[i]), -1 where none was seen.

    The same deque as for a minimum, with rows for codes.
    """
    out = np.empty(starts.shape[0], np.int64)
    queue = np.empty(keys.shape[0], np.int64)
    head, tail, entered, before = 0, 0, 0, 0
    for i in range(starts.shape[0]):
        start, end = starts[i], ends[i]
        if i == 0 or start < before or end < entered or start >= entered:
            head, tail, entered = 0, 0, start
        before = start
        while entered < end:
            if seen[entered]:
                while tail > head and _before(
                    keys, valid, values, entered, keys, valid, values, queue[tail - 1], flip
                ):
                    tail -= 1
                queue[tail] = entered
                tail += 1
            entered += 1
        while head < tail and queue[head] < start:
            head += 1
        out[i] = queue[head] if head < tail else -1
    return out
