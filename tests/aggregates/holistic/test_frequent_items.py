"""FREQUENT: lists of panes, their bounds against exact counts, and the thesis's Figure 6.3."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import resolve
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic.frequent import FrequentColumn
from muntin.errors import QueryError


def panes_of(cuts, times, values, tracked):
    """Lower bounds, credit and slack of a window's values, pane by pane."""
    lows, credit, slack = Counter(), Counter(), 0
    for begin, end in itertools.pairwise(cuts):
        counts = Counter(v for t, v in zip(times, values, strict=True) if begin <= t < end)
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        own = best[tracked][1] if len(best) > tracked else 0
        slack += own
        for value, count in best[:tracked]:
            lows[value] += count
            credit[value] += own
    found = [(value, low, low + slack - credit[value]) for value, low in lows.items()]
    return sorted(found, key=lambda item: (-item[1], item[0])), slack


def draw(seed, rows=500):
    rng = np.random.default_rng(seed)
    values = rng.zipf(1.3, rows) % 30
    kept = rng.random(rows) < 0.4
    for i in range(1, rows):
        values[i] = values[i - 1] if kept[i] else values[i]
    texts = pa.array([f"a{v}" for v in values])
    return pa.table(
        {"ts": np.sort(rng.integers(0, 200, rows)), "v": values, "s": texts,
         "g": rng.integers(0, 2, rows)}
    )  # fmt: skip


TOP = "SELECT g, approx_top_k(s, 3, 4) AS t, approx_frequent(v, 0.1, 4) AS f FROM t"
OTHERS = "SELECT sum(v) FROM t [RANGE 7 SLIDE 3]; SELECT count(*) FROM t [RANGE 11 SLIDE 2]"


def answers(table, sql, stream):
    if not stream:
        return muntin.aggregate(table, sql, time="ts").table("top")
    live = muntin.stream(sql, table.schema, time="ts")
    found = [live.feed(table.slice(at, 37)).get("top") for at in range(0, table.num_rows, 37)]
    found.append(live.close()["top"])
    return pa.concat_tables([each for each in found if each is not None])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("span", "slide"), [(40, 10), (35, 10)])
def test_lists_are_those_of_the_querys_own_panes(span, slide, stream):
    table = draw(span)
    own = f"CREATE QUERY top AS {TOP} [RANGE {span} SLIDE {slide}] WHERE v > 0 GROUP BY g"
    alone, among = answers(table, own, stream), answers(table, f"{OTHERS}; {own}", stream)
    # What other queries cut makes no difference to a bit.
    assert alone.equals(among)
    rows = [row for row in table.to_pylist() if row["v"] > 0]
    assert alone.num_rows > 20
    for row in alone.to_pylist():
        low, high = row["window_start"], row["window_end"]
        cuts = sorted({end - back for end in range(low - span, high + span + 1, slide)
                       for back in (0, span) if low <= end - back <= high} | {low, high}
                      | {high - slide * n for n in range(span // slide + 1)})  # fmt: skip
        held = [each for each in rows if each["g"] == row["g"] and low <= each["ts"] < high]
        times = [each["ts"] for each in held]
        items, _slack = panes_of(cuts, times, [each["s"] for each in held], 4)
        assert [tuple(item.values())[:3] for item in row["t"]] == items[:3]
        exact = Counter(each["s"] for each in held)
        best = sorted(exact.items(), key=lambda item: (-item[1], item[0]))[:3]
        for item in row["t"]:
            assert item["low"] <= exact[item["value"]] <= item["high"]
            if item["certain"]:
                assert exact[item["value"]] >= best[-1][1]
        if row["t_complete"]:
            assert {item["value"] for item in row["t"]} == {value for value, _ in best}
        counts = Counter(each["v"] for each in held)
        wanted = {value for value, n in counts.items() if 10 * n >= len(held)}
        certain = {item["value"] for item in row["f"] if item["certain"]}
        assert certain <= wanted
        if row["f_complete"]:
            assert wanted <= {item["value"] for item in row["f"]}


def test_our_own_example():
    """Three panes with lists of two values.

    pane 1  a a a b b c       lists a 3, b 2   slack 1
    pane 2  b b b a a d d     lists b 3, a 2   slack 2 (a and d are equally frequent)
    pane 3  c c c c d a       lists c 4, a 1   slack 1
    """
    times = [0] * 6 + [1] * 7 + [2] * 6
    table = pa.table({"ts": times, "x": list("aaabbcbbbaaddccccda")})
    sql = "SELECT approx_top_k(x, 2, 2) AS t, approx_frequent(x, 0.3, 2) AS f FROM s [RANGE 3 SLIDE 1]"  # noqa: E501
    row = next(
        row
        for row in muntin.aggregate(table, sql, time="ts")["q1"].to_pylist()
        if row["window_end"] == 3
    )
    assert row["t"] == [
        {"value": "a", "low": 6, "high": 6, "certain": False},
        {"value": "b", "low": 5, "high": 6, "certain": False},
    ]
    # c has 4 for certain and may have 7, so the two may be others; d may have 4.
    assert row["t_complete"] is False
    assert [(item["value"], item["low"], item["high"]) for item in row["f"]] == [
        ("a", 6, 6), ("b", 5, 6), ("c", 4, 7),
    ]  # fmt: skip
    assert [item["certain"] for item in row["f"]] == [True, False, False]
    assert row["f_complete"] is True


def traced(data, b, k):
    """What lists of k values of panes of b rows say of a trace."""
    panes = len(data) // b
    column = FrequentColumn.empty(Part(f"frequent:{k}", (pa.int64(),)), panes)
    column.update(np.arange(len(data)) // b, (pa.array(data),))
    column.seal()
    return column.slide(np.array([0]), np.array([panes]))


def test_the_shapes_of_figure_6_3():
    """A bursty Zipf trace over 1,647 addresses, in place of the thesis's trace of TCP packets."""
    rng = np.random.default_rng(1)
    chances = 1 / np.arange(1, 1648) ** 1.1
    data = rng.choice(1647, 100_000, p=chances / chances.sum())
    stay = rng.random(data.size) < 0.6
    last = np.maximum.accumulate(np.where(stay, 0, np.arange(data.size)))
    data = data[last]
    exact = np.bincount(data, minlength=1647)
    slack, errors = {}, {}
    for b in (20, 100, 500):
        for k in (1, 3, 5, 7, 10):
            whole = traced(data, b, k)
            codes, lows = whole.lows.rows.codes[:, 0], whole.lows.rows.weights
            slack[b, k] = int(whole.slack[0])
            over = codes[lows > slack[b, k]]
            # Never a value that is not as frequent as is said.
            assert (exact[over] > slack[b, k]).all()
            assert (lows <= exact[codes]).all()
            errors[b, k] = 1 - (lows[lows > slack[b, k]] / exact[over]).mean() if over.size else 1
    for b in (20, 100, 500):
        assert sorted((slack[b, k] for k in (1, 3, 5, 7, 10)), reverse=True) == [
            slack[b, k] for k in (1, 3, 5, 7, 10)
        ]
    # Lists that hold most of a short pane's values leave little out.
    for k in (1, 3, 5):
        assert slack[20, k] > slack[100, k] > slack[500, k]
    assert 0.02 < slack[100, 5] / data.size < 0.08
    assert 1 <= (exact > slack[100, 5]).sum() <= 6
    assert errors[20, 7] < 0.02


def test_lists_as_long_as_there_are_values_are_exact():
    algebra = resolve("approx_top_k", [pa.int64()], [2]).algebra
    exact = resolve("top_k", [pa.int64()], [2]).algebra
    rows = [3, 1, 3, None, 2, 2, 1, 1]
    assert [(item["value"], item["low"]) for item in algebra.of(rows)] == [
        (item["value"], item["count"]) for item in exact.of(rows)
    ]


def test_what_lists_cannot_do_is_refused():
    table = draw(1, 20)
    with pytest.raises(QueryError, match="ROWS windows have none"):
        muntin.aggregate(table, "SELECT approx_top_k(v, 2) FROM t [ROWS 9 SLIDE 3]", time="ts")
    with pytest.raises(QueryError, match="tracks from 5 to 10000 values, not 3"):
        muntin.aggregate(table, "SELECT approx_top_k(v, 5, 3) FROM t [RANGE 9 SLIDE 3]", time="ts")
    with pytest.raises(QueryError, match="daba does not keep lists of frequent values"):
        muntin.aggregate(
            table, "SELECT approx_top_k(v) FROM t [RANGE 9 SLIDE 3]", time="ts", technique="daba"
        )
