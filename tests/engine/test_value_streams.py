"""Aggregates over all values on streams: the same bits as over bounded data, whatever the cuts."""

from __future__ import annotations

import os
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.engine.slices.values import blocks

SEEDS = range(int(os.environ.get("MUNTIN_SEEDS", "3")))
CALLS = (
    "count(DISTINCT v)", "sum(DISTINCT p)", "avg(DISTINCT v)", "count(DISTINCT s)", "median(p)",
    "percentile(v, array(0.1, 0.9))", "percentile_disc(0.3) WITHIN GROUP (ORDER BY s)", "mode(s)",
    "top_k(v, 3)", "frequent(v, 0.05)", "collect_set(s)", "collect_list(s)", "max(p, 2)",
    "max_by(s, p, 2)", "approx_percentile(p, 0.9)", "approx_count_distinct(v)",
    "approx_top_k(s, 2, 5)", "approx_frequent(v, 0.1, 4) FILTER (WHERE g > 0)",
)  # fmt: skip
WINDOWS = (
    "[RANGE 30 SLIDE 5] GROUP BY g", "[RANGE 50 SLIDE 10] WHERE v > 3 GROUP BY g",
    "[RANGE 17 SLIDE 3] WHERE v > 1", "[RANGE 100 SLIDE 20]", "[RANGE 40 SLIDE 10] WHERE v < 30",
)  # fmt: skip


def text() -> str:
    """Every call over every window."""
    calls = ", ".join(f"{call} AS a{n}" for n, call in enumerate(CALLS))
    numbers = count()
    return ";\n".join(
        f"CREATE QUERY q{next(numbers)} AS SELECT {'g, ' * ('GROUP' in window)}{calls} "
        f"FROM t {window}"
        for window in WINDOWS
    )


def draw(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows with NULL, NaN, zeros of both signs, ties and many distinct texts."""
    prices = rng.normal(0, 3, rows).round(1)
    prices[rng.random(rows) < 0.05] = np.nan
    prices[rng.random(rows) < 0.05] = -0.0
    texts = rng.choice([f"k{n}" for n in range(40)], rows)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 300, rows)),
            "g": rng.integers(0, 3, rows),
            "v": rng.zipf(1.3, rows) % 50,
            "p": pa.array(prices, mask=rng.random(rows) < 0.05),
            "s": pa.array(texts, mask=rng.random(rows) < 0.1),
        }
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_answers_what_bounded_data_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Values of the first stream lie in files as soon as there are some.
    spilt: list[blocks.Block] = []
    if seed == 0:
        monkeypatch.setattr(blocks, "_MOST_HELD", 1 << 12)
        monkeypatch.setattr(blocks, "_LEAST_SPILLED", 1)
        plain = blocks.Block.spill
        monkeypatch.setattr(blocks.Block, "spill", lambda each: (spilt.append(each), plain(each)))
    rng = np.random.default_rng(seed)
    table, sql = draw(rng, 400), text()
    wanted = muntin.aggregate(table, sql, time="ts")
    # Rows come late by less than the lateness, in any batches, with restarts between them.
    shuffled = table.take(pa.array(np.argsort(np.array(table["ts"]) + 6 * rng.random(400))))
    stream = muntin.stream(sql, table.schema, time="ts", lateness=7)
    found: dict[str, list[pa.Table]] = {f"q{n}": [] for n in range(len(WINDOWS))}
    at, moved = 0, False
    while at < shuffled.num_rows:
        size = int(rng.integers(1, 24)) if at else 60
        for name, answers in stream.feed(shuffled.slice(at, size)).items():
            found[name].append(answers)
        at += size
        moved = moved or any(each.moving for each in stream._engine._state.stores)
        if rng.random() < 0.06:
            stream = muntin.stream(
                sql, table.schema, time="ts", lateness=7, snapshot=stream.snapshot()
            )
    assert moved
    assert bool(spilt) == (seed == 0)
    for name, answers in stream.close().items():
        found[name].append(answers)
    for name, tables in found.items():
        rows = sorted(map(repr, pa.concat_tables(tables).to_pylist()))
        assert rows == sorted(map(repr, wanted.table(name).to_pylist())), name


@pytest.mark.parametrize("calls", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_queries_that_count_values_and_that_name_them(calls: tuple[int, ...]) -> None:
    """They read the same sets over the same windows, and not in the same way."""
    shown = ("count(DISTINCT s)", "collect_set(s)", "sum(DISTINCT v)")
    sql = ";".join(
        f"CREATE QUERY q{n} AS SELECT {shown[call]} AS a FROM t [RANGE 30 SLIDE 5]"
        for n, call in enumerate(calls)
    )
    table = draw(np.random.default_rng(7), 300)
    wanted = muntin.aggregate(table, sql, time="ts")
    for options in ({}, {"technique": "panes"}):
        stream = muntin.stream(sql, table.schema, time="ts", **options)  # type: ignore[arg-type]
        parts = [stream.feed(table.slice(at, 40)) for at in range(0, 300, 40)]
        parts.append(stream.close())
        for name in wanted:
            found = pa.concat_tables([part.table(name) for part in parts if name in part])
            assert found == wanted.table(name), name


def test_marks_do_not_name_values() -> None:
    sql = "CREATE QUERY q WITH (technique = 'last_seen') AS SELECT {} AS a FROM t [RANGE 9 SLIDE 3]"
    assert muntin.stream(sql.format("count(DISTINCT s)"), {"ts": "int64", "s": "string"}, "ts")
    with pytest.raises(muntin.QueryError, match="does not name them"):
        muntin.stream(sql.format("collect_set(s)"), {"ts": "int64", "s": "string"}, "ts")
