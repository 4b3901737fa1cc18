"""Columns of values that several others are merged into at once, against one after the other."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import resolve
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.holistic.registers import reduce_codes
from muntin.aggregates.columns.holistic.rows import NO_WEIGHTS, Rows, gathered
from muntin.aggregates.columns.holistic.value_loops import count_ascending
from muntin.aggregates.columns.holistic.value_windows import Ranges
from muntin.aggregates.holistic.sketches import ApproxCountDistinct

KINDS = ("set", "runs", "pairs", "list", "list_nulls", "registers:7", "frequent:3")


def columns_of(kind, rng, texts):
    """Columns of few cells, with values that they share and values that they do not."""
    made = []
    for number in range(int(rng.integers(1, 6))):
        values = rng.zipf(1.3, 400) % (30 + 900 * (number % 2))
        array = pa.array([f"{v}" for v in values] if texts else values)
        part = Part(kind, (array.type,) * (2 if kind == "pairs" else 1))
        column = empty(part, 5)
        column.update(rng.integers(-1, 5, 400), (array,) * len(part.types), np.arange(400))
        made.append(column)
    return made


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_at_once_is_as_one_after_the_other(kind, texts):
    rng = np.random.default_rng(len(kind))
    for _ in range(4):
        others = columns_of(kind, rng, texts)
        cells = [rng.integers(-1, 7, 5) for _ in others]
        together, apart = empty(others[0].part, 7), empty(others[0].part, 7)
        for column in (together, apart):
            column.merge(np.arange(5), others[0])
        together.merge_all(cells, others)
        for places, other in zip(cells, others, strict=True):
            apart.merge(places, other)
        assert together.to_arrow().equals(apart.to_arrow())


@pytest.mark.parametrize("weighted", [False, True])
def test_ranges_in_any_order_become_cells(weighted):
    rng = np.random.default_rng(4)
    for _ in range(20):
        codes = rng.integers(-40, 40, (300, 1))
        weights = rng.integers(-2, 5, 300) if weighted else NO_WEIGHTS
        lows = rng.integers(0, 300, 40)
        highs = np.minimum(lows + rng.integers(0, 60, 40), 300)
        cells = rng.integers(-1, 8, 40)
        found = gathered(Rows(np.array([0, 300]), codes, weights), lows, highs, cells, 8)
        for cell in range(8):
            wanted = Counter()
            for low, high in zip(lows[cells == cell], highs[cells == cell], strict=True):
                for i in range(low, high):
                    wanted[codes[i, 0]] += weights[i] if weighted else 1
            own = slice(found.offsets[cell], found.offsets[cell + 1])
            assert found.codes[own, 0].tolist() == sorted(wanted)
            if weighted:
                assert found.weights[own].tolist() == [wanted[code] for code in sorted(wanted)]


@pytest.mark.parametrize("many", [3, 24, 25, 256, 257, 2000])
def test_hashes_become_registers_as_in_the_algebra(many):
    """Few, as many as are exact, one more and many, with repeats, in any order."""
    algebra = ApproxCountDistinct((pa.int64(),), (0.1,))
    rng = np.random.default_rng(many)
    different = rng.integers(0, 1 << 63, many)
    codes = rng.permutation(np.concatenate((different, rng.choice(different, many))))
    offsets, reduced = reduce_codes(np.array([0, 0, codes.size]), codes, algebra.bits)
    wanted = algebra.identity
    for code in codes.tolist():
        wanted = algebra.combine(wanted, (code,))
    assert offsets.tolist() == [0, 0, len(wanted)]
    assert tuple(reduced.tolist()) == wanted
    # What is reduced stays as it is, and takes more in.
    again = np.concatenate((reduced, codes[:7]))
    assert reduce_codes(np.array([0, again.size]), again, algebra.bits)[1].tolist() == [*wanted]


def test_windows_of_one_range_in_order_need_no_ranks():
    codes = np.array([1, 4, 9, 2, 3, 3, 8])
    offsets = np.array([0, 3, 3, 5, 7])
    lows, highs = np.array([0, 0, 1, 1, 2, 3, 1]), np.array([1, 2, 1, 3, 4, 4, 2])
    counts, leasts = count_ascending(Ranges.of(offsets), codes, lows, highs)
    # One cell; with an empty one; none; two of which one is empty; several; one in order; empty.
    assert counts.tolist() == [3, 3, 0, 2, -1, 2, 0]
    assert leasts[:2].tolist() == [1, 1]


@pytest.mark.parametrize("groups", [1, 40])
def test_predicates_that_nest_and_ones_that_do_not(groups):
    """Registers go on from one predicate to the next; answers are those of each by itself."""
    rng = np.random.default_rng(groups)
    rows = 20_000
    table = pa.table(
        {
            "ts": np.sort(rng.integers(0, 1000, rows)),
            "k": rng.integers(0, groups, rows),
            "v": rng.integers(0, 5000, rows),
            "vol": rng.integers(0, 100, rows),
        }
    )
    wheres = [f"vol >= {x}" for x in (0, 3, 10, 40, 90)] + [f"vol < {x}" for x in (5, 60)]
    wheres += ["vol BETWEEN 20 AND 30", "vol < 10 OR vol > 80", "vol = 7"]
    by = " GROUP BY k" if groups > 1 else ""
    queries = [
        f"CREATE QUERY q{number} AS SELECT approx_count_distinct(v, 0.1) AS n FROM t "
        f"[RANGE {100 + 10 * number} SLIDE 20] WHERE {where}{by}"
        for number, where in enumerate(wheres)
    ]
    together = muntin.aggregate(table, ";".join(queries), time="ts")
    for number, query in enumerate(queries):
        alone = muntin.aggregate(table, query, time="ts")
        assert together[f"q{number}"].equals(alone[f"q{number}"]), wheres[number]
    assert resolve("approx_count_distinct", [pa.int64()], [0.1]).parts[0].kind == "registers:7"
