"""Percentiles within a relative error, from histograms with a bounded number of buckets."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from muntin.aggregates.algebra import HISTOGRAM, REQUIRED, BuiltIn, Part
from muntin.aggregates.extremes import greatest, least
from muntin.aggregates.holistic.percentiles import Fractions
from muntin.aggregates.holistic.runs import Run, united
from muntin.aggregates.types import is_real, require_number
from muntin.errors import AggregateError

_LEAST_ERROR = 1e-4


class Histogram(NamedTuple):
    """The least and the greatest value, and how many values are in each bucket that has some."""

    least: Any = None
    greatest: Any = None
    buckets: Run = ()


class ApproxPercentile(Fractions, BuiltIn):
    """The value that a fraction of all values do not exceed, within a relative error.

    Buckets are those of the doubles' leading bits, each power of two in equal parts, with zero and
    both signs apart. Which bucket holds the value is exact; its middle is the answer. The least and
    the greatest value are exact, and no answer lies beyond them.
    The error is 0.01, or as said: below 1 it is the relative error, and from 1 on the `accuracy`
    of Spark's function, whose inverse bounds ranks there and values here, from 0.001 on.

    >>> ApproxPercentile((pa.int64(),), (0.5,)).of([1, 2, 1000])
    2
    >>> ApproxPercentile((pa.float64(),), ((0.5, 1.0), 0.05)).of([100.0, 104.0, 208.0])
    [106.0, 208.0]
    """

    name = "approx_percentile"
    aliases = ("percentile_approx", "approx_quantile")
    constants: ClassVar[dict[str, Any]] = {"p": REQUIRED, "error": 0.01}
    sample: ClassVar[tuple[Any, ...]] = (0.5,)

    def check(self) -> None:
        """Fractions lie between 0 and 1, the error between 0.0001 and 1."""
        self.check_fractions()
        error = self.given[1]
        if not is_real(error) or not error >= _LEAST_ERROR:
            raise AggregateError(
                f"{self.name} takes a relative error from {_LEAST_ERROR} on, not {error!r}",
                hint=f"write {self.name}(x, 0.95, 0.01), or an accuracy as in Spark, such as 1000",
            )

    @property
    def bits(self) -> int:
        """How many bits of the mantissa tell buckets apart: half a bucket is within the error."""
        given = self.given[1]
        error = given if given < 1 else max(1 / given, 0.001)
        bits = max(math.ceil(math.log2(1 / (2 * error))), 0)
        # The nearest decimal may be as far from a bucket's middle as its ends are.
        return bits + 1 if pa.types.is_decimal(self.types[0]) else bits

    @property
    def identity(self) -> Histogram:
        """No values."""
        return Histogram()

    def lift(self, value: Any) -> Histogram:
        """One value."""
        # Deferred: the columns bring numba, which the algebra alone does not need.
        from muntin.aggregates.columns.holistic.histograms import buckets_of  # noqa: PLC0415

        (bucket,) = buckets_of(pa.array([value], self.types[0]), self.bits).tolist()
        return Histogram(value, value, ((bucket, 1),))

    def combine(self, a: Histogram, b: Histogram) -> Histogram:
        """Add the counts."""
        return Histogram(
            least(a.least, b.least),
            greatest(a.greatest, b.greatest),
            united((*a.buckets, *b.buckets)),
        )

    def lower(self, partial: Histogram) -> Any:
        """NULL for no values."""
        from muntin.aggregates.columns.holistic.histograms import answers  # noqa: PLC0415

        if not partial.buckets:
            return None
        total = sum(count for _, count in partial.buckets)
        places = [max(math.ceil(total * float(p)) - 1, 0) for p in self.fractions]
        buckets = [_bucket_at(partial.buckets, place) for place in places]
        ends = (pa.array([each] * len(places), self.types[0]) for each in partial[:2])
        totals = np.full(len(places), total)
        values = answers(buckets, self.bits, np.array(places), totals, *ends).to_pylist()
        return values if self.is_listed else values[0]

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The argument's type, which must be a number."""
        require_number(self.name, types[0])
        return pa.list_(types[0]) if self.is_listed else types[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The histogram, whatever fractions are asked for, and both ends."""
        histogram = Part(f"{HISTOGRAM}{self.bits}", self.types)
        return histogram, Part("min", self.types), Part("max", self.types)


def _bucket_at(buckets: Run, place: int) -> int:
    """The bucket of the value at a place among all, from 0 on."""
    ends = accumulate(count for _, count in buckets)
    return next(int(bucket) for (bucket, _), end in zip(buckets, ends, strict=True) if place < end)
