"""Techniques by name: their cards, and aggregators built from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muntin.aggregates import Aggregate, ResolvedAggregate
from muntin.aggregators import (
    bint,
    daba,
    daba_lite,
    flatfat,
    flatfit,
    panes,
    panes_inv,
    slickdeque_inv,
    slickdeque_noninv,
    two_stacks,
    two_stacks_lite,
)
from muntin.aggregators.aggregator import Aggregator
from muntin.aggregators.card import Card
from muntin.aggregators.inputs import whole_number
from muntin.errors import AggregateError, DataError, WindowError, did_you_mean

_TECHNIQUES: tuple[tuple[Card, Any], ...] = (
    (panes.CARD, panes.Panes),
    (panes_inv.CARD, panes_inv.PanesInv),
    (flatfat.CARD, flatfat.FlatFAT),
    (bint.CARD, bint.BInt),
    (flatfit.CARD, flatfit.FlatFIT),
    (two_stacks.CARD, two_stacks.TwoStacks),
    (two_stacks_lite.CARD, two_stacks_lite.TwoStacksLite),
    (daba.CARD, daba.DABA),
    (daba_lite.CARD, daba_lite.DABALite),
    (slickdeque_inv.CARD, slickdeque_inv.SlickDequeInv),
    (slickdeque_noninv.CARD, slickdeque_noninv.SlickDequeNonInv),
)
_BY_NAME = {card.name: (card, state_class) for card, state_class in _TECHNIQUES}


def names() -> tuple[str, ...]:
    """The techniques' names, simplest first.

    >>> names()[0], len(names())
    ('panes', 11)
    """
    return tuple(_BY_NAME)


def info(name: str) -> Card:
    """The card of a technique.

    >>> info("daba").amortised, info("daba").worst, info("daba").several_ranges
    ('5', '8', False)
    """
    return _technique(name)[0]


def state_class(name: str) -> Any:
    """The named tuple of arrays that a technique keeps, with its algorithm."""
    return _technique(name)[1]


def _technique(name: str) -> tuple[Card, Any]:
    if name not in _BY_NAME:
        raise AggregateError(f"no technique is named {name}", hint=did_you_mean(str(name), names()))
    return _BY_NAME[name]


def legal(aggregate: Aggregate | ResolvedAggregate, ranges: int = 1) -> tuple[str, ...]:
    """The techniques that take this aggregate with so many ranges.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> [name for name in legal(resolve("max", [pa.int64()]), ranges=2) if "slick" in name]
    ['slickdeque_noninv']
    """
    algebra = _algebra(aggregate)
    return tuple(
        name for name, (card, _) in _BY_NAME.items() if card.missing(algebra, ranges) is None
    )


def create(
    name: str, aggregate: Aggregate | ResolvedAggregate, ranges: Iterable[int] = ()
) -> Aggregator:
    """An aggregator of a technique: partials in, one answer per range out.

    Args:
        name: The technique.
        aggregate: What to compute, as resolved by SQL name or a user's own.
        ranges: How many partials each window spans. None are needed to drive by position.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> largest = create("slickdeque_noninv", resolve("max", [pa.int64()]), ranges=[3, 5])
    >>> largest.run([6, 5, 0, 1, 3, 4, 2, 7]).tolist()
    [[6, 6], [6, 6], [6, 6], [5, 6], [3, 6], [4, 5], [4, 4], [7, 7]]
    >>> largest.operations
    11
    >>> create("panes_inv", resolve("max", [pa.int64()]), ranges=[3])
    Traceback (most recent call last):
    muntin.errors.AggregateError: panes_inv needs an inverse, which max does not have
    Hint: use one of panes, flatfat, bint, flatfit, two_stacks, two_stacks_lite, daba, ...
    """
    card, state = _technique(name)
    sizes = _checked(ranges)
    algebra = _algebra(aggregate)
    missing = card.missing(algebra, len(set(sizes)))
    if missing is not None:
        fitting = ", ".join(legal(algebra, len(set(sizes))))
        raise AggregateError(f"{name} needs {missing}", hint=f"use one of {fitting}")
    return Aggregator(card, state, algebra, sizes)


def _algebra(aggregate: Aggregate | ResolvedAggregate) -> Aggregate:
    if isinstance(aggregate, ResolvedAggregate):
        return aggregate.algebra
    if isinstance(aggregate, Aggregate):
        return aggregate
    raise AggregateError(
        f"{aggregate!r} is no aggregate",
        hint='give muntin.aggregates.resolve("sum", [pyarrow.float64()]), or your own Aggregate',
    )


def _checked(ranges: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(ranges, Iterable):
        raise WindowError(f"ranges of {ranges!r}", hint=f"give a list: ranges=[{ranges!r}]")
    return tuple(map(_size, ranges))


def _size(given: Any) -> int:
    hint = "ranges are whole numbers from 1 to 2**62"
    try:
        size = whole_number(given, "range")
    except DataError as error:
        raise WindowError(f"a range of {given!r} partials", hint=hint) from error
    if size < 1:
        raise WindowError(f"a range of {given!r} partials", hint=hint)
    return size
