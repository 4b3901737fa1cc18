"""Sums of products of two streams' columns: without pairs where nothing is rounded, or asked so."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.errors import QueryError

JOIN = "FROM a [RANGE 10 SLIDE 10] JOIN b [RANGE 10] ON a.k = b.k"


def _stream(kind: pa.DataType, *rows: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    types = [pa.int64(), pa.int64(), kind]
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], ["ts", "k", "x"])


def _answer(kind: pa.DataType, a: Any, b: Any, what: str, options: str = "") -> tuple[Any, Any]:
    sql = f"CREATE QUERY q {options} AS SELECT {what} AS v {JOIN}"
    data = {"a": _stream(kind, *a), "b": _stream(kind, *b)}
    results = muntin.aggregate(data, sql, time="ts")
    (final,) = results.row_plan.joined
    return final.way, results["q"]["v"].to_pylist()


def test_products_of_whole_numbers_need_no_pairs_and_are_exact() -> None:
    a = [(1, 1, 3), (2, 1, -(2**40)), (3, 2, 5), (4, 2, None), (5, 9, 7)]
    b = [(1, 1, 2**22), (2, 1, -1), (3, 2, -6), (4, None, 8)]
    expected = sum(x * y for _, k, x in a for _, j, y in b if k == j and None not in (x, y))
    assert _answer(pa.int64(), a, b, "sum(a.x * b.x)") == ("sides", [expected])
    average = expected / 5
    assert _answer(pa.int64(), a, b, "avg(a.x * b.x)") == ("sides", [average])
    assert _answer(pa.int64(), a, b, "sum((a.x + 1) * b.x)")[0] == "sides"
    # Three factors could be too large on the way.
    assert _answer(pa.int64(), a, b, "sum(a.x * b.x * b.k)")[0] == "pairs"
    assert _answer(pa.int64(), a, b, "sum(a.x + b.x)")[0] == "pairs"


@pytest.mark.parametrize(
    ("kind", "x", "y", "fits"),
    [
        (pa.int32(), 2**16, 2**15 - 1, True),
        (pa.int32(), 2**16, 2**15, False),
        (pa.int32(), -(2**16), 2**15, True),
        (pa.int64(), 2**32, -(2**31), True),
        (pa.int64(), 2**32, 2**31, False),
        (pa.int64(), 3037000500, 3037000499, True),
        (pa.int64(), 3037000500, 3037000500, False),
    ],
)
def test_a_product_that_does_not_fit_its_type_has_no_sum(
    kind: pa.DataType, x: int, y: int, fits: bool
) -> None:
    data = {"a": _stream(kind, (1, 1, x), (2, 1, 0)), "b": _stream(kind, (1, 1, y), (2, 1, 0))}
    results = muntin.aggregate(data, f"SELECT sum(a.x * b.x) AS v {JOIN}", time="ts")
    assert results["q1"]["v"].to_pylist() == [x * y if fits else None]
    assert results.errors.get("q1", 0) == (0 if fits else 1)


def test_doubles_are_multiplied_pair_by_pair_unless_told_otherwise() -> None:
    rng = random.Random(0)
    a = [(t, rng.randrange(3), rng.choice((rng.random(), None, -1e9))) for t in range(9)]
    b = [(t, rng.randrange(3), rng.uniform(-1e3, 1)) for t in range(9)]
    products = [x * y for _, k, x in a for _, j, y in b if k == j and x is not None]
    way, exact = _answer(pa.float64(), a, b, "sum(a.x * b.x)")
    assert (way, exact) == ("pairs", [math.fsum(products)])
    way, (found,) = _answer(pa.float64(), a, b, "sum(a.x * b.x)", "WITH (approximate = true)")
    assert way == "sides"
    # Every product is off by half a unit in its last place at the most.
    assert abs(found - exact[0]) <= 2.0**-52 * math.fsum(map(abs, products))
    b[0] = (0, a[0][1], math.inf)
    assert math.isnan(
        _answer(pa.float64(), [(0, a[0][1], 1.0)], b, "sum(a.x * b.x)",
                "WITH (approximate = true)")[1][0]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (pa.decimal128(10, 2), pa.float64(), "sum(a.x * b.x) multiplies values of type decimal"),
        (pa.float64(), pa.decimal128(10, 2), "sum(a.x * b.x) multiplies values of type decimal"),
        (pa.float32(), pa.float32(), "sum(a.x * b.x) multiplies values of type float"),
    ],
)
def test_products_that_sums_do_not_tell_are_made_pair_by_pair(
    one: pa.DataType, other: pa.DataType, why: str
) -> None:
    rows = [(1, 1, 0.1), (2, 1, 2.5)]
    given = [[(t, k, Decimal(str(x)) if pa.types.is_decimal(kind) else x) for t, k, x in rows]
             for kind in (one, other)]  # fmt: skip
    data = {"a": _stream(one, *given[0]), "b": _stream(other, *given[1])}
    sql = f"SELECT sum(a.x * b.x) AS v {JOIN}"
    found = muntin.aggregate(data, sql, time="ts", approximate=True)
    exact = muntin.aggregate(data, sql, time="ts")
    assert found["q1"].equals(exact["q1"])
    assert found["q1"]["v"][0].as_py() == pytest.approx(2.6 * 2.6)
    assert why in found.row_plan.joined[0].why


def test_nan_without_a_product_leaves_a_sum_alone() -> None:
    a = [(1, 1, math.nan), (2, 2, 3.0), (3, 3, math.inf)]
    b = [(1, 1, None), (2, 2, 0.5)]
    for join in (JOIN, JOIN.replace("JOIN", "LEFT JOIN")):
        data = {"a": _stream(pa.float64(), *a), "b": _stream(pa.float64(), *b)}
        sql = f"SELECT sum(a.x * b.x) AS v, avg(a.x * b.x) AS w {join}"
        results = muntin.aggregate(data, sql, time="ts", approximate=True)
        assert results.row_plan.joined[0].way == "sides"
        assert results["q1"].select(["v", "w"]).to_pylist() == [{"v": 1.5, "w": 1.5}]


def test_approximate_for_all_queries_of_a_call() -> None:
    data = {name: _stream(pa.float64(), (1, 1, 0.1), (2, 1, 0.2)) for name in "ab"}
    both = [f"SELECT sum(a.x * b.x) AS v {JOIN}", "SELECT DISTINCT k FROM a [RANGE 5]"]
    for approximate, way in ((False, "pairs"), (True, "sides")):
        results = muntin.aggregate(data, both, time="ts", approximate=approximate)
        stream = muntin.stream(both, {name: each.schema for name, each in data.items()},
                               approximate=approximate)  # fmt: skip
        for plan in (results.row_plan, stream.row_plan()):
            assert [final.way for final in plan.joined] == [way]
        assert results["q2"].num_rows == 2


def test_approximate_is_for_aggregates() -> None:
    data = {name: _stream(pa.int64(), (1, 1, 1)) for name in "ab"}
    with pytest.raises(QueryError, match="approximate without an aggregate"):
        muntin.aggregate(
            data,
            "CREATE QUERY q WITH (approximate = true) AS SELECT a.x FROM a [RANGE 5] "
            "JOIN b [RANGE 5] ON a.k = b.k",
            time="ts",
        )
