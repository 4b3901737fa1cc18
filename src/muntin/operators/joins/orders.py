"""The order in which streams of a join are probed, chosen by the comparisons it costs.

A row that arrives is compared with the window of one stream after the other; what a probe finds
goes on to the next. Few partners first makes all later steps cheap. The costs are those of
*Sliding Window Query Processing over Data Streams* (2006), 5.3: nested loops over windows, values
spread evenly, and the smaller set of values contained in the larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Literal

OrderMethod = Literal["all", "heuristic"]

# Streams that are this much faster than the slowest are tried higher up.
_FAST = 2


@dataclass(frozen=True)
class JoinStream:
    """One stream of a join.

    Attributes:
        rate: Rows per unit of time.
        range: How long a row stays in its window.
        values: How many values its key has.
        buckets: How many parts a hash table cuts its window into, of which a probe looks at one.
    """

    rate: Fraction | int
    range: Fraction | int
    values: int
    buckets: int = 1

    @property
    def rows(self) -> Fraction:
        """The rows in its window."""
        return Fraction(self.rate) * self.range


def probe_cost(arriving: JoinStream, probed: Sequence[JoinStream]) -> Fraction:
    """Comparisons per unit of time of the rows of one stream, which probe others in order.

    >>> a, b = JoinStream(10, 100, 500), JoinStream(1, 100, 50)
    >>> print(probe_cost(a, [b]))
    1000
    """
    cost, found, values = Fraction(0), Fraction(1), arriving.values
    for each in probed:
        cost += found * each.rows / each.buckets
        found *= each.rows / max(values, each.values)
        values = min(values, each.values)
    return arriving.rate * cost


def order_cost(streams: Sequence[JoinStream]) -> Fraction:
    """Comparisons per unit of time where rows of every stream probe the others in this order."""
    return sum(
        (
            probe_cost(each, [*streams[:place], *streams[place + 1 :]])
            for place, each in enumerate(streams)
        ),
        Fraction(0),
    )


def join_size(streams: Sequence[JoinStream]) -> Fraction:
    """How many combinations of rows in the windows of some streams have one key."""
    first, *others = streams
    size, values = first.rows, first.values
    for each in others:
        size *= each.rows / max(values, each.values)
        values = min(values, each.values)
    return size


def best_order(
    streams: Mapping[str, JoinStream], method: OrderMethod = "all"
) -> tuple[tuple[str, ...], Fraction]:
    """The cheapest global order of some streams, and its cost.

    Rows of a stream probe the others in that order. ``all`` weighs every order, at most 720 for
    six streams; of equal ones it takes the first by name. ``heuristic`` is the thesis's: the most
    selective pair first, then greedily the smallest result, and the orders that arise where fast
    streams are moved up.

    >>> streams = {"a": JoinStream(10, 100, 40), "b": JoinStream(1, 100, 100)}
    >>> streams |= {"c": JoinStream(1, 100, 8), "d": JoinStream(1, 100, 5)}
    >>> order, cost = best_order(streams)
    >>> order, int(cost)
    (('b', 'a', 'c', 'd'), 16200)
    """
    orders = permutations(sorted(streams)) if method == "all" else _likely(streams)
    weighed = {order: order_cost([streams[name] for name in order]) for order in orders}
    best = min(weighed, key=lambda order: (weighed[order], order))
    return best, weighed[best]


def probe_order(arriving: JoinStream, others: Sequence[JoinStream]) -> tuple[int, ...]:
    """The cheapest order in which rows of one stream probe the others, by their places.

    Where nothing in between is kept, every stream may have an order of its own: this is what the
    join of rows uses, with the rows and keys that its inputs hold.

    >>> few, many = JoinStream(1, 10, 10, 10), JoinStream(1, 1000, 10, 10)
    >>> probe_order(JoinStream(1, 1, 1), [many, few])
    (1, 0)
    """
    return min(
        permutations(range(len(others))),
        key=lambda order: (probe_cost(arriving, [others[place] for place in order]), order),
    )


def greedy_order(streams: Mapping[str, JoinStream]) -> tuple[str, ...]:
    """The pair with the smallest join first, then whatever keeps the result smallest."""
    pairs = permutations(sorted(streams), 2)
    order = list(min(pairs, key=lambda pair: (join_size([streams[n] for n in pair]), pair)))
    while len(order) < len(streams):
        left = sorted(set(streams) - set(order))
        order.append(
            min(left, key=lambda name: (join_size([streams[n] for n in (*order, name)]), name))
        )
    return tuple(order)


def _likely(streams: Mapping[str, JoinStream]) -> set[tuple[str, ...]]:
    """The greedy order, its first pair turned round, and those with fast streams moved up."""
    slowest = min(each.rate for each in streams.values())
    fast = [name for name, each in streams.items() if each.rate >= _FAST * slowest]
    greedy = greedy_order(streams)
    found = {greedy, (greedy[1], greedy[0], *greedy[2:])}
    for name in fast:
        found |= {moved for order in found for moved in _moved_up(order, name)}
    return found


def _moved_up(order: tuple[str, ...], name: str) -> Iterator[tuple[str, ...]]:
    """An order with one stream before any of those that stand before it."""
    rest = [each for each in order if each != name]
    for place in range(order.index(name)):
        yield (*rest[:place], name, *rest[place:])
