"""Which technique makes the answers of an aggregate, and why, in words for a plan's explanation.

The fewest operations decide, as the techniques count them; after the advice of "Algorithms and
Optimizations for Incremental Window-Based Aggregations", very small windows are put together
anew, and where no answer may come late only techniques without slow steps are weighed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from muntin.aggregates import Aggregate, ResolvedAggregate
from muntin.aggregates.algebra import BuiltIn
from muntin.aggregators.registry import info, names
from muntin.errors import AggregateError, MuntinError, WindowError, did_you_mean

Prefer: TypeAlias = Literal["throughput", "latency"]
PREFERENCES: tuple[Prefer, ...] = get_args(Prefer)

# Up to here, combining a window's slices anew is as fast as any structure over them.
SMALL = 2
# Techniques whose operations differ by less are even.
_EVEN = 1.05


@dataclass(frozen=True)
class Algebra:
    """What a technique may ask of an aggregate.

    ``bounded`` says that a partial stays small whatever it holds, so that totals may hold all
    that ever came, ``distinct`` that partials are sets of values.
    """

    name: str = "the aggregate"
    invertible: bool = False
    selective: bool = False
    commutative: bool = True
    bounded: bool = True
    distinct: bool = False

    @classmethod
    def of(cls, aggregate: ResolvedAggregate | Aggregate | Algebra) -> Algebra:
        """The algebra of an aggregate, resolved or a user's own."""
        if isinstance(aggregate, Algebra):
            return aggregate
        found = aggregate.algebra if isinstance(aggregate, ResolvedAggregate) else aggregate
        if not isinstance(found, Aggregate):
            raise AggregateError(
                f"{aggregate!r} is not an aggregate",
                hint='give muntin.aggregates.resolve("sum", [pyarrow.float64()]), or an Algebra',
            )
        flags = found.invertible, found.selective, found.commutative
        bounded = isinstance(found, BuiltIn)
        return cls(found.name, *flags, bounded=bounded, distinct=found.distinct)


@dataclass(frozen=True)
class Choice:
    """A technique, the reason for it, and its operations per slide.

    One that takes a single range has a state of its own for each of several.
    """

    name: str
    why: str
    operations: float


def choose_technique(
    aggregate: ResolvedAggregate | Aggregate | Algebra,
    ranges: Iterable[int],
    *,
    prefer: Prefer = "throughput",
) -> Choice:
    """The technique for one aggregate and its ranges.

    Args:
        aggregate: What is computed, or the flags of its algebra.
        ranges: How many slices each query's window spans; equal ones count once.
        prefer: "throughput" for the fewest operations on average, "latency" for the fewest where
            no step takes many more than others.

    >>> import pyarrow as pa
    >>> from muntin.aggregates import resolve
    >>> choose_technique(resolve("sum", [pa.int64()]), [12, 60]).name
    'running_totals'
    >>> largest = resolve("max", [pa.int64()])
    >>> print(choose_technique(largest, [60], prefer="latency").why)
    no step may be slow, and max can only be combined: 3.9 operations per slide, daba takes 4.87
    >>> choose_technique(largest, [60]).name, choose_technique(largest, [2]).name
    ('slickdeque_noninv', 'panes')
    """
    algebra, sizes = Algebra.of(aggregate), _sizes(ranges)
    check_preference(prefer)
    if sizes[-1] <= SMALL:
        slices = "one slice" if sizes[-1] == 1 else f"at most {sizes[-1]} slices"
        why = f"windows span {slices}: there is nothing to gain by keeping more"
        return Choice("panes", why, operations("panes", sizes))
    prices = {name: operations(name, sizes) for name in _candidates(algebra, prefer)}
    least = min(prices.values())
    # Of those that are as good as equal the last in the registry, where the simplest come first.
    best = [name for name, price in prices.items() if price <= _EVEN * least][-1]
    price = prices[best]
    why = f"{_reason(best, algebra, prefer)}: {price:.3g} operations per slide"
    others = [name for name in prices if prices[name] > _EVEN * price]
    if others:
        other = min(others, key=prices.__getitem__)
        why += f", {other} takes {prices[other]:.3g}"
    return Choice(best, why, price)


def _candidates(algebra: Algebra, prefer: Prefer) -> list[str]:
    """Of the techniques that may be taken, those that make the most of the algebra."""
    found = [name for name in legal_techniques(algebra) if name != "panes"]
    if not algebra.bounded:
        found = [name for name in found if name != "running_totals"]
    if prefer == "latency":
        found = [name for name in found if info(name).steady]
    needs = [info(name).needs for name in found]
    most = next(each for each in ("distinct", "invertible", "selective", "any") if each in needs)
    return [name for name, each in zip(found, needs, strict=True) if each == most]


def _reason(name: str, algebra: Algebra, prefer: Prefer) -> str:
    ability = {
        "any": "can only be combined",
        "distinct": "counts a value where it was last seen",
        "invertible": "can be subtracted",
        "selective": "selects one of its values",
    }[info(name).needs]
    slow = "no step may be slow, and " if prefer == "latency" else ""
    return f"{slow}{algebra.name} {ability}"


def is_legal(name: str, algebra: Algebra, ranges: int = 1) -> bool:
    """Whether a technique takes an aggregate with so many ranges, by its card."""
    return missing(name, algebra, ranges) is None


def missing(name: str, algebra: Algebra, ranges: int = 1) -> str | None:
    """What keeps a technique from an aggregate; None if nothing does."""
    # A card reads the name and the flags of an aggregate, and nothing else.
    return info(name).missing(cast("Aggregate", algebra), ranges)


def legal_techniques(algebra: Algebra, ranges: int = 1) -> tuple[str, ...]:
    """The techniques that take an aggregate with so many ranges.

    >>> "slickdeque_inv" in legal_techniques(Algebra(invertible=True), ranges=3)
    True
    """
    return tuple(name for name in names() if is_legal(name, algebra, ranges))


def operations(name: str, ranges: Iterable[int]) -> float:
    """Operations per slide where every range is answered, as the technique counts them on average.

    The papers' Ω is another number (`muntin.planner.costs.formula.omega`): it prices trees by the
    formulas of the papers.

    >>> operations("panes", [3, 5]), operations("running_totals", [3, 5])
    (6.0, 3.0)
    >>> operations("slickdeque_noninv", [100])
    1.98
    """
    return info(name).counted(_sizes(ranges))


def _sizes(ranges: Iterable[int]) -> list[int]:
    sizes = sorted(set(ranges))
    if not sizes or sizes[0] < 1:
        raise WindowError(
            f"ranges of {sizes} slices", hint="say how many slices each window spans, from 1 on"
        )
    return sizes


def check_preference(prefer: str) -> None:
    """Refuse what cannot be preferred."""
    if prefer not in PREFERENCES:
        raise MuntinError(
            f"a plan cannot prefer {prefer!r}",
            hint=did_you_mean(str(prefer), PREFERENCES) or f"use {' or '.join(PREFERENCES)}",
        )
