"""How many cells rows fall into: counted in a sample of them, or guessed without one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.expressions import Bound, Evaluator
from muntin.plan.nodes import Slicing
from muntin.predicates import Ranked, expected_cells

# Without a sample a slice is taken to hold so many rows.
_ROWS_OF_A_SLICE = 10_000.0
_LIMIT = 1 << 62
# Keys below so many times their number are counted by marking them.
_MARKED = 64


class Counts(Protocol):
    """Rows, and into how many entries they fall: one a slice, group and cell."""

    rows: float

    def cells(self, dimensions: frozenset[int]) -> float:
        """The number of entries if cells are told apart by some dimensions."""
        ...


class Guess:
    """One ungrouped slice of rows that spread evenly over all cells."""

    def __init__(self, dimensions: Sequence[Ranked]) -> None:
        self.rows = _ROWS_OF_A_SLICE
        self.cells = expected_cells([max(each.values, 1) for each in dimensions], self.rows)


@dataclass
class Sample:
    """Rows of which the slice, the group and the ranks are known."""

    slots: Ints
    ranks: list[Ints]
    sizes: list[int]

    def __post_init__(self) -> None:
        self.rows = float(self.slots.size)
        self._numbered = numbered(self.slots)
        self._counts: dict[frozenset[int], float] = {}

    def cells(self, dimensions: frozenset[int]) -> float:
        """The number of different slices, groups and cells among the rows."""
        if dimensions not in self._counts:
            keys, size = self._numbered
            for place in sorted(dimensions):
                if size * self.sizes[place] > _LIMIT:
                    keys, size = numbered(keys)
                keys, size = keys * self.sizes[place] + self.ranks[place], size * self.sizes[place]
            self._counts[dimensions] = float(_distinct(keys, size))
        return self._counts[dimensions]


def sample_cells(
    rows: pa.Table, slicing: Slicing, grouping: Sequence[Bound], dimensions: Sequence[Ranked]
) -> Counts:
    """What rows of a sample fall into; a guess where there are none."""
    from muntin.windows.cut import slice_starts  # noqa: PLC0415 - it brings numba

    rows = rows.filter(rows[slicing.timeline.column].is_valid())
    if not rows.num_rows:
        return Guess(dimensions)
    places = slicing.timeline.to_ticks(rows[slicing.timeline.column].combine_chunks()).to_numpy()
    if slicing.measure == "rows":
        places = np.arange(rows.num_rows)
    starts = slice_starts(places, np.array(slicing.classes, np.int64).reshape(-1, 2))
    evaluated = Evaluator([*grouping, *(each.bound for each in dimensions)])(rows)
    codes = [_codes(each.values) for each in evaluated[: len(grouping)]]
    ranks = [
        dimension.of(each).astype(np.int64)
        for dimension, each in zip(dimensions, evaluated[len(grouping) :], strict=True)
    ]
    return Sample(_slots([numbered(starts)[0], *codes]), ranks, [each.size for each in dimensions])


def _slots(columns: Iterable[Ints]) -> Ints:
    first, *others = columns
    keys, _ = numbered(first)
    for other in others:
        keys, _ = numbered(keys * (int(other.max()) + 1) + other)
    return keys


def numbered(keys: Ints) -> tuple[Ints, int]:
    """Keys as numbers below how many there are."""
    encoded = pa.array(keys).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1)


def _distinct(keys: Ints, size: int) -> int:
    """How many different keys there are, all of them below a size."""
    if size > _MARKED * keys.size:
        ordered = np.sort(keys)
        return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    marks = np.zeros(size, np.bool_)
    marks[keys] = True
    return int(np.count_nonzero(marks))


def _codes(values: pa.Array) -> Ints:
    encoded = values.dictionary_encode(null_encoding="encode")
    codes: Ints = encoded.indices.to_numpy().astype(np.int64)
    return codes
