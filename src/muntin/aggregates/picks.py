"""The value of a chosen row: first, last, min_by, max_by."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.types import rank, require_ordered


class _Pick(BuiltIn):
    """The value of the row with the extreme (key, value), so that arrival never decides a tie.

    A partial is `(key, value)`, or None for no row. NULL values order below all others.
    """

    selective = True
    duplicate_insensitive = True
    takes_greatest = False

    @property
    def identity(self) -> None:
        """No row."""
        return

    def combine(self, a: Any, b: Any) -> Any:
        """The row that comes first in the order, or last for `takes_greatest`."""
        if a is None or b is None:
            return b if a is None else a
        a_key, b_key = (rank(a[0]), rank(a[1])), (rank(b[0]), rank(b[1]))
        return b if (b_key > a_key if self.takes_greatest else b_key < a_key) else a

    def lower(self, partial: Any) -> Any:
        """The chosen row's value."""
        return None if partial is None else partial[1]

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The type of the first argument."""
        for kind in types:
            require_ordered(self.name, kind)
        return types[0]


class First(_Pick):
    """The value of the earliest row, the least such value if several are earliest.

    NULL counts as a value, as in Spark, unless `ignore_nulls`.

    >>> First((pa.string(),)).of([("b", 20), ("z", 10), ("a", 10)])
    'a'
    """

    name = "first"
    aliases = ("first_value",)
    timed = True

    def __init__(self, types: tuple[pa.DataType, ...], ignore_nulls: bool = False) -> None:
        super().__init__(types)
        self.skips_nulls = ignore_nulls

    def lift(self, value: tuple[Any, Any]) -> tuple[Any, Any]:
        """A value and its time."""
        return value[1], value[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """One pick, of its own kind where NULL is ignored."""
        return (Part(f"{self.name}_valid" if self.skips_nulls else self.name, self.types),)


class Last(First):
    """The value of the latest row, the greatest such value if several are latest.

    >>> Last((pa.string(),), ignore_nulls=True).of([("b", 20), ("a", 20), (None, 30)])
    'b'
    """

    name = "last"
    aliases = ("last_value",)
    takes_greatest = True


class MinBy(_Pick):
    """The first argument where the second is least; the least such value on a tie.

    Rows where the second argument is NULL are left out, the first may be NULL.

    >>> MinBy((pa.string(), pa.int64())).of([("x", 2), ("y", 1), ("z", None)])
    'y'
    """

    name = "min_by"
    aliases = ("arg_min", "argmin")
    arity = (2, 2)
    skips_nulls = False

    def partial(self, value: tuple[Any, Any]) -> Any:
        """NULL keys give no row."""
        return None if value[1] is None else self.lift(value)

    def lift(self, value: tuple[Any, Any]) -> tuple[Any, Any]:
        """A value and its key."""
        return value[1], value[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """One pick over both arguments."""
        return (Part(self.name, self.types, (0, 1)),)


class MaxBy(MinBy):
    """The first argument where the second is greatest; the greatest such value on a tie.

    >>> MaxBy((pa.string(), pa.int64())).of([("x", 2), ("y", 2), ("z", 1)])
    'y'
    """

    name = "max_by"
    aliases = ("arg_max", "argmax")
    takes_greatest = True
