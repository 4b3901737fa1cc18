"""Answers of a bank, and how they are read off sums of windows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Bools, Ints, Words
from muntin.aggregates import Lowered, Part, ResolvedAggregate
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.sums import SumColumn


class Answers(NamedTuple):
    """One answer a group and range, of shape (groups, ranges).

    Attributes:
        values: The answers; any value where there is none.
        nulls: Which answers are NULL; None if none is.
        errors: Which of those are NULL because their type cannot hold them; None if none is.
    """

    values: npt.NDArray[Any]
    nulls: Bools | None = None
    errors: Bools | None = None

    def to_pylist(self) -> list[list[Any]]:
        """Python values, None for NULL."""
        rows: list[list[Any]] = self.values.tolist()
        if self.nulls is not None:
            for i, j in np.argwhere(self.nulls).tolist():
                rows[i][j] = None
        return rows

    def take_ranges(self, order: list[int]) -> Answers:
        """The columns in another order, repeats allowed."""
        if order == list(range(self.values.shape[1])):
            return self
        nulls, errors = (None if part is None else part[:, order] for part in self[1:])
        return Answers(self.values[:, order], nulls, errors)


def from_lowered(lowered: Lowered, ranges: int, groups: int) -> Answers:
    """Answers in the order (range, group), as arrays of shape (group, range)."""
    shape = (ranges, groups)
    values, nulls = lowered.values, None
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False).reshape(shape).T
        if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
            values = values.fill_null(pa.scalar(0).cast(values.type))
    errors = lowered.errors
    return Answers(
        values.to_numpy(zero_copy_only=False).reshape(shape).T,
        nulls,
        None if errors is None else errors.to_numpy(zero_copy_only=False).reshape(shape).T,
    )


def from_doubles(
    sums: npt.NDArray[np.float64], counts: Ints | None, average: bool, specials: Ints | None
) -> Answers:
    """Sums, or averages, of shape (ranges, groups); without counts all windows hold rows."""
    if specials is not None:
        nans, ups, downs = specials
        sums[ups > 0] = np.inf
        sums[downs > 0] = -np.inf
        sums[(nans > 0) | ((ups > 0) & (downs > 0))] = np.nan
    if counts is None:
        return Answers(sums.T)
    if average:
        sums = sums / np.maximum(counts, 1)
    empty = counts == 0
    return Answers(sums.T, empty.T if empty.any() else None)


def sum_column(part: Part, words: Words, unit: int, specials: Ints | None) -> SumColumn:
    """Numbers of several words, of shape (cells, words), as exact sums."""
    halves = np.ascontiguousarray(words).view(np.uint32).astype(np.int64)
    # The last limb carries the sign.
    halves[:, -1] = halves[:, -1].astype(np.uint32).view(np.int32)
    return SumColumn(part, halves, unit, 1, specials)


def lower(
    aggregate: ResolvedAggregate, sums: list[SumColumn], counts: Ints, ranges: int
) -> Answers:
    """The answers of any aggregate of sums and counts."""
    rest = iter(sums)
    held: list[Any] = [
        CountColumn(part, counts) if part.kind in {"count", "count_if"} else next(rest)
        for part in aggregate.parts
    ]
    return from_lowered(aggregate.lower(held), ranges, len(counts) // ranges)
