"""Which final technique a tree uses, and why, in words for the plan's explanation.

After the advice of "Algorithms and Optimizations for Incremental Window-Based Aggregations":
panes for very small windows, DABA where no answer may come late, SlickDeque otherwise; and
where an aggregate allows none of these, whatever takes the fewest operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from muntin.aggregates import Aggregate, ResolvedAggregate
from muntin.aggregators import info, names
from muntin.errors import AggregateError, MuntinError, WindowError, did_you_mean
from muntin.optimizer.costs import TECHNIQUES, Technique, omega

Prefer: TypeAlias = Literal["throughput", "latency"]
PREFERENCES: tuple[Prefer, ...] = get_args(Prefer)

# Up to here, combining a window's slices anew is as fast as any structure over them.
SMALL = 2
# From here on, what a technique holds for every group counts more than its speed for one.
MANY_GROUPS = 10_000

# Operations a slide for one range, of those that Table 11 leaves out.
_ONE_RANGE = {"two_stacks": 3.0, "two_stacks_lite": 3.0, "daba": 5.0, "daba_lite": 4.0}
_LIKE: dict[str, Technique] = {"panes_inv": "slickdeque_inv", "bint": "flatfat"}


@dataclass(frozen=True)
class Algebra:
    """What a technique may ask of an aggregate."""

    name: str = "the aggregate"
    invertible: bool = False
    selective: bool = False
    commutative: bool = True

    @classmethod
    def of(cls, aggregate: ResolvedAggregate | Aggregate | Algebra) -> Algebra:
        """The algebra of an aggregate, resolved or a user's own."""
        if isinstance(aggregate, Algebra):
            return aggregate
        found = aggregate.algebra if isinstance(aggregate, ResolvedAggregate) else aggregate
        if not isinstance(found, Aggregate):
            raise AggregateError(
                f"{aggregate!r} is no aggregate",
                hint='give muntin.aggregates.resolve("sum", [pyarrow.float64()]), or an Algebra',
            )
        return cls(found.name, found.invertible, found.selective, found.commutative)


@dataclass(frozen=True)
class Choice:
    """A technique, the reason for it, and its final operations per slice (Ω)."""

    name: str
    why: str
    omega: float


def choose_technique(
    aggregate: ResolvedAggregate | Aggregate | Algebra,
    ranges: Iterable[int],
    *,
    groups: int = 1,
    prefer: Prefer = "throughput",
) -> Choice:
    """The technique for one aggregate of a tree.

    Args:
        aggregate: What is computed, or the flags of its algebra.
        ranges: How many slices each query's window spans; equal ones count once.
        groups: How many groups are expected.
        prefer: "throughput" for the fewest operations on average, "latency" for the fewest in
            the slowest step.

    >>> import pyarrow as pa
    >>> from muntin.aggregates import resolve
    >>> choose_technique(resolve("sum", [pa.int64()]), [12, 60]).name
    'slickdeque_inv'
    >>> largest = resolve("max", [pa.int64()])
    >>> print(choose_technique(largest, [60], prefer="latency").why)
    no step may be slow, and max cannot be subtracted: at most 8 operations in any step
    >>> choose_technique(largest, [60]).name, choose_technique(largest, [2]).name
    ('slickdeque_noninv', 'panes')
    """
    algebra, sizes = Algebra.of(aggregate), _sizes(ranges)
    _check(groups, prefer)
    for name, why in _advice(algebra, sizes, groups, prefer):
        if is_legal(name, algebra, len(sizes)):
            return Choice(name, why, operations(name, sizes))
    raise AssertionError("flatfat takes every aggregate and any ranges")


def is_legal(name: str, algebra: Algebra, ranges: int) -> bool:
    """Whether a technique takes an aggregate with so many ranges, by its card."""
    # A card reads the name and the flags of an aggregate, and nothing else.
    return info(name).missing(cast("Aggregate", algebra), ranges) is None


def legal_techniques(algebra: Algebra, ranges: int = 1) -> tuple[str, ...]:
    """The techniques that take an aggregate with so many ranges.

    >>> "slickdeque_inv" in legal_techniques(Algebra(invertible=True), ranges=3)
    True
    """
    return tuple(name for name in names() if is_legal(name, algebra, ranges))


def operations(name: str, ranges: Iterable[int]) -> float:
    """Ω of a technique: final operations per slice where every range is answered at each.

    >>> operations("panes", [3, 5]), operations("slickdeque_inv", [3, 5]), operations("daba", [9])
    (8.0, 4.0, 5.0)
    """
    sizes = _sizes(ranges)
    if name in _ONE_RANGE:
        return _ONE_RANGE[name] * len(sizes)
    technique = _LIKE.get(name, name)
    if technique not in TECHNIQUES:
        raise AggregateError(f"no technique is named {name}", hint=did_you_mean(name, names()))
    return omega(technique, sizes, sizes)


def _advice(
    algebra: Algebra, sizes: list[int], groups: int, prefer: Prefer
) -> Iterator[tuple[str, str]]:
    """Techniques in order of preference, each with the reason that holds if it is taken."""
    if sizes[-1] <= SMALL:
        slices = "one slice" if sizes[-1] == 1 else f"at most {sizes[-1]} slices"
        yield "panes", f"windows span {slices}: there is nothing to gain by keeping more"
    many = f", for {groups:,} groups at once" if groups > 1 else ""
    name = algebra.name
    yield "slickdeque_inv", f"{name} can be subtracted: 2 operations a range in every step{many}"
    if prefer == "latency":
        yield from _steady(name, groups)
    few = "fewer than 2 comparisons a step on average, and few partials held"
    yield "slickdeque_noninv", f"{name} selects one of its values: {few}{many}"
    three = "3 operations a step on average, and little memory"
    yield "two_stacks_lite", f"{name} neither subtracts nor selects, over one range: {three}"
    yield _cheaper(algebra, sizes)


def _steady(name: str, groups: int) -> Iterator[tuple[str, str]]:
    """What keeps every step short, for aggregates that cannot be subtracted."""
    no_step = f"no step may be slow, and {name} cannot be subtracted"
    if groups >= MANY_GROUPS:
        half = f"half of what daba holds for each of {groups:,} groups"
        yield "daba_lite", f"{no_step}: at most 6 operations in any step, and {half}"
    yield "daba", f"{no_step}: at most 8 operations in any step"
    yield "flatfat", f"{no_step}: a tree answers several ranges with log n operations in every step"


def _cheaper(algebra: Algebra, sizes: list[int]) -> tuple[str, str]:
    """Of what takes any aggregate and several ranges, the one with fewer operations."""
    fit, fat = operations("flatfit", sizes), operations("flatfat", sizes)
    # Where order matters, a tree combines three times as much.
    fat = fat if algebra.commutative else 3 * fat
    name, fewer, other, more = (
        ("flatfit", fit, "flatfat", fat) if fit <= fat else ("flatfat", fat, "flatfit", fit)
    )
    return name, (
        f"{algebra.name} neither subtracts nor selects, over {len(sizes)} ranges: about "
        f"{fewer:.3g} operations a step, {other} takes {more:.3g}"
    )


def _sizes(ranges: Iterable[int]) -> list[int]:
    sizes = sorted(set(ranges))
    if not sizes or sizes[0] < 1:
        raise WindowError(
            f"ranges of {sizes} slices", hint="say how many slices each window spans, from 1 on"
        )
    return sizes


def _check(groups: int, prefer: str) -> None:
    if groups < 0:
        raise MuntinError(f"{groups} groups are expected", hint="give a number of at least 0")
    if prefer not in PREFERENCES:
        raise MuntinError(
            f"a plan cannot prefer {prefer!r}", hint=did_you_mean(str(prefer), PREFERENCES)
        )
