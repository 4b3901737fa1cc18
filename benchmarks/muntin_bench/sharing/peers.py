"""DuckDB and polars on all cores beside the shared engine on one: the same queries and answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from muntin_bench.measure import Timing, measure
from muntin_bench.peers.adapters import duckdb, polars
from muntin_bench.peers.compare import check_same
from muntin_bench.peers.questions import TOTAL, Spec, spec_of
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.data import Market, hour, week
from muntin_bench.sharing.engine import Prepared, prepare
from muntin_bench.sharing.process import OneCore
from muntin_bench.sharing.workloads import SharedQuery, Workload, workload

_OURS = "muntin, one core"
# What predicates compare and sums add up is computed from the trades and their static tables.
_ENRICHED = """
SELECT epoch_us(ts) AS ts, vol, price * vol AS amount, abs(price - cp) / cp AS moved,
       r3000, r2000, r1000
FROM trades JOIN close USING (symbol) JOIN indexes USING (symbol)
"""


class JoinedDuckDB(duckdb.Adapter):
    """DuckDB over the trades of a market, with as many threads as it takes by itself.

    The Arrow tables are registered before any time is measured. For many queries the join with
    the static tables is stored once, as a table of its own; a single query joins as it goes.
    """

    name = "DuckDB"

    def __init__(self, mode: str, market: Market) -> None:
        super().__init__(mode)
        self._connection.execute("RESET threads")
        self._connection.register("trades", market.trades)
        self._connection.register("close", market.close)
        self._connection.register("indexes", market.index)

    def rows(self) -> str:
        """SQL for the trades, joined."""
        return _ENRICHED


class JoinedPolars(polars.Adapter):
    """Polars over the trades of a market, with as many threads as it takes by itself.

    Arrow data are taken over before any time is measured. The join with the static tables and
    the quantities that predicates compare are computed once for many queries, and as a part of
    the lazy query for a single one.
    """

    name = "polars"

    def __init__(self, mode: str, market: Market) -> None:
        super().__init__(mode)
        self._trades = pl.DataFrame(pl.from_arrow(market.trades)).set_sorted("ts")
        close, index = (pl.DataFrame(pl.from_arrow(table)) for table in market.tables.values())
        # Symbols are few: one join of the trades is cheaper than two.
        self._symbols = close.join(index, on="symbol")

    def rows(self) -> pl.LazyFrame:
        """The trades, joined; slices by hand may take them in any order."""
        price, vol, close = pl.col("price"), pl.col("vol"), pl.col("cp")
        order: Literal["left"] | None = None if self.mode == "slices" else "left"
        joined = (
            self._trades.lazy()
            .join(self._symbols.lazy(), on="symbol", maintain_order=order)
            .select(
                pl.col("ts").cast(pl.Int64),
                "vol",
                "r3000",
                "r2000",
                "r1000",
                amount=price * vol,
                moved=(price - close).abs() / close,
            )
        )
        return joined.collect().lazy() if len(self._job["queries"]) > 1 else joined


Peer = JoinedDuckDB | JoinedPolars


def peers_of(market: Market) -> list[Peer]:
    """Both peers, each in both ways: as its users would write it, and with slices by hand."""
    kinds: tuple[type[Peer], ...] = (JoinedPolars, JoinedDuckDB)
    return [kind(mode, market) for kind in kinds for mode in ("", "slices")]


def market(rows: int | None) -> Market:
    """The week of trades, or a synthetic hour of so many rows."""
    return week() if rows is None else hour(rows, symbols=50)


def asked(size: int) -> Workload:
    """`C regular` with so many queries; a single one is the first of sixteen."""
    if size > 1:
        return workload("C regular", size)
    return Workload("C regular", workload("C regular", 16).queries[:1])


def spelled(query: SharedQuery) -> Spec:
    """A query as peers are asked it: its windows *end* on the slide."""
    spec = spec_of(query)
    return replace(spec, aggregates=(TOTAL,), offset=-spec.range % spec.slide)


@cache
def _prepared(rows: int | None, size: int) -> Prepared:
    return prepare(market(rows), asked(size))


def our_answers(rows: int | None, size: int) -> tuple[dict[str, pa.Table], float]:
    """Our results as peers give them, and how long their plan took."""
    prepared = _prepared(rows, size)
    found = {
        name: pa.table(
            {
                "window_start": table.column("window_start").cast(pa.int64()),
                TOTAL.name: table.column("value"),
            }
        )
        for name, table in prepared.run()[0].items()
    }
    return found, prepared.planning


def run_ours(rows: int | None, size: int) -> int:
    """Answer all queries on the plan that is there; returns the number of tables."""
    return len(_prepared(rows, size).run()[0])


def beside_peers(
    process: OneCore, rows: int | None, sizes: Sequence[int], repeats: int
) -> tuple[Section, list[Check]]:
    """Time both peers and ours in turn, for one query and for many."""
    trades = market(rows)
    lines: list[tuple[str, ...]] = []
    checks: list[Check] = []
    timed: list[tuple[Timing, ...]] = []
    for size in sizes:
        step(f"beside DuckDB and polars, queries: {size}")
        queries = [spelled(query) for query in asked(size).queries]
        answers, planning = process.call(our_answers, rows, size)
        about = {_OURS: f"cells; planning took {planning * 1e3:,.0f} ms more"}
        sides: dict[str, Callable[[], Any]] = {_OURS: partial(process.call, run_ours, rows, size)}
        for name, peer in _faster(peers_of(trades), queries, answers).items():
            about[name] = answered(peer, queries, answers)
            sides[name] = peer.run
        timings = measure(sides, repeats=repeats)
        lines += _lines(size, timings, about)
        checks += _checks(size, timings)
        timed.append(tuple(replace(each, side=f"{size}, {side}") for side, each in timings.items()))
    title = f"C regular beside other engines: {trades.about}"
    columns = ("queries, engine", "ms (range)", "ms per query", "× ours (range)", "how")
    return Section(title, columns, tuple(lines), tuple(timed)), checks


def _faster(
    peers: Sequence[Peer], queries: Sequence[Spec], answers: Mapping[str, pa.Table]
) -> dict[str, Peer]:
    """By name, the way that answers a part of the queries faster."""
    some = queries[:: max(len(queries) // 32, 1)][:32]
    taken: dict[str, tuple[float, Peer]] = {}
    for peer in peers:
        answered(peer, some, answers)
        seconds = _seconds(peer)
        if peer.name not in taken or seconds < taken[peer.name][0]:
            taken[peer.name] = seconds, peer
    return {name: peer for name, (_, peer) in taken.items()}


def answered(peer: Peer, queries: Sequence[Spec], answers: Mapping[str, pa.Table]) -> str:
    """How a peer answers queries, which it is given to be timed; its answers are compared."""
    how = peer.prepare({"queries": [query.plain() for query in queries]})
    check_same(peer.name, dict(peer.tables(peer.run())), answers, queries)
    return how


def _seconds(peer: Peer) -> float:
    """Seconds of the faster of two runs."""
    taken: list[float] = []
    for _ in range(2):
        begin = time.perf_counter()
        peer.run()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _lines(
    size: int, timings: Mapping[str, Timing], about: Mapping[str, str]
) -> list[tuple[str, ...]]:
    return [
        (
            f"{size}, {side}",
            timing.milliseconds,
            f"{timing.median * 1e3 / size:,.2f}",
            str(timing.over(timings[_OURS])),
            about[side],
        )
        for side, timing in timings.items()
    ]


def _checks(size: int, timings: Mapping[str, Timing]) -> list[Check]:
    ours = timings[_OURS]
    if size == 1:
        return [Check.of("one query against polars", 3.0, ours.over(timings["polars"]))]
    return [
        Check.of(f"{size} queries, {side} against ours", 10.0, timing.over(ours), least=True)
        for side, timing in timings.items()
        if side != _OURS
    ]
