"""What is computed from the rows themselves equals a row-by-row computation."""

from __future__ import annotations

import math

from muntin_bench.sharing.data import hour
from muntin_bench.sharing.rows import columns_of, fragments, satisfied, sums
from muntin_bench.sharing.workloads import Workload, workload

MARKET = hour(1500, symbols=30)
COLUMNS = columns_of(MARKET)


def rows() -> list[dict[str, object]]:
    close = {row["symbol"]: row["cp"] for row in MARKET.close.to_pylist()}
    index = {row["symbol"]: row for row in MARKET.index.to_pylist()}
    found = []
    for row, ts in zip(MARKET.trades.to_pylist(), COLUMNS["ts"].tolist(), strict=True):
        cp = close[row["symbol"]]
        found.append(
            {
                **index[row["symbol"]],
                "ts": ts,
                "vol": row["vol"],
                "value": row["price"] * row["vol"],
                "change": abs(row["price"] - cp) / cp,
            }
        )
    return found


def signature(row: dict[str, object], work: Workload) -> tuple[bool, ...]:
    bits = []
    for query in work.queries:
        p = query.predicate
        assert p is not None
        value = row[p.quantity]
        bits.append(
            row[p.index] is p.member and (value > p.constant if p.greater else value < p.constant)
        )
    return tuple(bits)


def test_satisfied_predicates_and_fragments() -> None:
    work = workload("C low sharing", 64)
    signatures = [signature(row, work) for row in rows()]
    assert satisfied(work, COLUMNS) == sum(map(sum, signatures))
    periods: dict[int, set[tuple[bool, ...]]] = {}
    for row, bits in zip(rows(), signatures, strict=True):
        if any(bits):
            periods.setdefault(row["ts"] // 600_000_000, set()).add(bits)
    expected = [len(found) for _, found in sorted(periods.items())]
    assert len(expected) == 6
    assert fragments(work, COLUMNS) == (expected, len(set.union(*periods.values())))


def test_queries_without_a_predicate_take_every_row() -> None:
    assert satisfied(workload("A", 5), COLUMNS) == 5 * 1500


def test_sums_of_windows() -> None:
    work = workload("C low sharing", 16)
    for number, query in enumerate(work.queries):
        windows: dict[int, list[float]] = {}
        for row in rows():
            if signature(row, work)[number]:
                step = query.slide * 1_000_000
                end = (row["ts"] // step + 1) * step
                while end - query.range * 1_000_000 <= row["ts"]:
                    windows.setdefault(end - query.range * 1_000_000, []).append(row["value"])
                    end += step
        starts, values = sums(query, COLUMNS)
        assert starts == sorted(windows)
        assert values == [math.fsum(windows[start]) for start in starts]


def test_a_predicate_that_no_row_satisfies_has_no_windows() -> None:
    query = workload("B", 1).queries[0]
    none = {name: column[:0] for name, column in COLUMNS.items()}
    assert sums(query, none) == ([], [])
