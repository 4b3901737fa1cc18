"""The analysis in "On-the-Fly Sharing for Streamed Aggregation", borne out by counts.

One row per tick, so that every slice holds rows. Costs are those of a period in the middle of the
stream, where every window is full.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.planner import build_plan
from muntin.queries import queries

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})


def rows(low: int, high: int) -> pa.Table:
    times = np.arange(low, high)
    return pa.table({"t": times, "v": times % 16})


def costs(
    asked: list[str], period: int, strategy: str = "slices", slicing: str = "pairs"
) -> tuple[int, int]:
    """Partial and final aggregations in one period."""
    sql = ";".join(f"SELECT sum(v) AS s FROM stream {each}" for each in asked)
    plan = build_plan(queries(sql), SCHEMA, "t", strategy=strategy, slicing=slicing)
    engine = LocalEngine(plan, 0)
    # Longer than any range, and a whole number of periods.
    begin = -(-200 // period) * period
    engine.feed(rows(0, begin))
    engine.advance(begin)
    before = engine.progress()
    engine.feed(rows(begin, begin + period))
    engine.advance(begin + period)
    after = engine.progress()
    return (
        after.partial_aggregations - before.partial_aggregations,
        after.final_aggregations
        + after.cell_aggregations
        - (before.final_aggregations + before.cell_aggregations),
    )


def window(spread: int, slide: int) -> str:
    return f"[RANGE {spread} SLIDE {slide}]"


# Worst cases for pairs, where the slide does not divide the range.
UNEVEN = [(18, 15), (12, 9), (13, 5), (22, 15), (28, 15), (14, 4), (35, 10)]


@pytest.mark.parametrize(("spread", "slide"), UNEVEN)
def test_table_2_panes_and_pairs(spread: int, slide: int) -> None:
    pane = math.gcd(spread, slide)
    assert costs([window(spread, slide)], slide, slicing="panes") == (slide, spread // pane)
    partial, final = costs([window(spread, slide)], slide)
    assert partial == slide
    # The paper's ⌈2r/s⌉ rounds up; it is one too many where r mod s exceeds half a slide.
    exceeds = 2 * (spread % slide) > slide
    assert final == math.ceil(2 * spread / slide) - exceeds
    assert final <= spread // pane


@pytest.mark.parametrize(("spread", "slide"), [(20, 10), (45, 15)])
def test_table_2_a_slide_that_divides_the_range(spread: int, slide: int) -> None:
    for slicing in ("panes", "pairs"):
        assert costs([window(spread, slide)], slide, slicing=slicing) == (slide, spread // slide)


def edges(windows: list[tuple[int, int]], low: int, high: int) -> list[int]:
    """Where paired windows begin and end."""
    return sorted(
        {t for t in range(low, high) for r, s in windows if t % s == 0 or (t + r) % s == 0}
    )


def test_section_3_2_the_common_sliced_window() -> None:
    #  U(12, 3) and V(6, 3) over 45; the vector printed in the paper adds up to 51
    found = edges([(18, 15), (12, 9)], 0, 46)
    assert [b - a for a, b in pairwise(found)] == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]


@pytest.mark.parametrize(
    "windows", [[(18, 15), (12, 9)], [(13, 5), (14, 4), (9, 2)], [(20, 10), (30, 15), (12, 6)]]
)
def test_table_3_shared_and_unshared_slices(windows: list[tuple[int, int]]) -> None:
    period = math.lcm(*(slide for _, slide in windows))
    asked = [window(*each) for each in windows]
    n = len(windows)
    alone = sum(period // s * (2 * (r // s) + 1 if r % s else r // s) for r, s in windows)
    bound = sum(period // s * math.ceil(2 * r / s) for r, s in windows)
    assert costs(asked, period, "unshared") == (n * period, alone)
    assert alone <= bound

    partial, final = costs(asked, period)
    assert partial == period
    # A window combines the slices between its bounds; the paper gives E r/s for each query, which
    # holds on average: a slice is covered by ⌊r/s⌋ or ⌈r/s⌉ windows.
    cut = edges(windows, -200, period + 1)
    covered = [
        sum(end - r <= edge < end for edge in cut)
        for r, s in windows
        for end in range(s, period + 1, s)
    ]
    assert final == sum(covered)
    slices = sum(0 <= edge < period for edge in cut)
    least, most = (
        sum(slices * rounded(r / s) for r, s in windows) for rounded in (math.floor, math.ceil)
    )
    assert least <= final <= most
    if all(r % s == 0 for r, s in windows):
        assert final == sum(slices * r // s for r, s in windows)
    assert final >= alone


def test_theorem_1_pairs_need_no_more_slices_than_panes() -> None:
    windows = [window(*each) for each in UNEVEN[:4]]
    (paired_rows, paired), (paned_rows, paned) = (
        costs(windows, 45, slicing=slicing) for slicing in ("pairs", "panes")
    )
    assert paired_rows == paned_rows == 45
    assert paired < paned


def test_table_5_fragments() -> None:
    #  v goes from 0 to 15; q0 wants all, the others overlap
    conditions = ["v >= 0", "v > 3", "v > 7", "v < 9", "v % 2 = 0", "v BETWEEN 5 AND 11"]
    tuples = 48
    asked = [f"[RANGE {tuples} SLIDE {tuples}] WHERE {each}" for each in conditions]
    values = [v % 16 for v in range(tuples)]
    signatures = [
        (True, v > 3, v > 7, v < 9, v % 2 == 0, 5 <= v <= 11)
        for v in values
    ]  # fmt: skip
    alpha_t = sum(map(sum, signatures))
    k_beta = sum(map(sum, set(signatures)))
    # A tumbling window is one slice: what is aggregated alone is final.
    assert costs(asked, tuples, "unshared") == (alpha_t, 0)
    assert costs(asked, tuples, "fragments") == (tuples, k_beta)
    assert len(set(signatures)) < tuples
    # Where a window is one slice, shards are fragments.
    assert costs(asked, tuples, "shards") == (tuples, k_beta)


def test_cells_answer_every_constant_off_running_totals() -> None:
    asked = [f"[RANGE 48 SLIDE 48] WHERE v > {n}" for n in range(15)]
    partial, final = costs(asked, 48, "cells")
    _, fragments = costs(asked, 48, "fragments")
    assert partial == 45  # three of the rows have v = 0, which no query wants
    # Fifteen cells: a step for each, two reads for each predicate; then a window of each again.
    assert final == (15 + 2 * 15) + (15 + 2 * 15)
    assert fragments == sum(range(1, 16))
