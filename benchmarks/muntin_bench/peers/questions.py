"""What is asked of every side: seeded rows, and queries as plain data that any engine can read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from muntin_bench.peers.data import Data, bids, keyed, trades
from muntin_bench.sharing.workloads import SharedQuery, workload

SECOND = 1_000_000
# What predicates compare is stored; these names are words of no SQL dialect.
_COLUMNS = {"vol": "vol", "value": "amount", "change": "moved"}


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: what it is called, its function, the column it reads, and of which rows.

    `distinct` counts different values, `top` lists the ten largest.
    """

    name: str
    function: Literal["count", "sum", "min", "max", "avg", "distinct", "top"]
    column: str = "*"
    where: str = ""

    @property
    def sql(self) -> str:
        """The aggregate in Muntin's SQL, which is everybody's but for `top`.

        >>> Aggregate("n", "distinct", "bidder", "price < 9").sql
        'count(DISTINCT bidder) FILTER (WHERE price < 9) AS n'
        """
        calls = {"distinct": f"count(DISTINCT {self.column})", "top": f"max({self.column}, 10)"}
        call = calls.get(self.function, f"{self.function}({self.column})")
        where = f" FILTER (WHERE {self.where})" if self.where else ""
        return f"{call}{where} AS {self.name}"


COUNT = Aggregate("n", "count")
TOTAL = Aggregate("total", "sum", "amount")


@dataclass(frozen=True)
class Spec:
    """One query: windows that start on the slide, in microseconds, and what is asked of them.

    With an `offset` they start that much later; DuckDB and polars know of it, other peers do not.

    >>> print(Spec("q", 10 * SECOND, 2 * SECOND, groups=("auction",), aggregates=(COUNT,)).sql)
    CREATE QUERY q AS SELECT auction, count(*) AS n FROM events \
GROUP BY window(ts, '10000000 microseconds', '2000000 microseconds'), auction
    """

    name: str
    range: int
    slide: int
    where: str = ""
    groups: tuple[str, ...] = ()
    aggregates: tuple[Aggregate, ...] = (COUNT, TOTAL)
    offset: int = 0

    @property
    def sql(self) -> str:
        """The query in Muntin's SQL, in the spelling of Spark."""
        times = (self.range, self.slide, *([self.offset] if self.offset else []))
        window = "window(ts, " + ", ".join(f"'{time} microseconds'" for time in times) + ")"
        chosen = ", ".join((*self.groups, *(each.sql for each in self.aggregates)))
        where = f" WHERE {self.where}" if self.where else ""
        by = ", ".join((window, *self.groups))
        return f"CREATE QUERY {self.name} AS SELECT {chosen} FROM events{where} GROUP BY {by}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the answer: keys first."""
        return ("window_start", *self.groups, *(each.name for each in self.aggregates))

    def plain(self) -> dict[str, Any]:
        """The query as JSON has it, with its text in Muntin's SQL."""
        aggregates = [{**asdict(each), "sql": each.sql} for each in self.aggregates]
        return {**asdict(self), "sql": self.sql, "aggregates": aggregates}


@dataclass(frozen=True)
class Size:
    """One size of a question; `work` grows with what a side that shares nothing has to do."""

    label: str
    at: float
    data: Data
    queries: tuple[Spec, ...]
    work: float


@dataclass(frozen=True)
class Question:
    """A question and its sizes, growing."""

    name: str
    title: str
    across: str
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Scale:
    """How much to ask."""

    rows: int = 2_000_000
    slides: tuple[float, ...] = (60, 10, 1, 0.5)
    windows: tuple[int, ...] = (1, 16, 256, 1024)
    predicates: tuple[int, ...] = (16, 256)
    keys: tuple[int, ...] = (1, 100, 10_000, 1_000_000)
    bids: int = 2_000_000
    seconds: int = 200


FULL = Scale()
QUICK = Scale(50_000, (60, 10, 1), (1, 4, 16), (16,), (1, 100, 10_000), 50_000, 100)
TINY = Scale(2_000, (60, 10), (1, 3), (4,), (1, 5), 2_000, 60)


def questions(scale: Scale) -> tuple[Question, ...]:
    """The questions about bounded data."""
    rows = trades(scale.rows)
    return (
        Question(
            "slide",
            "one window, range 60 s, by slide",
            "windows a row is in",
            tuple(_by_slide(rows, slide) for slide in scale.slides),
        ),
        Question(
            "windows",
            "queries with different windows",
            "queries",
            tuple(_many(rows, windows(count)) for count in scale.windows),
        ),
        Question(
            "predicates",
            "queries with different predicates and windows",
            "queries",
            tuple(_many(rows, predicates(count)) for count in scale.predicates),
        ),
        Question(
            "groups",
            "one grouped query, range 4 min, slide 2 min, by number of groups",
            "groups",
            tuple(_by_key(scale.rows, keys) for keys in scale.keys),
        ),
        Question(
            "hot_items",
            "NEXMark query 5, range 10 s, slide 2 s: bids by auction",
            "bids",
            (_hot_items(scale.bids, scale.seconds),),
        ),
        *(_statistics(scale.bids, scale.seconds, number) for number in NEXMARK),
    )


def _by_slide(rows: Data, seconds: float) -> Size:
    query = Spec("q0000", 60 * SECOND, round(seconds * SECOND))
    copies = query.range / query.slide
    return Size(f"{seconds:g} s", copies, rows, (query,), copies)


def _many(rows: Data, queries: tuple[Spec, ...]) -> Size:
    count = len(queries)
    label = "1 query" if count == 1 else f"{count:,} queries"
    return Size(label, count, rows, queries, count)


def _by_key(rows: int, keys: int) -> Size:
    query = Spec("q0000", 240 * SECOND, 120 * SECOND, groups=("key",))
    label = "1 group" if keys == 1 else f"{keys:,} groups"
    return Size(label, keys, keyed(rows, keys), (query,), 1)


def _hot_items(rows: int, seconds: int) -> Size:
    query = Spec("q0000", 10 * SECOND, 2 * SECOND, groups=("auction",), aggregates=(COUNT,))
    return Size(f"{rows:,} bids", rows, bids(rows, seconds), (query,), 1)


Function: TypeAlias = Literal["count", "sum", "min", "max", "avg", "distinct", "top"]
_COUNTED: tuple[tuple[str, Function, str], ...] = (
    ("bids", "count", "*"),
    ("bidders", "distinct", "bidder"),
    ("auctions", "distinct", "auction"),
)


def _ranks() -> tuple[Aggregate, ...]:
    """How many bids, bidders and auctions there are, in all and by three ranks of prices."""
    conditions = ("", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
    return tuple(
        Aggregate(f"{what}{rank or ''}", function, column, where)
        for what, function, column in _COUNTED
        for rank, where in enumerate(conditions)
    )


_OF_PRICES = (
    *(each for each in _ranks() if each.column == "*"),
    Aggregate("least", "min", "price"),
    Aggregate("most", "max", "price"),
    Aggregate("mean", "avg", "price"),
    Aggregate("total", "sum", "price"),
)
# NEXMark's queries over a day, which is ten seconds here: groups, aggregates, and what they ask.
NEXMARK: dict[int, tuple[tuple[str, ...], tuple[Aggregate, ...], str]] = {
    15: ((), _ranks(), "bids, bidders and auctions by rank of price"),
    16: (("channel",), _ranks(), "the same by channel"),
    17: (("auction",), _OF_PRICES, "prices by auction"),
    19: (("auction",), (COUNT, Aggregate("top", "top", "price")), "ten best bids by auction"),
}


def _statistics(rows: int, seconds: int, number: int) -> Question:
    groups, aggregates, about = NEXMARK[number]
    query = Spec("q0000", 10 * SECOND, 10 * SECOND, groups=groups, aggregates=aggregates)
    size = Size(f"{rows:,} bids", rows, bids(rows, seconds), (query,), 1)
    title = f"NEXMark query {number}, windows of 10 s: {about}"
    return Question(f"nexmark_{number}", title, "bids", (size,))


def windows(count: int, seed: int = 0) -> tuple[Spec, ...]:
    """Queries of which no two have the same window; those of fewer begin those of more.

    Slides are whole seconds from 5 to 300, and ranges 2 to 12 slides: Flink takes whole
    multiples only.
    """
    random = np.random.default_rng([seed, 2])
    drawn: dict[tuple[int, int], None] = {}
    while len(drawn) < count:
        slide = int(random.integers(5, 301)) * SECOND
        drawn[int(random.integers(2, 13)) * slide, slide] = None
    return tuple(Spec(f"q{number:04d}", *window) for number, window in enumerate(drawn))


def predicates(count: int) -> tuple[Spec, ...]:
    """The workload `C low sharing`: no two queries have the same window or the same predicate."""
    return tuple(map(spec_of, workload("C low sharing", count).queries))


def spec_of(query: SharedQuery) -> Spec:
    """A query of the sharing benchmark, with windows that start on the slide."""
    size, slide, predicate = query.range * SECOND, query.slide * SECOND, query.predicate
    if predicate is None:
        return Spec(query.name, size, slide)
    member = predicate.index if predicate.member else f"NOT {predicate.index}"
    quantity = _COLUMNS[predicate.quantity]
    where = f"{member} AND {quantity} {predicate.comparison} {predicate.constant}"
    return Spec(query.name, size, slide, where)
