"""Values of a type in the order that comparisons use, as plain codes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from muntin.expressions import types as t

Code = int | bytes

INFINITY = 0x7FF0 << 48
NAN = INFINITY + 1
SIZE = (1 << 63) - 1


def double_code(value: float) -> int:
    """The place of a double in their order: -0.0 is 0.0, all NaN are one and the greatest.

    >>> [double_code(x) for x in (-0.0, 0.0, 5e-324, -5e-324)]
    [0, 0, 1, -1]
    >>> double_code(float("inf")) + 1 == double_code(float("nan"))
    True
    """
    bits = int.from_bytes(struct.pack("<d", value), "little", signed=True)
    size = bits & SIZE
    if size > INFINITY:
        return NAN
    return size if bits >= 0 else -size


def double_of(code: int) -> float:
    """The double with a code."""
    size = 0x7FF8 << 48 if code == NAN else abs(code)
    value: float = struct.unpack("<d", struct.pack("<q", size))[0]
    return -value if code < 0 else value


@dataclass(frozen=True)
class Order:
    """The codes of a type: which there are, and where a constant lies among them.

    Every code has a next one, so one kind of cut is enough: before a code. `x <= 5` ends before
    the code after 5's. `lowest` and `highest` bound the codes; strings have no highest.
    """

    type: pa.DataType
    lowest: Code
    highest: Code | None

    def code(self, value: object) -> Code:
        r"""The code of a constant of this type, given as in `Literal.value`.

        >>> order_of(pa.string()).code("é"), order_of(pa.bool_()).code(True)
        (b'\xc3\xa9', 1)
        """
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            return value
        if isinstance(value, float):
            return double_code(value)
        assert isinstance(value, int)
        return int(value)

    def within(self, cuts: Iterable[tuple[Code, int]], first: int) -> tuple[list[Code], list[int]]:
        """A step function in its shortest form: where its value changes, and its values.

        `first` holds before the first cut and each cut's value from there on; cuts ascend, and
        of equal ones the last counts.

        >>> order_of(pa.int8()).within([(-128, 1), (5, 0), (5, 1), (9, 0), (200, 1)], 0)
        ([9], [1, 0])
        """
        places: list[Code] = []
        values = [first]
        for place, value in cuts:
            if place <= self.lowest:  # type: ignore[operator]
                values[0] = value
                continue
            if self.highest is not None and place > self.highest:  # type: ignore[operator]
                break
            if places and places[-1] == place:
                values[-1] = value
            else:
                places.append(place)
                values.append(value)
            if values[-1] == values[-2]:
                places.pop()
                values.pop()
        return places, values


def after(code: Code) -> Code:
    r"""The next code: nothing lies between the two.

    >>> after(5), after(b"ab")
    (6, b'ab\x00')
    """
    return code + b"\0" if isinstance(code, bytes) else code + 1


@lru_cache(maxsize=1 << 8)
def order_of(kind: pa.DataType) -> Order:
    """The order of a type's values."""
    if t.is_float(kind):
        return Order(kind, -INFINITY, NAN)
    if kind == t.BOOLEAN:
        return Order(kind, 0, 1)
    if t.is_decimal(kind):
        return Order(kind, 1 - 10**kind.precision, 10**kind.precision - 1)
    if kind in (t.STRING, t.BINARY):
        return Order(kind, b"", None)
    low, high = t.BOUNDS.get(kind, t.BOUNDS[t.INT if kind == t.DATE else t.BIGINT])
    return Order(kind, low, high)
