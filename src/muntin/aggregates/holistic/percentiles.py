"""Values by their place among all: median and percentiles."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import REQUIRED
from muntin.aggregates.holistic.runs import Run, Runs, spelled_out
from muntin.aggregates.types import is_number, is_real, require_number, require_ordered
from muntin.errors import AggregateError


class Fractions:
    """The fractions of all values that an aggregate is asked for: one of them, or an array."""

    name: ClassVar[str]
    given: tuple[Any, ...]

    @property
    def fractions(self) -> tuple[Any, ...]:
        """The fractions that are asked for."""
        given = self.given[0]
        return given if isinstance(given, tuple) else (given,)

    @property
    def is_listed(self) -> bool:
        """Whether an array was asked for."""
        return isinstance(self.given[0], tuple)

    def check_fractions(self) -> None:
        """Refuse what does not lie between 0 and 1, and an array of nothing."""
        wrong = [p for p in self.fractions if not is_real(p) or not 0 <= p <= 1]
        if wrong or not self.fractions:
            raise AggregateError(
                f"{self.name} takes a fraction from 0 to 1, or an array of such, not "
                f"{wrong[0] if wrong else self.given[0]!r}",
                hint=f"write {self.name}(x, 0.95), or {self.name}(x, array(0.5, 0.95))",
            )


class _Placed(Fractions, Runs):
    """The values at some fractions of the way from the least to the greatest."""

    constants: ClassVar[dict[str, Any]] = {"p": REQUIRED, "descending": False}
    sample: ClassVar[tuple[Any, ...]] = (0.5,)

    def check(self) -> None:
        """Fractions lie between 0 and 1."""
        self.check_fractions()
        descending = self.given[1]
        if not isinstance(descending, bool):
            raise AggregateError(
                f"{self.name} counts from the greatest value on if its third argument is true, "
                f"which is {descending!r}",
                hint=f"write {self.name}(x, 0.95, true), or leave it out",
            )

    @property
    def is_descending(self) -> bool:
        """Whether fractions count from the greatest value on."""
        return bool(self.given[1])

    def lower(self, partial: Run) -> Any:
        """NULL for no values."""
        if not partial:
            return None
        values = spelled_out(partial)
        if self.is_descending:
            values.reverse()
        found = [self.value(values, p) for p in self.fractions]
        return found if self.is_listed else found[0]

    @abstractmethod
    def value(self, values: list[Any], p: float) -> Any:
        """The value at a fraction of sorted values."""

    def _type(self, each: pa.DataType) -> pa.DataType:
        return pa.list_(each) if self.is_listed else each


class Percentile(_Placed):
    """The value at a fraction of the way through the sorted values, between two if need be.

    >>> Percentile((pa.int64(),), (0.5,)).of([4, 1, 2, 3])
    2.5
    >>> Percentile((pa.int64(),), ((0.0, 0.75),)).of([1, 2, 3, 4])
    [1.0, 3.25]
    >>> Percentile((pa.float64(),), (0.5,)).of([-1.5e308, 1.5e308])
    0.0
    """

    name = "percentile"
    aliases: ClassVar[tuple[str, ...]] = ("percentile_cont", "quantile_cont")

    def value(self, values: list[Any], p: float) -> float:
        """From the lower value on, or as a weighted mean of values that are too far apart."""
        position = (len(values) - 1) * float(p)
        low, high = math.floor(position), math.ceil(position)
        below, above = float(values[low]), float(values[high])
        if low == high or below == above:
            return below
        weight, apart = position - low, above - below
        if math.isfinite(apart):
            return below + weight * apart
        return below * (1 - weight) + above * weight

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE."""
        require_number(self.name, types[0])
        return self._type(pa.float64())


class Median(Percentile):
    """The middle value, or the mean of the two in the middle.

    >>> Median((pa.int64(),)).of([9, 1, 2, None])
    2.0
    """

    name = "median"
    aliases = ()
    constants: ClassVar[dict[str, Any]] = {}
    sample = ()

    def __init__(self, types: tuple[pa.DataType, ...], constants: tuple[Any, ...] = ()) -> None:
        super().__init__(types, constants)
        self.given = (0.5, False)

    def check(self) -> None:
        """Nothing is given."""

    @property
    def is_listed(self) -> bool:
        """One value."""
        return False


class PercentileDisc(_Placed):
    """The least value that at least a fraction of all values do not exceed.

    >>> PercentileDisc((pa.string(),), (0.5,)).of(["a", "b", "c", "d"])
    'b'
    """

    name = "percentile_disc"
    aliases = ("quantile_disc", "quantile")

    def value(self, values: list[Any], p: float) -> Any:
        """A value of the window itself."""
        found = values[max(math.ceil(len(values) * float(p)) - 1, 0)]
        return float(found) if is_number(self.types[0]) else found

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE for numbers, as in Spark; other values as they are."""
        require_ordered(self.name, types[0])
        return self._type(pa.float64() if is_number(types[0]) else types[0])
