"""The queries of the sharing benchmark answered by DuckDB, in the ways its users would try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from muntin.errors import MuntinError
from muntin_bench.sharing.data import Market
from muntin_bench.sharing.workloads import SECOND, SharedQuery

_ENRICHED = """
SELECT epoch_us(ts) AS ts, vol, price * vol AS value, abs(price - cp) / cp AS change,
       r3000, r2000, r1000
FROM trades JOIN close USING (symbol) JOIN indexes USING (symbol)
"""


class DuckDBPeer:
    """DuckDB over the trades of a market, with as many threads as it takes by itself.

    The Arrow tables are registered before any time is measured. For many queries the join with
    the static tables is stored once, as a table of its own; a single query joins as it goes.
    """

    name = "DuckDB"

    def __init__(self, market: Market) -> None:
        try:
            import duckdb  # noqa: PLC0415
        except ImportError:
            raise MuntinError(
                "the sharing benchmark needs DuckDB", hint="pip install duckdb, or make setup"
            ) from None
        self._connection: Any = duckdb.connect()
        self._connection.register("trades", market.trades)
        self._connection.register("close", market.close)
        self._connection.register("indexes", market.index)

    @property
    def threads(self) -> int:
        """How many threads DuckDB uses."""
        [(threads,)] = self._connection.sql("SELECT current_setting('threads')").fetchall()
        return int(threads)

    @property
    def ways(self) -> dict[str, Callable[[SharedQuery], str]]:
        """How to answer, by name: SQL over `enriched` for a query."""
        return {
            "paired slices": _sliced,
            "a copy a window": _copied,
            "range join with the windows": _range_joined,
        }

    def answer(self, queries: Sequence[SharedQuery], way: str) -> list[pa.Table]:
        """The answers: `window_start` in microseconds since the epoch, and `value`."""
        kind = "TABLE" if len(queries) > 1 else "VIEW"
        self._connection.execute(f"CREATE TEMP {kind} enriched AS {_ENRICHED}").fetchall()
        try:
            statements = [self.ways[way](query) for query in queries]
            return [self._connection.sql(sql).to_arrow_table() for sql in statements]
        finally:
            self._connection.execute(f"DROP {kind} enriched").fetchall()


def _sliced(query: SharedQuery) -> str:
    """Sum up paired slices, then the slices of each window."""
    size, slide = query.range * SECOND, query.slide * SECOND
    whole, rest = divmod(size, slide)
    slices = f"""
        SELECT 2 * (ts // {slide}) + (ts % {slide} >= {slide - rest})::BIGINT AS slice,
               sum(value) AS value
        FROM enriched {_where(query)} GROUP BY ALL"""
    copies = f"""
        SELECT unnest(range(slice // 2 + 1, (slice + 1) // 2 + {whole + 1})) AS number, value
        FROM ({slices})"""
    return _windows(query, copies)


def _copied(query: SharedQuery) -> str:
    """Copy each row into all of its windows."""
    size, slide = query.range * SECOND, query.slide * SECOND
    copies = f"""
        SELECT unnest(range(ts // {slide} + 1, (ts + {size}) // {slide} + 1)) AS number, value
        FROM enriched {_where(query)}"""
    return _windows(query, copies)


def _range_joined(query: SharedQuery) -> str:
    """Join the rows with a series of windows."""
    size, slide = query.range * SECOND, query.slide * SECOND
    joined = f"""
        WITH numbers AS (
            SELECT unnest(range(min(ts) // {slide}, (max(ts) + {size}) // {slide} + 1)) AS number
            FROM enriched)
        SELECT number, value FROM numbers JOIN enriched
        ON ts >= number * {slide} - {size} AND ts < number * {slide} {_where(query)}"""
    return _windows(query, joined)


def _windows(query: SharedQuery, copies: str) -> str:
    start = f"number * {query.slide * SECOND} - {query.range * SECOND}"
    return f"""
        SELECT {start} AS window_start, sum(value) AS value
        FROM ({copies}) GROUP BY number ORDER BY number"""


def _where(query: SharedQuery) -> str:
    predicate = query.predicate
    if predicate is None:
        return ""
    member = predicate.index if predicate.member else f"NOT {predicate.index}"
    return f"WHERE {member} AND {predicate.quantity} {predicate.comparison} {predicate.constant}"
