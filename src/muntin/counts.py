"""What is counted of rows and values, from the engine to ``progress()``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Self


@dataclass(frozen=True)
class RowCounts:
    """What came of the rows of a stream.

    Attributes:
        rows: All rows that came in.
        late_rows: Rows below the watermark, which were dropped.
        bad_rows: Rows without a usable time, which were dropped.
    """

    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0


@dataclass(frozen=True)
class Counts(RowCounts):
    """What a run has seen and done: rows, failed values, and aggregations.

    Attributes:
        errors: Per query, the values that failed: overflow, division by zero, a bad cast.
        partial_aggregations: Updates of partials by rows; one that several queries share is one.
        final_aggregations: Aggregations along time, which make windows of slices: combinations,
            subtractions and comparisons, for every group and accumulator where finals move on.
        cell_aggregations: Aggregations along cells, which make partials of a predicate of those of
            its cells, or slices of a query's own of the shared ones.

    >>> both = Counts(rows=3, late_rows=1) + Counts(rows=2, errors=Counter(q1=1))
    >>> both.rows, both.late_rows, both.errors.total()
    (5, 1, 1)
    """

    errors: Counter[str] = field(default_factory=Counter)
    partial_aggregations: int = 0
    final_aggregations: int = 0
    cell_aggregations: int = 0

    @property
    def aggregations(self) -> int:
        """All of them: of rows, along cells and along time."""
        return self.partial_aggregations + self.cell_aggregations + self.final_aggregations

    def __add__(self, other: Self) -> Counts:
        names = [each.name for each in fields(Counts)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})
