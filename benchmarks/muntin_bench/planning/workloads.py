"""Sets of queries that are large or all different, as a program would write them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from muntin_bench.peers.questions import predicates

HOUR = 3_600_000_000
_AGGREGATES = ("sum(amount)", "avg(moved)", "max(vol)", "min(amount)", "count(*)", "sum(vol)")
_COLUMNS = {"vol": 100_000, "amount": 100_000, "moved": 1}


def rows(size: int) -> pa.Table:
    """Synthetic trades of one hour, with the columns that the workloads ask about."""
    draws = np.random.default_rng(8)
    times = np.sort(draws.integers(0, HOUR, size))
    indexes = {name: draws.random(size) < 0.4 for name in ("r1000", "r2000", "r3000")}
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "symbol": pa.array(np.array(["A", "B", "C", "D"])[draws.integers(0, 4, size)]),
            "vol": draws.integers(0, 100_000, size),
            "amount": draws.random(size) * 100_000,
            "moved": draws.random(size),
            **indexes,
        }
    )


def thresholds(size: int) -> str:
    """Queries that differ in window and constant.

    >>> print(thresholds(1))
    CREATE QUERY q0 AS SELECT sum(amount) AS total FROM events \
[RANGE '668 seconds' SLIDE '591 seconds'] WHERE vol > 0
    """
    draws = random.Random(1)
    return ";\n".join(
        f"CREATE QUERY q{number} AS SELECT sum(amount) AS total FROM events "
        f"{_window(draws.randint(600, 900), draws.randint(300, 600))} WHERE vol > {number}"
        for number in range(size)
    )


def combinations(size: int) -> str:
    """Queries that differ in all but their stream: aggregates, groups, windows and conditions."""
    draws = random.Random(2)
    windows = [_window(draws.randint(10, 60) * 60, draws.randint(1, 10) * 60) for _ in range(100)]
    return ";\n".join(
        f"CREATE QUERY q{number} AS {_combination(draws, draws.choice(windows))}"
        for number in range(size)
    )


def windows(size: int) -> str:
    """Queries of which no two have the same window."""
    return ";\n".join(
        f"CREATE QUERY q{number} AS SELECT sum(vol) AS total FROM events {window}"
        for number, window in zip(range(size), _different(), strict=False)
    )


def alternatives(size: int) -> str:
    """One query whose condition is many comparisons with OR between them."""
    condition = " OR ".join(f"vol = {7 * number}" for number in range(size))
    return f"CREATE QUERY q AS SELECT sum(amount) AS total FROM events {_window(600, 60)} WHERE {condition}"  # noqa: E501


def unlike(size: int) -> str:
    """The queries with different predicates that `muntin bench peers` asks."""
    return ";\n".join(query.sql for query in predicates(size))


def _window(seconds: int, slide: int) -> str:
    return f"[RANGE '{seconds} seconds' SLIDE '{slide} seconds']"


def _different() -> Iterator[str]:
    draws = random.Random(3)
    seen: set[tuple[int, int]] = set()
    for _ in count():
        window = draws.randint(60, 3600), draws.randint(10, 600)
        if window not in seen:
            seen.add(window)
            yield _window(*window)


def _combination(draws: random.Random, window: str) -> str:
    chosen = draws.sample(_AGGREGATES, draws.randint(1, 3))
    shown = [f"{call} AS a{place}" for place, call in enumerate(chosen)]
    group = draws.choice(("", "symbol"))
    compared = []
    for _ in range(draws.randint(1, 3)):
        column = draws.choice(tuple(_COLUMNS))
        constant = round(draws.random() * _COLUMNS[column], 3)
        compared.append(f"{column} {draws.choice(('<', '<=', '>', '>='))} {constant}")
    condition = draws.choice((" AND ", " OR ")).join(compared)
    select = ", ".join([group, *shown] if group else shown)
    by = f" GROUP BY {group}" if group else ""
    return f"SELECT {select} FROM events {window} WHERE {condition}{by}"
