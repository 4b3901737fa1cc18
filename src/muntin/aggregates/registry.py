"""Aggregates by SQL name: the built-in ones, their aliases, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.aggregates.algebra import USER, Aggregate, BuiltIn, Lowered, Part
from muntin.aggregates.bits import BitAnd, BitOr, BitXor
from muntin.aggregates.caps import DEFAULT_CAP, Cap
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
from muntin.aggregates.holistic.distinct import AvgDistinct, CollectSet, CountDistinct, SumDistinct
from muntin.aggregates.holistic.frequencies import Frequent, Mode, TopK
from muntin.aggregates.holistic.frequent_items import ApproxFrequent, ApproxTopK
from muntin.aggregates.holistic.histograms import ApproxPercentile
from muntin.aggregates.holistic.lists import CollectList, StringAgg
from muntin.aggregates.holistic.percentiles import Median, Percentile, PercentileDisc
from muntin.aggregates.holistic.sketches import ApproxCountDistinct
from muntin.aggregates.holistic.top_values import MaxByK, MaxK, MinByK, MinK
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
    CountDistinct,
    SumDistinct,
    AvgDistinct,
    CollectSet,
    Median,
    Percentile,
    PercentileDisc,
    Mode,
    TopK,
    Frequent,
    MinK,
    MaxK,
    MinByK,
    MaxByK,
    CollectList,
    StringAgg,
    ApproxPercentile,
    ApproxCountDistinct,
    ApproxTopK,
    ApproxFrequent,
)
_BUILT_IN_NAMES = {
    name: built_in for built_in in BUILT_IN for name in (built_in.name, *built_in.aliases)
}
# Names that mean something else with a constant behind their arguments, and with DISTINCT.
_WITH_CONSTANT: dict[str, type[BuiltIn]] = {
    "min": MinK,
    "max": MaxK,
    **dict.fromkeys((MinBy.name, *MinBy.aliases), MinByK),
    **dict.fromkeys((MaxBy.name, *MaxBy.aliases), MaxByK),
}
# Constants that an alias has where nothing is said, and the name it stands for has not.
_OF_ALIAS: dict[str, tuple[Any, ...]] = {"group_concat": (",",)}
_WITH_DISTINCT: dict[str, type[BuiltIn]] = {
    "count": CountDistinct,
    "sum": SumDistinct,
    "avg": AvgDistinct,
    "mean": AvgDistinct,
    "min": Min,
    "max": Max,
    "collect_set": CollectSet,
    "collect_list": CollectSet,
    "array_agg": CollectSet,
    "list": CollectSet,
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
        constants: What follows the arguments, as in ``percentile(x, 0.5)``.
        algebra: The same aggregate on Python values.
        facet: What is told of the answer instead of itself: "low", "high", "complete" or "exact".
        cap: How many values a window may have.
        fallback: What stands for it in windows that have more; read off the last of the parts.
    """

    name: str
    types: tuple[pa.DataType, ...]
    parts: tuple[Part, ...]
    type: pa.DataType
    algebra: Aggregate = field(compare=False)
    constants: tuple[Any, ...] = ()
    facet: str = ""
    cap: Cap = DEFAULT_CAP
    fallback: ResolvedAggregate | None = None

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
    name: str,
    types: Sequence[pa.DataType],
    constants: Sequence[Any] = (),
    *,
    distinct: bool = False,
    ignore_nulls: bool | None = None,
) -> ResolvedAggregate:
    """The aggregate of a SQL name or alias, for arguments of these types.

    `constants` follow the arguments, `distinct` is DISTINCT before them. `ignore_nulls` is true
    for IGNORE NULLS and false for RESPECT NULLS.

    >>> resolve("MEAN", [pa.float64()])
    ResolvedAggregate(avg(double) -> double, parts: sum(double), count(double))
    >>> resolve("avg", [pa.float64()]).parts == resolve("sum", [pa.float64()]).parts
    True
    >>> resolve("percentile", [pa.int64()], [0.5])
    ResolvedAggregate(percentile(int64) -> double, parts: runs(int64))
    """
    kinds = tuple(types)
    key = name.lower()
    if key in _registered and not distinct:
        return _resolve_user(_registered[key], kinds)
    if key not in names():
        raise AggregateError(f"no aggregate is named {name}", hint=did_you_mean(key, names()))
    built_in = _form(key, constants, distinct)
    given = tuple(constants) or _OF_ALIAS.get(key, ())
    bound = _bound(built_in, kinds, given, ignore_nulls)
    return ResolvedAggregate(built_in.name, kinds, bound.parts, bound.type, bound, bound.given)


def _form(key: str, constants: Sequence[Any], distinct: bool) -> type[BuiltIn]:
    """The aggregate that a name means with constants, or with DISTINCT."""
    if distinct and key not in _WITH_DISTINCT:
        raise AggregateError(
            f"{key} takes no DISTINCT", hint=f"those that do are {', '.join(_WITH_DISTINCT)}"
        )
    if distinct:
        return _WITH_DISTINCT[key]
    if constants and key in _WITH_CONSTANT:
        return _WITH_CONSTANT[key]
    return _BUILT_IN_NAMES[key]


def _bound(
    built_in: type[BuiltIn],
    types: tuple[pa.DataType, ...],
    constants: tuple[Any, ...],
    ignore_nulls: bool | None,
) -> BuiltIn:
    if issubclass(built_in, First):
        return built_in(types, ignore_nulls=bool(ignore_nulls))
    if built_in is CollectList:
        return built_in(types, constants, ignore_nulls is False)
    if ignore_nulls is False and built_in in (CollectSet, StringAgg):
        raise AggregateError(
            f"{built_in.name} takes no RESPECT NULLS",
            hint="collect_list(x) RESPECT NULLS keeps NULL; for others write coalesce(x, ...)",
        )
    if ignore_nulls and built_in is not AnyValue:
        raise AggregateError(
            f"{built_in.name} takes no IGNORE NULLS",
            hint="only first and last keep NULL; leave it out",
        )
    return built_in(types, constants)


def constants_of(name: str, count: int) -> int:
    """How many of so many arguments are constants, which come last.

    >>> constants_of("max", 2), constants_of("max", 1), constants_of("percentile", 2)
    (1, 0, 1)
    """
    key = name.lower()
    if key in _registered or key not in _BUILT_IN_NAMES:
        return 0
    built_in = _BUILT_IN_NAMES[key]
    if count > built_in.arity[1] and key in _WITH_CONSTANT:
        built_in = _WITH_CONSTANT[key]
    return max(count - built_in.arity[1], 0) if built_in.constants else 0


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
