"""Users' own aggregates of each kind: neither, invertible, selective."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa

from muntin.aggregates import Aggregate, register
from muntin.aggregates.registry import names


class Gcd(Aggregate):
    """The greatest common divisor: neither invertible nor selective."""

    name = "gcd_of"
    identity = 0

    def lift(self, value: Any) -> Any:
        return int(value)

    def combine(self, a: Any, b: Any) -> Any:
        return math.gcd(a, b)

    def lower(self, partial: Any) -> Any:
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        return pa.int64()


class Tally(Aggregate):
    """How many distinct values there are, by a counter of all: invertible, and it grows."""

    name = "tally"
    invertible = True

    @property
    def identity(self) -> Any:
        return Counter()

    def lift(self, value: Any) -> Any:
        return Counter([value])

    def combine(self, a: Any, b: Any) -> Any:
        return a + b

    def inverse(self, a: Any, b: Any) -> Any:
        return a - b

    def lower(self, partial: Any) -> Any:
        return len(partial)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        return pa.int64()


class Longest(Aggregate):
    """The longest text, the first in order of those: selective."""

    name = "longest_of"
    selective = True
    identity = ""

    def lift(self, value: Any) -> Any:
        return value

    def combine(self, a: Any, b: Any) -> Any:
        return min(a, b, key=lambda text: (-len(text), text))

    def lower(self, partial: Any) -> Any:
        return partial or None

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        return pa.string()


def registered(*aggregates: Aggregate) -> None:
    """Make aggregates known that are not."""
    for aggregate in aggregates:
        if aggregate.name not in names():
            register(aggregate)
