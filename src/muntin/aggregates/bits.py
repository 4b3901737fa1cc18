"""Bits of integers, combined: bit_and, bit_or, bit_xor."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.types import require_integer


class _Bits(BuiltIn):
    """Integers combined bit by bit: NULL for no value, the argument's type otherwise."""

    @property
    def identity(self) -> None:
        """No value."""
        return

    def lift(self, value: int) -> int:
        """The value itself."""
        return value

    def combine(self, a: int | None, b: int | None) -> int | None:
        """Both values' bits, or those of the only one."""
        if a is None or b is None:
            return b if a is None else a
        return self.combined(a, b)

    @abstractmethod
    def combined(self, a: int, b: int) -> int:
        """The bits of two values."""

    def lower(self, partial: int | None) -> int | None:
        """The bits themselves."""
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The argument's type, which must be an integer."""
        require_integer(self.name, types[0])
        return types[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The bits, and the count that tells no value from one without bits."""
        return Part(self.name, self.types), Part("count", self.types)


class BitAnd(_Bits):
    """The bits that are set in every value.

    >>> BitAnd((pa.int64(),)).of([12, None, 10])
    8
    """

    name = "bit_and"
    duplicate_insensitive = True

    def combined(self, a: int, b: int) -> int:
        """The bits of both."""
        return a & b


class BitOr(_Bits):
    """The bits that are set in some value.

    >>> BitOr((pa.int64(),)).of([12, 10]), BitOr((pa.int64(),)).of([None])
    (14, None)
    """

    name = "bit_or"
    duplicate_insensitive = True

    def combined(self, a: int, b: int) -> int:
        """The bits of either."""
        return a | b


class BitXor(_Bits):
    """The bits that are set in an odd number of values.

    >>> BitXor((pa.int64(),)).of([12, 10, 12])
    10
    """

    name = "bit_xor"

    def combined(self, a: int, b: int) -> int:
        """The bits of one of both."""
        return a ^ b
