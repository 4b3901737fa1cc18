"""Aggregates by SQL name: the built-in ones, their aliases, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.aggregates.algebra import USER, Aggregate, BuiltIn, Lowered, Part
from muntin.aggregates.bits import BitAnd, BitOr, BitXor
from muntin.aggregates.correlations import (
    Corr,
    CovarPop,
    CovarSamp,
    RegrIntercept,
    RegrR2,
    RegrSlope,
)
from muntin.aggregates.counts import Count, CountIf
from muntin.aggregates.extremes import AnyValue, BoolAnd, BoolOr, Max, Min, ValueRange
from muntin.aggregates.moments import Kurtosis, Skewness, StddevPop, StddevSamp, VarPop, VarSamp
from muntin.aggregates.picks import First, Last, MaxBy, MinBy
from muntin.aggregates.products import GeoMean, Product
from muntin.aggregates.sums import Avg, Sum
from muntin.errors import AggregateError, did_you_mean

if TYPE_CHECKING:
    from muntin.aggregates.columns.column import PartColumn

BUILT_IN: tuple[type[BuiltIn], ...] = (
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Product,
    GeoMean,
    ValueRange,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    Skewness,
    Kurtosis,
    CovarPop,
    CovarSamp,
    Corr,
    RegrSlope,
    RegrIntercept,
    RegrR2,
    First,
    Last,
    MinBy,
    MaxBy,
    BoolAnd,
    BoolOr,
    CountIf,
    AnyValue,
    BitAnd,
    BitOr,
    BitXor,
)
_BUILT_IN_NAMES = {
    name: built_in for built_in in BUILT_IN for name in (built_in.name, *built_in.aliases)
}
_registered: dict[str, Aggregate] = {}
_reserved: list[Callable[[str], bool]] = []


@dataclass(frozen=True, repr=False)
class ResolvedAggregate:
    """An aggregate bound to argument types, decomposed into parts.

    Attributes:
        name: Its own name, also where an alias was written.
        types: The types of the arguments.
        parts: The accumulators it is read from; equal parts over equal arguments are shared.
        type: The type of the answer.
        algebra: The same aggregate on Python values.
    """

    name: str
    types: tuple[pa.DataType, ...]
    parts: tuple[Part, ...]
    type: pa.DataType
    algebra: Aggregate = field(compare=False)

    def __repr__(self) -> str:
        parts = ", ".join(map(str, self.parts))
        types = ", ".join(map(str, self.types)) or "*"
        return f"ResolvedAggregate({self.name}({types}) -> {self.type}, parts: {parts})"

    @property
    def invertible(self) -> bool:
        """Whether every part can be subtracted."""
        return all(part.invertible for part in self.parts)

    @property
    def commutative(self) -> bool:
        """Whether rows and partials may be combined in any order."""
        return self.algebra.commutative

    def lower(self, columns: Sequence[PartColumn]) -> Lowered:
        """The answers, one a cell, from one column for each of `parts`."""
        # Deferred: lowering runs compiled kernels, which planning does without.
        from muntin.aggregates.columns import lowering  # noqa: PLC0415

        try:
            return lowering.lower(self, columns)
        except (pa.ArrowException, OverflowError) as error:
            if not self.parts[0].kind.startswith(USER):
                raise
            raise AggregateError(
                f"an answer of the aggregate {self.name} is not a {self.type}: {error}",
                hint="let `lower` return what `result_type` says, or None",
            ) from error


def resolve(
    name: str, types: Sequence[pa.DataType], *, ignore_nulls: bool = False
) -> ResolvedAggregate:
    """The aggregate of a SQL name or alias, for arguments of these types.

    >>> resolve("MEAN", [pa.float64()])
    ResolvedAggregate(avg(double) -> double, parts: sum(double), count(double))
    >>> resolve("avg", [pa.float64()]).parts == resolve("sum", [pa.float64()]).parts
    True
    """
    kinds = tuple(types)
    key = name.lower()
    if key in _registered:
        return _resolve_user(_registered[key], kinds)
    if key not in _BUILT_IN_NAMES:
        raise AggregateError(f"no aggregate is named {name}", hint=did_you_mean(key, names()))
    built_in = _BUILT_IN_NAMES[key]
    if ignore_nulls and issubclass(built_in, First):
        bound: BuiltIn = built_in(kinds, ignore_nulls=True)
    elif ignore_nulls and built_in is not AnyValue:
        raise AggregateError(
            f"{built_in.name} takes no IGNORE NULLS",
            hint="only first and last keep NULL; leave it out",
        )
    else:
        bound = built_in(kinds)
    return ResolvedAggregate(built_in.name, kinds, bound.parts, bound.type, bound)


def _resolve_user(aggregate: Aggregate, types: tuple[pa.DataType, ...]) -> ResolvedAggregate:
    kind = USER + aggregate.name.lower()
    part = Part(kind, types, tuple(range(len(types))))
    result = aggregate.result_type(types)
    if not isinstance(result, pa.DataType):
        raise AggregateError(
            f"`result_type` of the aggregate {aggregate.name} gave {result!r}",
            hint="return a pyarrow type, such as pa.float64()",
        )
    return ResolvedAggregate(aggregate.name.lower(), types, (part,), result, aggregate)


def register(aggregate: Aggregate) -> None:
    """Make a user's aggregate known by its name; AggregateError if the name is taken.

    It runs on Python objects. One that is not commutative sees rows in the order of event time
    and runs in the local engine only.
    """
    key = _checked_name(aggregate)
    if key in names():
        raise AggregateError(
            f"an aggregate named {aggregate.name} exists", hint="choose another name"
        )
    if aggregate.invertible and type(aggregate).inverse is Aggregate.inverse:
        raise AggregateError(
            f"{aggregate.name} says it is invertible but defines no inverse",
            hint="define `inverse`, or leave `invertible` false",
        )
    _registered[key] = aggregate


def reserve(is_reserved: Callable[[str], bool]) -> None:
    """Keep names from being registered: those, in lower case, that SQL reads as something else."""
    _reserved.append(is_reserved)


def _checked_name(aggregate: object) -> str:
    if not isinstance(aggregate, Aggregate):
        raise AggregateError(
            f"{aggregate!r} is not an aggregate",
            hint="register an instance of a subclass of muntin.aggregates.Aggregate",
        )
    name = getattr(aggregate, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise AggregateError(
            f"{name!r} is not a valid name for an aggregate", hint="use letters, digits and _"
        )
    if any(is_reserved(name.lower()) for is_reserved in _reserved):
        raise AggregateError(
            f"{name} is a SQL function or keyword", hint="choose another name for the aggregate"
        )
    return name.lower()


def unregister(name: str) -> None:
    """Forget a registered aggregate; the built-in ones stay."""
    if _registered.pop(name.lower(), None) is None:
        raise AggregateError(f"no aggregate named {name} was registered", hint="see `names()`")


def registered(name: str) -> Aggregate:
    """The user's aggregate of this name."""
    try:
        return _registered[name.lower()]
    except KeyError:
        raise AggregateError(
            f"no aggregate named {name} was registered", hint="call `register` in this process"
        ) from None


def names() -> frozenset[str]:
    """All names and aliases, in lower case.

    >>> {"avg", "mean", "any"} <= names()
    True
    """
    return frozenset(_BUILT_IN_NAMES) | frozenset(_registered)
