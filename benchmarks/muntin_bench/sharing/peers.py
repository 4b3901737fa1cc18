"""DuckDB and polars on all cores beside the shared engine on one: the same queries and answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from muntin_bench.measure import Timing, measure
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.data import Market, hour, week
from muntin_bench.sharing.duckdb_peer import DuckDBPeer
from muntin_bench.sharing.engine import Prepared, prepare
from muntin_bench.sharing.polars_peer import PolarsPeer
from muntin_bench.sharing.process import OneCore
from muntin_bench.sharing.workloads import SharedQuery, Workload, workload

Peer = DuckDBPeer | PolarsPeer
_OURS = "muntin, one core"
# Peers round at every addition; this is far above what that can add up to here.
_CLOSE = 1e-8
# Ways that take more times as long as the fastest are not tried further.
_NEAR = 2.0


def market(rows: int | None) -> Market:
    """The week of trades, or a synthetic hour of so many rows."""
    return week() if rows is None else hour(rows, symbols=50)


def asked(size: int) -> Workload:
    """`C regular` with so many queries; a single one is the first of sixteen."""
    if size > 1:
        return workload("C regular", size)
    return Workload("C regular", workload("C regular", 16).queries[:1])


@cache
def _prepared(rows: int | None, size: int) -> Prepared:
    return prepare(market(rows), asked(size))


def our_answers(rows: int | None, size: int) -> tuple[dict[str, pa.Table], float]:
    """Our results, and how long their plan took."""
    prepared = _prepared(rows, size)
    return prepared.run()[0], prepared.planning


def run_ours(rows: int | None, size: int) -> int:
    """Answer all queries on the plan that is there; returns the number of tables."""
    return len(_prepared(rows, size).run()[0])


def beside_peers(
    process: OneCore, rows: int | None, sizes: Sequence[int], repeats: int
) -> tuple[Section, list[Check]]:
    """Time both peers and ours in turn, for one query and for many."""
    trades = market(rows)
    peers: list[Peer] = [PolarsPeer(trades), DuckDBPeer(trades)]
    lines: list[tuple[str, ...]] = []
    checks: list[Check] = []
    timed: list[tuple[Timing, ...]] = []
    for size in sizes:
        step(f"beside DuckDB and polars, queries: {size}")
        queries = asked(size).queries
        answers, planning = process.call(our_answers, rows, size)
        ways = {peer.name: _best_way(peer, queries, answers) for peer in peers}
        sides: dict[str, Callable[[], Any]] = {
            _OURS: partial(process.call, run_ours, rows, size),
            **{
                peer.name: _compared_once(peer, queries, ways[peer.name], answers) for peer in peers
            },
        }
        timings = measure(sides, repeats=repeats)
        about = {_OURS: f"cells; planning took {planning * 1e3:,.0f} ms more"}
        about |= {peer.name: f"{ways[peer.name]}; {peer.threads} threads" for peer in peers}
        lines += _lines(size, timings, about)
        checks += _checks(size, timings)
        timed.append(tuple(replace(each, side=f"{size}, {side}") for side, each in timings.items()))
    title = f"C regular beside other engines: {trades.about}"
    columns = ("queries, engine", "ms (range)", "ms per query", "× ours (range)", "how")
    return Section(title, columns, tuple(lines), tuple(timed)), checks


def _best_way(peer: Peer, queries: Sequence[SharedQuery], answers: Mapping[str, pa.Table]) -> str:
    """The way that answers a part of the queries fastest, answers having been compared.

    Ways that come near the fastest on a few queries are tried on more: what is done once for all
    queries, such as the join, would hide how they differ.
    """
    few, more = (queries[:: max(len(queries) // count, 1)][:count] for count in (4, 32))
    for way in peer.ways:
        check_close(peer.answer(few, way), few, answers, f"{peer.name}, {way}")
    first = {way: _fastest(peer, few, way) for way in peer.ways}
    near = [way for way in peer.ways if first[way] <= _NEAR * min(first.values())]
    return min(near, key=lambda way: _fastest(peer, more, way))


def _fastest(peer: Peer, queries: Sequence[SharedQuery], way: str) -> float:
    """Seconds of the faster of two runs."""
    taken: list[float] = []
    for _ in range(2):
        begin = time.perf_counter()
        peer.answer(queries, way)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _compared_once(
    peer: Peer, queries: Sequence[SharedQuery], way: str, answers: Mapping[str, pa.Table]
) -> Callable[[], object]:
    """Answers all queries; the first time, which is not measured, answers are compared."""
    first = iter([True])

    def run() -> None:
        found = peer.answer(queries, way)
        if next(first, False):
            check_close(found, queries, answers, f"{peer.name}, {way}")

    return run


def check_close(
    found: Sequence[pa.Table],
    queries: Sequence[SharedQuery],
    answers: Mapping[str, pa.Table],
    about: str,
) -> None:
    """Refuse to time different answers: the same windows, and sums that differ by rounding only."""
    for query, theirs in zip(queries, found, strict=True):
        ours = answers[query.name]
        starts = ours.column("window_start").cast(pa.int64()).to_numpy()
        same = np.array_equal(starts, theirs.column("window_start").cast(pa.int64()).to_numpy())
        assert same, f"{about}: {query.name} has other windows: {theirs}, not {ours}"
        wanted, got = (table.column("value").to_numpy() for table in (ours, theirs))
        wrong = np.flatnonzero(~np.isclose(got, wanted, rtol=_CLOSE, atol=0))
        assert wrong.size == 0, (
            f"{about}: {query.name}, window {wrong[0]}: {got[wrong[0]]}, not {wanted[wrong[0]]}"
        )


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
