"""Aggregates as users write them, that are neither invertible nor selective."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from muntin.aggregates import Aggregate
from muntin.aggregates.registry import register, unregister

GCD, THIRD = "bench_gcd", "bench_third"


class Gcd(Aggregate):
    """The greatest common divisor of whole numbers."""

    name = GCD
    identity = 0

    def lift(self, value: Any) -> Any:
        """The number itself."""
        return int(value)

    def combine(self, a: Any, b: Any) -> Any:
        """The greatest common divisor of both."""
        return math.gcd(a, b)

    def lower(self, partial: Any) -> Any:
        """The divisor."""
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A whole number."""
        return pa.int64()


class Third(Aggregate):
    """The least of the three largest values."""

    name = THIRD
    identity = ()

    def lift(self, value: Any) -> Any:
        """The value alone."""
        return (value,)

    def combine(self, a: Any, b: Any) -> Any:
        """The three largest of both."""
        return tuple(sorted(a + b, reverse=True)[:3])

    def lower(self, partial: Any) -> Any:
        """The last of them."""
        return partial[-1] if partial else None

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The type of the values."""
        return types[0]


@contextmanager
def registered() -> Iterator[None]:
    """Both aggregates, by name, until the end."""
    register(Gcd())
    register(Third())
    try:
        yield
    finally:
        unregister(GCD)
        unregister(THIRD)
