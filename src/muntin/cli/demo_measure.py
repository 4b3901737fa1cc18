"""What sharing saves: all queries in one call of Muntin, against Spark's ``window()`` for a few."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

import muntin
from muntin.display import count
from muntin.errors import MuntinError
from muntin.pipelines import rate
from muntin.results import Results

FEW = 4
_SPEED = 20_000  # trades a second of event time
_NEAR = 1e-9


@dataclass(frozen=True)
class Measured:
    """Seconds that were measured over the same trades.

    Attributes:
        queries: How many queries Muntin answered.
        rows: How many trades there were.
        shared: Seconds for all queries in one call of Muntin.
        separate: Seconds for each of a few queries of Spark's.
    """

    queries: int
    rows: int
    shared: float
    separate: tuple[float, ...]

    @property
    def extrapolated(self) -> float:
        """What all queries would take separately, if the others were like those measured."""
        return statistics.fmean(self.separate) * self.queries


def measure(
    spark: Any, folder: Path, queries: Sequence[DemoQuery], rows: int, seed: int
) -> Measured:
    """Time both sides over the same files, each warm, after comparing their answers."""
    path = str(folder / "trades")
    # Trades of a fixed day, so that what is measured does not depend on the clock.
    moment = f"timestamp_seconds(1700000000 + id / {_SPEED}D)"
    numbered = spark.range(rows).selectExpr(f"{moment} AS timestamp", "id AS value")
    rate.trades(numbered, symbols=8, seed=seed).write.parquet(path)
    # Every so many of them, so that chance and not the author picks.
    few = list(queries[:: max(len(queries) // FEW, 1)])[:FEW]
    text = [query.sql() for query in queries]
    answers = _shared(path, text)
    for query in few:
        _check_same(query, answers.table(query.name), _separate(spark, path, query))
    begun = time.perf_counter()
    _shared(path, text)
    shared = time.perf_counter() - begun
    separate = []
    for query in few:
        begun = time.perf_counter()
        _separate(spark, path, query)
        separate.append(time.perf_counter() - begun)
    return Measured(len(queries), rows, shared, tuple(separate))


def _shared(path: str, text: list[str]) -> Results:
    results = muntin.aggregate(muntin.files(path), text, time="ts")
    for name in results:
        results.table(name)
    return results


def _separate(spark: Any, path: str, query: DemoQuery) -> pa.Table:
    found: pa.Table = spark.sql(query.spark_sql(), trades=spark.read.parquet(path)).toArrow()
    return found


def _check_same(query: DemoQuery, ours: pa.Table, theirs: pa.Table) -> None:
    """The same windows and groups, and values as near as Spark's rounding allows."""
    keys = ["window_start", *(["symbol"] if query.is_grouped else [])]
    order = [(key, "ascending") for key in keys]
    ours, theirs = (table.select([*keys, "value"]).sort_by(order) for table in (ours, theirs))
    same = ours.num_rows == theirs.num_rows and all(
        ours[key].cast(theirs.schema.field(key).type).equals(theirs[key]) for key in keys
    )
    if same:
        one, other = (table["value"].cast(pa.float64()) for table in (ours, theirs))
        apart = pc.abs(pc.subtract(one, other))
        bound = pc.add(pc.multiply(pc.abs(other), _NEAR), _NEAR)
        same = pc.all(pc.fill_null(pc.less_equal(apart, bound), True)).as_py() is not False
    if not same:
        raise MuntinError(
            f"Muntin and Spark answer {query.name} differently",
            hint="this is a bug in Muntin; please report it with the seed",
        )


def report(console: Console, measured: Measured) -> None:
    """Tell what was measured, and what is extrapolated from it."""
    each = statistics.fmean(measured.separate)
    few, ratio = len(measured.separate), measured.extrapolated / measured.shared
    spread = f"mean of {few}: {min(measured.separate):.1f} to {max(measured.separate):.1f}"
    all_ = "all " * (measured.queries > 1) + count(measured.queries, "query")
    lines = (
        (f"Muntin, {all_} in one pass", measured.shared, "measured"),
        ("Spark window(), one query", each, spread),
        (f"{measured.queries:,} of those, one by one", measured.extrapolated, "extrapolated"),
    )
    console.print("\n[bold]What sharing saves[/bold]")
    console.print(f"Over the same {measured.rows:,} trades in files, both sides warm:")
    for what, seconds, how in lines:
        console.print(f"  {what:<38} {seconds:8.1f} s  {how}")
    console.print(
        f"Without sharing it takes about [bold]{ratio:,.0f} times[/bold] as long, if the other "
        f"{measured.queries - few:,}\nqueries are like the {few} that were measured, whose answers "
        "agreed. As streams\nthey would also start, read and commit that many times."
    )


_KINDS = {
    "turnover": "sum(price * vol)",
    "trades": "count(*)",
    "size": "avg(vol)",
    "top": "max(price)",
    "volume": "sum(vol)",
    "deviation": "stddev(price)",
}
_WINDOWS = ((5, 1), (10, 1), (10, 2), (20, 2), (20, 5), (30, 5))  # seconds: range and slide
_GROUPED = 0.25

JOINING = """\
CREATE QUERY spikes AS SELECT symbol, max(vol) AS largest, count(*) AS trades
  FROM trades [RANGE '3 seconds' SLIDE '1 second'] WHERE vol > 5000 GROUP BY symbol;
CREATE QUERY vwap AS SELECT sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '4 seconds' SLIDE '2 seconds'];
"""


@dataclass(frozen=True)
class DemoQuery:
    """A query that Muntin and Spark can both be asked; ranges and slides are in seconds."""

    name: str
    aggregate: str
    range: int
    slide: int
    where: str
    is_grouped: bool

    def sql(self) -> str:
        """The query for Muntin."""
        columns = "symbol, " if self.is_grouped else ""
        groups = " GROUP BY symbol" if self.is_grouped else ""
        window = f"[RANGE '{self.range} seconds' SLIDE '{self.slide} seconds']"
        return (
            f"CREATE QUERY {self.name} AS SELECT {columns}{self.aggregate} AS value"
            f" FROM trades {window} WHERE {self.where}{groups}"
        )

    def spark_sql(self) -> str:
        """The same for Spark: slides divide ranges, so that both mean the same windows."""
        columns = ", symbol" if self.is_grouped else ""
        window = f"window(ts, '{self.range} seconds', '{self.slide} seconds')"
        return (
            f"SELECT window.start AS window_start{columns}, {self.aggregate} AS value"
            f" FROM {{trades}} WHERE {self.where} GROUP BY {window}{columns}"
        )


def draw(count: int, seed: int) -> list[DemoQuery]:
    """Some queries, no two of which are named alike.

    >>> draw(2, seed=7)[0].sql()  # doctest: +ELLIPSIS
    "CREATE QUERY ... AS SELECT ...
    >>> draw(4, seed=7) == draw(8, seed=7)[:4]
    True
    """
    drawing = random.Random(seed)
    drawn = []
    for number in range(1, count + 1):
        kind = drawing.choice(list(_KINDS))
        ranged, slide = drawing.choice(_WINDOWS)
        where = drawing.choice(
            (f"vol > {drawing.randrange(0, 3000, 50)}", f"price > {drawing.randrange(20, 90)}")
        )
        is_grouped = drawing.random() < _GROUPED
        name = f"{kind}_{number:03d}"
        drawn.append(DemoQuery(name, _KINDS[kind], ranged, slide, where, is_grouped))
    return drawn
