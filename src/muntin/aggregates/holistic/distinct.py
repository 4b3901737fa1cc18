"""Different values: how many there are, their sum and average, and the values themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.holistic.runs import plain
from muntin.aggregates.sums import Avg, Sum
from muntin.aggregates.types import rank, require_ordered


class Distinct(BuiltIn):
    """The set of a window's values; those that SQL calls equal are one."""

    duplicate_insensitive = True
    distinct = True

    @property
    def identity(self) -> tuple[Any, ...]:
        """No values."""
        return ()

    def lift(self, value: Any) -> tuple[Any, ...]:
        """One value."""
        return (plain(value),)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of both, in order."""
        found = {rank(value): value for value in (*a, *b)}
        return tuple(found[key] for key in sorted(found))

    @property
    def parts(self) -> tuple[Part, ...]:
        """One set."""
        return (Part("set", self.types),)


class CountDistinct(Distinct):
    """The number of different values that are not NULL.

    >>> CountDistinct((pa.float64(),)).of([1.0, 0.0, -0.0, None, 1.0])
    2
    """

    name = "count_distinct"

    def lower(self, partial: tuple[Any, ...]) -> int:
        """How many there are."""
        return len(partial)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BIGINT."""
        require_ordered("count(DISTINCT x)", types[0])
        return pa.int64()


class SumDistinct(Distinct):
    """The exact sum of the different values.

    >>> SumDistinct((pa.int64(),)).of([2, 2, 3])
    5
    """

    name = "sum_distinct"

    def lower(self, partial: tuple[Any, ...]) -> Any:
        """As `sum` of each value once."""
        return Sum(self.types).of(partial)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """As Spark's sum."""
        return Sum(types).type


class AvgDistinct(Distinct):
    """The average of the different values.

    >>> AvgDistinct((pa.int64(),)).of([2, 2, 3])
    2.5
    """

    name = "avg_distinct"

    def lower(self, partial: tuple[Any, ...]) -> Any:
        """As `avg` of each value once."""
        return Avg(self.types).of(partial)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE, or a decimal with four more digits."""
        return Avg(types).type


class CollectSet(Distinct):
    """The different values, in order.

    >>> CollectSet((pa.string(),)).of(["b", "a", None, "b"])
    ['a', 'b']
    """

    name = "collect_set"

    def lower(self, partial: tuple[Any, ...]) -> list[Any]:
        """All of them; an empty list for none."""
        return list(partial)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A list."""
        require_ordered(self.name, types[0])
        return pa.list_(types[0])
