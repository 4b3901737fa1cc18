"""Frequent values by short lists: FREQUENT, with bounds that always hold.

Each pane of a window, which is a slice that only the query's own windows cut, keeps a list of its
most frequent values with their counts. What is on no list of a pane occurs in it at most as often
as the first value that did not get on, the pane's *slack*. So the counts on all lists are lower
bounds, and the slack of the panes whose lists lack a value is added for an upper one.

Golab, Sliding Window Query Processing over Data Streams, 2006, Algorithm 6; the (k+1)-th count
instead of the k-th, and credit for the panes that list a value, are tighter and as sound.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from muntin.aggregates.algebra import FREQUENT, REQUIRED, BuiltIn, Part
from muntin.aggregates.holistic.frequencies import MOST, check_fraction, check_number
from muntin.aggregates.holistic.runs import Run, plain, united
from muntin.aggregates.types import rank, require_ordered
from muntin.errors import AggregateError

# Values on a list, where nothing else is said.
TRACKED = 1000


class Item(NamedTuple):
    """A value, and between which numbers its occurrences lie."""

    value: Any
    low: int
    high: int


class Lists(NamedTuple):
    """Counts of an open pane, and what the lists of sealed ones add up to.

    ``credits`` are the slack of the panes that list a value; it is taken off the whole ``slack``.
    """

    counts: Run = ()
    lows: Run = ()
    credits: Run = ()
    slack: int = 0
    rows: int = 0

    def sealed(self, tracked: int) -> Lists:
        """The counts of the open pane truncated to a list."""
        best = sorted(self.counts, key=lambda item: (-item[1], rank(item[0])))
        slack = best[tracked][1] if len(best) > tracked else 0
        return Lists(
            (),
            united((*self.lows, *best[:tracked])),
            united((*self.credits, *((value, slack) for value, _ in best[:tracked]))),
            self.slack + slack,
            self.rows + sum(count for _, count in self.counts),
        )

    def items(self) -> list[Item]:
        """All values on lists, those with the most certain occurrences first."""
        credit = {rank(value): number for value, number in self.credits}
        found = [
            Item(value, low, low + self.slack - credit.get(rank(value), 0))
            for value, low in self.lows
        ]
        return sorted(found, key=lambda item: (-item.low, rank(item.value)))


class _Frequent(BuiltIn):
    """What approx_top_k and approx_frequent have in common."""

    @property
    def tracked(self) -> int:
        """How many values a list holds."""
        return int(self.given[1])

    @property
    def identity(self) -> Lists:
        """No values."""
        return Lists()

    def lift(self, value: Any) -> Lists:
        """One value, once, in an open pane."""
        return Lists(((plain(value), 1),))

    def combine(self, a: Lists, b: Lists) -> Lists:
        """The values of both, in one pane as far as they are not on lists."""
        return Lists(
            united((*a.counts, *b.counts)),
            united((*a.lows, *b.lows)),
            united((*a.credits, *b.credits)),
            a.slack + b.slack,
            a.rows + b.rows,
        )

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A list of values and bounds."""
        require_ordered(self.name, types[0])
        bounds = [("low", pa.int64()), ("high", pa.int64()), ("certain", pa.bool_())]
        return pa.list_(pa.struct([("value", types[0]), *bounds]))

    @property
    def parts(self) -> tuple[Part, ...]:
        """Counts that are truncated pane by pane."""
        return (Part(f"{FREQUENT}{self.tracked}", self.types),)

    def check_tracked(self, least: int) -> None:
        """Refuse lists that are shorter than the answer."""
        if type(self.given[1]) is not int or not least <= self.given[1] <= MOST:
            raise AggregateError(
                f"{self.name} tracks from {least} to {MOST} values, not {self.given[1]!r}",
                hint=f"write {self.name}(x, {self.given[0]}, {max(least, TRACKED)})",
            )


class ApproxTopK(_Frequent):
    """The k values with the most certain occurrences, each with bounds.

    A value is *certain* if it is one of the k most frequent ones whatever the lists lack.

    >>> ApproxTopK((pa.string(),), (1,)).of(["b", "a", "b"])
    [{'value': 'b', 'low': 2, 'high': 2, 'certain': True}]
    """

    name = "approx_top_k"
    constants: ClassVar[dict[str, Any]] = {"k": 5, "tracked": TRACKED}
    sample = (2,)

    def check(self) -> None:
        """Whole numbers of values."""
        check_number(self.name, "x", self.given[0])
        self.check_tracked(self.given[0])

    def lower(self, partial: Lists) -> list[dict[str, Any]]:
        """An empty list for no values."""
        sealed = partial.sealed(self.tracked)
        return [
            {**item._asdict(), "certain": is_certain}
            for item, is_certain in _top(sealed.items(), self.given[0], sealed.slack)
        ]


class ApproxFrequent(_Frequent):
    """The values that may make up a fraction of all, each with bounds, the surest first.

    A value is *certain* if it makes up the fraction whatever the lists lack.

    >>> ApproxFrequent((pa.string(),), (0.5,)).of(["b", "a", "b", "c"])
    [{'value': 'b', 'low': 2, 'high': 2, 'certain': True}]
    """

    name = "approx_frequent"
    constants: ClassVar[dict[str, Any]] = {"fraction": REQUIRED, "tracked": TRACKED}
    sample = (0.25,)

    def check(self) -> None:
        """A fraction that few values can reach, and a list that has room for some."""
        check_fraction(self.name, self.given[0])
        self.check_tracked(1)

    @property
    def fraction(self) -> Fraction:
        """The fraction as it was written, not as a double."""
        return Fraction(repr(self.given[0]))

    def lower(self, partial: Lists) -> list[dict[str, Any]]:
        """An empty list for no values."""
        sealed = partial.sealed(self.tracked)
        least = self.fraction * sealed.rows
        return [
            {**item._asdict(), "certain": item.low >= least}
            for item in sealed.items()
            if item.high >= least
        ]


def _top(items: list[Item], k: int, slack: int) -> Iterable[tuple[Item, bool]]:
    """The first k of items, and whether each is sure to be among the k most frequent values."""
    for item in items[:k]:
        rivals = sum(other.high >= item.low for other in items) - 1
        # Exact counts tell which of equally frequent values come first.
        yield item, slack == 0 or (rivals < k and slack < item.low)
