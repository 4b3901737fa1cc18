"""The best values of a window: max and min of several values, max_by and min_by of several rows."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import REQUIRED, Part
from muntin.aggregates.holistic.frequencies import check_number
from muntin.aggregates.holistic.runs import Run, Runs, spelled_out
from muntin.aggregates.types import require_ordered


class MinK(Runs):
    """The k least values, the least first, each as often as it occurs.

    >>> MinK((pa.int64(),), (2,)).of([3, 1, None, 1])
    [1, 1]
    """

    name = "min_k"
    constants: ClassVar[dict[str, Any]] = {"k": REQUIRED}
    sample = (2,)
    takes_greatest = False

    def check(self) -> None:
        """A whole number of values."""
        check_number(self.name, ", ".join("xy"[: self.arity[0]]), self.given[0])

    def lower(self, partial: Run) -> list[Any]:
        """An empty list for no values."""
        values = spelled_out(partial)
        if self.takes_greatest:
            values.reverse()
        return values[: self.given[0]]

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A list."""
        for kind in types:
            require_ordered(self.name, kind)
        return pa.list_(types[0])


class MaxK(MinK):
    """The k greatest values, the greatest first, each as often as it occurs.

    >>> MaxK((pa.int64(),), (2,)).of([3, 1, None, 2])
    [3, 2]
    """

    name = "max_k"
    takes_greatest = True


class MinByK(MinK):
    """The first argument of the k rows where the second is least; ties by the first.

    Rows where the second argument is NULL are left out, the first may be NULL.

    >>> MinByK((pa.string(), pa.int64()), (2,)).of([("x", 2), ("y", 1), ("z", None), ("w", 2)])
    ['y', 'w']
    """

    name = "min_by_k"
    arity = (2, 2)
    skips_nulls = False

    def partial(self, value: tuple[Any, Any]) -> Run:
        """NULL keys give no row."""
        return () if value[1] is None else self.lift(value)

    def lift(self, value: tuple[Any, Any]) -> Run:
        """A row by its key, then its value."""
        return (((value[1], value[0]), 1),)

    def lower(self, partial: Run) -> list[Any]:
        """The values of the best rows."""
        return [value for _, value in super().lower(partial)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Rows in order of both arguments."""
        return (Part("pairs", self.types, (0, 1)),)


class MaxByK(MinByK):
    """The first argument of the k rows where the second is greatest; ties by the first.

    >>> MaxByK((pa.string(), pa.int64()), (2,)).of([("x", 2), ("y", 1), ("w", 2)])
    ['x', 'w']
    """

    name = "max_by_k"
    takes_greatest = True
