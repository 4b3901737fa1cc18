"""The queries of the demo: what people watch of trades, with windows and thresholds drawn."""

from __future__ import annotations

import random
from dataclasses import dataclass

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
