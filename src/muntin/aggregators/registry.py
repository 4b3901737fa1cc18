"""Techniques by name: their cards, and aggregators built from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from muntin.aggregates import Aggregate, ResolvedAggregate, resolve
from muntin.aggregators.aggregator import Aggregator
from muntin.aggregators.card import Card
from muntin.aggregators.inputs import whole_number
from muntin.aggregators.techniques import (
    bint,
    daba,
    daba_lite,
    flatfat,
    flatfit,
    last_seen,
    panes,
    panes_inv,
    running_totals,
    slickdeque_inv,
    slickdeque_noninv,
    two_stacks,
    two_stacks_lite,
)
from muntin.errors import AggregateError, DataError, WindowError, did_you_mean

# A technique is a module and a line here: tests, engine, plans and pages find it by its name.
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
    (running_totals.CARD, running_totals.RunningTotals),
    (last_seen.CARD, last_seen.LastSeen),
)
_BY_NAME = {card.name: (card, state_class) for card, state_class in _TECHNIQUES}


def names() -> tuple[str, ...]:
    """The techniques' names, simplest first.

    >>> names()[0], len(names())
    ('panes', 13)
    """
    return tuple(_BY_NAME)


def register(card: Card, state: Any) -> None:
    """Add a technique of your own, by its card and its state class (see `contract`).

    It is then taken by name wherever techniques are, and weighed where they are chosen. On Spark it
    travels with the plans that use it: workers must be able to import the module of its state
    class, or, for bounded data, find it in your notebook or script.
    """
    if card.name in _BY_NAME:
        raise AggregateError(
            f"there is a technique {card.name} already", hint="give yours another name"
        )
    _BY_NAME[card.name] = (card, state)


def own(used: Iterable[str]) -> tuple[tuple[Card, Any], ...]:
    """Those among some techniques that were registered by users, for other processes.

    >>> own(["daba", "panes"])
    ()
    """
    built_in = {card.name for card, _ in _TECHNIQUES}
    return tuple(_technique(name) for name in sorted(set(used) - built_in))


def admit(techniques: Iterable[tuple[Card, Any]]) -> None:
    """Register what `own` gave in another process, where it is not known yet."""
    for card, state in techniques:
        _BY_NAME.setdefault(card.name, (card, state))


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
        hint = did_you_mean(str(name), names()) or "muntin.aggregators.names() lists them"
        raise AggregateError(f"no technique is named {name}", hint=hint)
    return _BY_NAME[name]


def legal(aggregate: Aggregate | ResolvedAggregate | str, ranges: int = 1) -> tuple[str, ...]:
    """The techniques that take this aggregate with so many ranges.

    >>> [name for name in legal("max", ranges=2) if "slick" in name]
    ['slickdeque_noninv']
    """
    algebra = _algebra(aggregate)
    return tuple(
        name for name, (card, _) in _BY_NAME.items() if card.missing(algebra, ranges) is None
    )


def create(
    name: str, aggregate: Aggregate | ResolvedAggregate | str, ranges: Iterable[int] = ()
) -> Aggregator:
    """An aggregator of a technique: values or partials in, one answer per range out.

    Args:
        name: The technique.
        aggregate: What to compute: an aggregate's name, which takes DOUBLE arguments unless it
            says others, as "max(int64)" does; one as resolved by SQL name; or a user's own.
        ranges: How many partials each window spans. None are needed to drive by position.

    >>> largest = create("daba", "max", ranges=[3])
    >>> [largest.insert(value) for value in (4, 2, 1, 0)]
    [(4,), (4,), (4,), (2,)]
    >>> largest = create("slickdeque_noninv", "max(int64)", ranges=[3, 5])
    >>> largest.run([6, 5, 0, 1, 3, 4, 2, 7]).tolist()
    [[6, 6], [6, 6], [6, 6], [5, 6], [3, 6], [4, 5], [4, 4], [7, 7]]
    >>> largest.operations
    11
    >>> create("panes_inv", "max", ranges=[3])
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


def _algebra(aggregate: Aggregate | ResolvedAggregate | str) -> Aggregate:
    if isinstance(aggregate, str):
        return _named(aggregate)
    if isinstance(aggregate, ResolvedAggregate):
        return aggregate.algebra
    if isinstance(aggregate, Aggregate):
        return aggregate
    raise AggregateError(
        f"{aggregate!r} is not an aggregate",
        hint='give a name such as "sum" or "max(string)", or your own Aggregate',
    )


def _named(said: str) -> Aggregate:
    """The aggregate of a name: of DOUBLE arguments, or BOOLEAN ones if it takes no other."""
    name, opens, rest = said.partition("(")
    if opens:
        inside = rest.removesuffix(")").strip()
        types = [_type(each.strip(), said) for each in inside.split(",")] if inside else []
        return resolve(name.strip(), types).algebra
    refused: list[AggregateError] = []
    for guess in ([pa.float64()], [pa.float64()] * 2, [pa.bool_()]):
        try:
            return resolve(name.strip(), guess).algebra
        except AggregateError as error:
            refused.append(error)
    raise refused[0]


def _type(alias: str, said: str) -> pa.DataType:
    try:
        return pa.type_for_alias(alias)
    except ValueError as error:
        raise AggregateError(
            f"{said!r} names the type {alias!r}, which Arrow does not know",
            hint="write it as in max(int64), max(string) or max(timestamp[us])",
        ) from error


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
