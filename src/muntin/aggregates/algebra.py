"""The algebra of an aggregate: lift, combine, lower, identity, and perhaps an inverse."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from muntin.errors import AggregateError


class Aggregate(ABC):
    """A function of many rows that is computed from partials.

    `lift` makes a partial of one row, `combine` joins two partials (associative, the left one
    holds the earlier rows), `lower` reads the answer off a partial. Partials are values: neither
    `combine` nor `inverse` changes its operands. `combine(identity, p)` is `p`.

    A row is the bare value for one argument and a tuple for several (or none). A row with a NULL
    argument is left out unless `skips_nulls` is false. A `timed` aggregate is lifted from
    `(value, time)`.

    Attributes:
        name: The SQL name, any case.
        invertible: `inverse(combine(a, b), b)` is `a`.
        commutative: The order of rows does not matter.
        selective: The result of `combine` is one of its operands.
        duplicate_insensitive: `combine(p, p)` is `p`.
        distinct: Partials are sets of values: sorted tuples, each value once.
        skips_nulls: Rows with a NULL argument never reach `lift`.
        timed: `lift` is given the row's event time as well.

    >>> class Longest(Aggregate):
    ...     name = "longest"
    ...     selective = duplicate_insensitive = True
    ...     identity = 0
    ...     def lift(self, value): return len(value)
    ...     def combine(self, a, b): return max(a, b)
    ...     def lower(self, partial): return partial
    ...     def result_type(self, types): return pa.int64()
    >>> Longest().of(["sash", None, "muntin"])
    6

    Terms after Gray et al., Data Cube, ICDE 1996, and Tangwongsan et al., VLDB 2015.
    """

    name: ClassVar[str]
    invertible: ClassVar[bool] = False
    commutative: ClassVar[bool] = True
    selective: ClassVar[bool] = False
    duplicate_insensitive: ClassVar[bool] = False
    distinct: ClassVar[bool] = False
    skips_nulls: bool = True
    timed: ClassVar[bool] = False

    @property
    @abstractmethod
    def identity(self) -> Any:
        """The partial of no rows."""

    @abstractmethod
    def lift(self, value: Any) -> Any:
        """The partial of one row."""

    @abstractmethod
    def combine(self, a: Any, b: Any) -> Any:
        """The partial of `a`'s rows followed by `b`'s."""

    @abstractmethod
    def lower(self, partial: Any) -> Any:
        """The answer; None is NULL, OverflowError says that the result type cannot hold it."""

    @abstractmethod
    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The answer's type for arguments of `types`; AggregateError if it takes none such."""

    def inverse(self, a: Any, b: Any) -> Any:
        """`a` without the rows of `b`, which `a` must contain."""
        raise AggregateError(
            f"{self.name} has no inverse",
            hint="use a technique that only combines, or check `invertible` first",
        )

    def partial(self, value: Any) -> Any:
        """The partial of one row, NULL rules applied."""
        if self.skips_nulls and _has_null(value):
            return self.identity
        return self.lift(value)

    def of(self, values: Iterable[Any]) -> Any:
        """The answer for `values`, straight from the definition."""
        partial = self.identity
        for value in values:
            partial = self.combine(partial, self.partial(value))
        return self.lower(partial)


def _has_null(value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and any(item is None for item in value))


# Stands for a constant that must be given.
REQUIRED: Any = object()


class BuiltIn(Aggregate):
    """An aggregate of SQL, bound to the types of its arguments.

    Attributes:
        aliases: Other SQL names.
        arity: How many arguments it takes, fewest and most.
        constants: The constants that follow the arguments, by name, with what stands for those
            that are left out; `REQUIRED` where none may be.
        given: The constants of this one, all of them.
        sample: Constants that it takes, for tests and for warming up.
    """

    aliases: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[tuple[int, int]] = (1, 1)
    constants: ClassVar[dict[str, Any]] = {}
    sample: ClassVar[tuple[Any, ...]] = ()

    def __init__(self, types: tuple[pa.DataType, ...], constants: tuple[Any, ...] = ()) -> None:
        fewest, most = self.arity
        if not fewest <= len(types) <= most:
            wanted = str(most) if fewest == most else f"{fewest} or {most}"
            raise AggregateError(
                f"{self.name} takes {wanted} argument(s), not {len(types)}",
                hint=f"write {self.name}({', '.join('xyz'[:most])})",
            )
        self.types = types
        self.given = (*constants, *list(self.constants.values())[len(constants) :])
        if len(constants) > len(self.constants) or REQUIRED in self.given:
            lacking = [
                name
                for name, value in zip(self.constants, self.given, strict=False)
                if value is REQUIRED
            ]
            wanted = f"at most {', '.join(self.constants)}" if self.constants else "no constants"
            problem = f"takes {wanted} after its arguments, not {len(constants)} constant(s)"
            if lacking:
                problem = f"lacks {' and '.join(lacking)} after its arguments"
            raise AggregateError(
                f"{self.name} {problem}",
                hint=f"write {self.name}({', '.join((*'xyz'[:most], *map(repr, self.sample)))})",
            )
        self.check()
        self.type = self.result_type(types)

    def check(self) -> None:
        """Refuse constants that make no sense."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The accumulators that the answer is read from, in the order `lower` reads them."""

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.types)) or '*'})"


INVERTIBLE = frozenset(
    {"count", "count_if", "sum", "sum_squares", "log_sum", "sum_cubes", "sum_fourths"}
    | {"sum_given", "squares_given", "sum_products"}
)
TIMED = frozenset({"first", "last", "first_valid", "last_valid"})
SELECTIVE = TIMED | {"min", "max", "min_by", "max_by"}
LISTS = frozenset({"list", "list_nulls"})
VALUED = LISTS | {"set", "runs", "pairs"}
USER = "user:"
# How kinds begin that say how fine they are behind it.
HISTOGRAM, REGISTERS, FREQUENT = "histogram:", "registers:", "frequent:"


@dataclass(frozen=True)
class Part:
    """One accumulator kind over typed arguments.

    Parts of the same kind over the same argument expressions hold the same numbers, so one
    accumulator serves all aggregates that ask for it. `args` says which of the aggregate's
    arguments the part is fed with and is not part of its identity.

    >>> Part("sum", (pa.float64(),)) == Part("sum", (pa.float64(),), args=(1,))
    True
    """

    kind: str
    types: tuple[pa.DataType, ...] = ()
    args: tuple[int, ...] = field(default=(0,), compare=False)

    @property
    def invertible(self) -> bool:
        """Whether cells can be subtracted; sliding then costs two operations per window."""
        return self.kind in INVERTIBLE

    @property
    def selective(self) -> bool:
        """Whether combining cells gives one of them."""
        return self.kind in SELECTIVE

    @property
    def shared(self) -> bool:
        """Whether one structure over the shared slices answers any window of any query.

        Other parts can only be combined: they are kept by techniques over a query's own slices.
        """
        return self.invertible or self.selective

    @property
    def valued(self) -> bool:
        """Whether cells hold all values: windows look through those of their slices together."""
        return self.kind in VALUED or self.kind.startswith(HISTOGRAM)

    @property
    def timed(self) -> bool:
        """Whether `update` reads the event times."""
        return self.kind in TIMED or self.kind in LISTS or self.kind.startswith(USER)

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.types)) or '*'})"


class Lowered(NamedTuple):
    """Answers, one a cell. `errors` marks those that failed, which are NULL; None if none did."""

    values: pa.Array
    errors: pa.Array | None = None


def same(a: Any, b: Any) -> bool:
    """Equality of partials and answers: NaN equals NaN, and 0.0 differs from -0.0.

    >>> same((1, math.nan), (1, math.nan)), same(0.0, -0.0), same(1, 1.0)
    (True, False, False)
    """
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)
