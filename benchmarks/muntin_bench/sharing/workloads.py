"""The query sets of "On-the-Fly Sharing for Streamed Aggregation": its Query 4 and Table 8.

All queries sum the value of trades. On workload A they differ in their windows, on B in their
predicates, and on C in both: `C regular` crosses √n windows with √n predicates, and on
`C low sharing` no two queries have the same window or the same predicate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

NAMES = ("A", "B", "C regular", "C low sharing")
SECOND = 1_000_000
INDEXES = ("r3000", "r2000", "r1000")
# What Value compares, as SQL over the trades joined with their closing price.
QUANTITIES = {"vol": "vol", "value": "vol * price", "change": "abs(price - cp) / cp"}
# The paper does not say how V, W and F are drawn. These ranges, and leaning to the end that more
# trades satisfy, were chosen by trial so that a trade of the synthetic hour satisfies as many
# predicates as the paper's: 97 of 256 on average (the paper gives 76, and counts that come to 102).
_RANGES = {"vol": (10, 1e5), "value": (700, 1e5), "change": (0.003, 0.08)}
_LEANING = 3
_TUMBLING = (600, 600)
DRAWN = (
    ("range, slide", "whole seconds, uniform in 600 to 900 and 300 to 600, no pair twice"),
    ("Member", "r3000, r2000 or r1000, true or false: all equally likely"),
    ("Value", "vol, vol * price or change, > or <: all equally likely, drawn independently"),
    *(
        (
            f"constant of {QUANTITIES[quantity]}",
            f"{low:g} * {high / low:.4g} ** u, u the cube of a uniform number (less than: 1 - u)",
        )
        for quantity, (low, high) in _RANGES.items()
    ),
    ("seeds", "0, 1, 2, ...; where one set is timed, that of seed 0"),
)


@dataclass(frozen=True)
class Predicate:
    """Whether a trade's symbol is in an index, and a quantity of the trade against a constant."""

    index: str
    member: bool
    quantity: str
    greater: bool
    constant: float

    @property
    def sql(self) -> str:
        """The condition in SQL; the names of its columns are unique among the three tables."""
        member = self.index if self.member else f"NOT {self.index}"
        return f"{member} AND {QUANTITIES[self.quantity]} {self.comparison} {self.constant}"

    @property
    def comparison(self) -> str:
        """The operator between quantity and constant."""
        return ">" if self.greater else "<"

    def holds(self, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Which rows satisfy it, given the indexes and quantities of each."""
        quantity = columns[self.quantity]
        value = quantity > self.constant if self.greater else quantity < self.constant
        held: npt.NDArray[np.bool_] = value & (columns[self.index] == self.member)
        return held


@dataclass(frozen=True)
class SharedQuery:
    """Query 4 with a window in whole seconds, and perhaps a predicate."""

    name: str
    range: int
    slide: int
    predicate: Predicate | None = None

    def sql(self, *, joined: bool = True, grouped: bool = False) -> str:
        """The query in Muntin's SQL; unless `joined`, the stream itself has the tables' columns."""
        window = f"[RANGE '{self.range} seconds' SLIDE '{self.slide} seconds']"
        join = (
            " JOIN close ON trades.symbol = close.symbol JOIN index ON trades.symbol = index.symbol"
        )
        where = f" WHERE {self.predicate.sql}" if self.predicate else ""
        symbol = "trades.symbol" if joined else "symbol"
        return (
            f"CREATE QUERY {self.name} AS"
            f" SELECT {f'{symbol}, ' if grouped else ''}sum(price * vol) AS value"
            f" FROM trades {window}{join if joined else ''}{where}"
            f"{f' GROUP BY {symbol}' if grouped else ''}"
        )


@dataclass(frozen=True)
class Workload:
    """A named set of queries."""

    name: str
    queries: tuple[SharedQuery, ...]

    @property
    def size(self) -> int:
        """How many queries there are."""
        return len(self.queries)

    def sql(self, *, joined: bool = True, grouped: bool = False) -> str:
        """All queries as SQL text."""
        return ";\n".join(query.sql(joined=joined, grouped=grouped) for query in self.queries)


def workload(name: str, size: int, seed: int = 0) -> Workload:
    """A set of queries; those of a smaller set draw from the same windows and predicates.

    >>> print(workload("C low sharing", 16).queries[3].sql(joined=False))
    CREATE QUERY q0003 AS SELECT sum(price * vol) AS value FROM trades \
[RANGE '622 seconds' SLIDE '304 seconds'] WHERE r1000 AND vol < 98837
    """
    return Workload(
        name,
        tuple(
            SharedQuery(f"q{number:04d}", *window, predicate)
            for number, (window, predicate) in enumerate(_drawn(name, size, seed))
        ),
    )


def _drawn(name: str, size: int, seed: int) -> list[tuple[tuple[int, int], Predicate | None]]:
    if name == "A":
        return [(window, None) for window in islice(windows(seed), size)]
    if name == "B":
        return [(_TUMBLING, predicate) for predicate in islice(predicates(seed), size)]
    if name == "C low sharing":
        return list(islice(zip(windows(seed), predicates(seed), strict=False), size))
    assert name == "C regular", name
    root = math.isqrt(size)
    assert root * root == size, f"{size} is not a square"
    return list(product(islice(windows(seed), root), islice(predicates(seed), root)))


def windows(seed: int) -> Iterator[tuple[int, int]]:
    """Different windows: ranges of 600 to 900 seconds, slides of 300 to 600."""
    random = np.random.default_rng([seed, 0])
    seen: set[tuple[int, int]] = set()
    while True:
        window = (int(random.integers(600, 901)), int(random.integers(300, 601)))
        if window not in seen:
            seen.add(window)
            yield window


def predicates(seed: int) -> Iterator[Predicate]:
    """Different predicates; index, membership, quantity and comparison are drawn independently."""
    random = np.random.default_rng([seed, 1])
    quantities = tuple(QUANTITIES)
    seen: set[Predicate] = set()
    while True:
        index = INDEXES[random.integers(len(INDEXES))]
        member, greater = (bool(random.integers(2)) for _ in range(2))
        quantity = quantities[random.integers(len(quantities))]
        # Only the constant is drawn again, or kinds with few different ones would be rarer.
        while True:
            constant = _constant(random, quantity, greater)
            predicate = Predicate(index, member, quantity, greater, constant)
            if predicate not in seen:
                break
        seen.add(predicate)
        yield predicate


def _constant(random: np.random.Generator, quantity: str, greater: bool) -> float:
    low, high = _RANGES[quantity]
    place = float(random.random()) ** _LEANING
    constant = float(low * (high / low) ** (place if greater else 1 - place))
    return round(constant, 6) if quantity == "change" else round(constant)
