"""How many: count and count_if."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.types import require_boolean


class _Counting(BuiltIn):
    """A number of rows: an integer that adds and subtracts."""

    invertible = True

    @property
    def identity(self) -> int:
        """No rows."""
        return 0

    def combine(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    def inverse(self, a: int, b: int) -> int:
        """Subtract."""
        return a - b

    def lower(self, partial: int) -> int:
        """The number itself; never NULL."""
        return partial


class Count(_Counting):
    """Rows, or rows where the argument is not NULL.

    >>> Count(()).of([(), (), ()]), Count((pa.int64(),)).of([7, None, 7])
    (3, 2)
    """

    name = "count"
    arity = (0, 1)

    def lift(self, value: Any) -> int:
        """One row."""
        return 1

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BIGINT."""
        return pa.int64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """One counter."""
        return (Part("count", self.types, tuple(range(len(self.types)))),)


class CountIf(_Counting):
    """Rows where the condition is true.

    >>> CountIf((pa.bool_(),)).of([True, False, None, True])
    2
    """

    name = "count_if"
    aliases = ("countif",)

    def lift(self, value: bool) -> int:
        """One row if it is true."""
        return int(value)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BIGINT, of a condition."""
        require_boolean(self.name, types[0])
        return pa.int64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """One counter of true rows."""
        return (Part("count_if", self.types),)
