"""Arithmetic on DOUBLE computed directly, against the general way, bit by bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.expressions import Evaluator, bind_text
from muntin.expressions.evaluation.direct import Direct, is_direct
from muntin.expressions.evaluation.program import Program

TEXTS = (
    "a + b",
    "b + a",
    "a - b",
    "a * n",
    "n * a",
    "a / b",
    "abs(a - b) / b",
    "-a * 2.5D + f",
    "(a + b) * (a + b) - a / 3.0D",
    "0.0D * a",
    "0.0D + i / a",
)


def _numbers(random: np.random.Generator, rows: int) -> pa.Table:
    special = np.array([-0.0, np.inf, -np.inf, np.nan, 5e-324, 1.5e308, 1.0])
    doubles = [
        np.where(random.random(rows) < 0.3, random.choice(special, rows), random.normal(size=rows))
        for _ in range(2)
    ]
    # No divisor is zero.
    doubles = [np.where(each == 0, 7.0, each) for each in doubles]
    columns = {
        "a": pa.array(doubles[0]),
        "b": pa.array(doubles[1]),
        "n": pa.array(random.integers(-(2**63), 2**63, rows)),
        "i": pa.array(random.integers(0, 9, rows).astype(np.int8)),
        "f": pa.array(random.normal(size=rows).astype(np.float32)),
    }
    return pa.table(columns)


def _bits(values: pa.Array) -> list[int]:
    # A NaN has no sign that SQL could show.
    found = values.to_numpy(zero_copy_only=False)
    bits: list[int] = np.where(np.isnan(found), np.nan, found).view(np.int64).tolist()
    return bits


@pytest.mark.parametrize("rows", [1, 1000, 40_000])
def test_equals_the_general_way(rows: int) -> None:
    table = _numbers(np.random.default_rng(rows), rows).slice(rows // 3)
    bounds = [bind_text(text, table.schema) for text in TEXTS]
    assert all(is_direct(bound) for bound in bounds)
    direct = Direct(bounds).run(table)
    assert direct is not None
    for text, ours, theirs in zip(TEXTS, direct, Program(bounds).run(table), strict=True):
        assert ours.errors is None
        assert theirs.errors is None
        assert _bits(ours.values) == _bits(theirs.values), text
    # The input is as it was.
    assert _bits(table["a"].combine_chunks()) == _bits(
        _numbers(np.random.default_rng(rows), rows)["a"].slice(rows // 3).combine_chunks()
    )


def test_null_and_division_by_zero_take_the_general_way() -> None:
    table = pa.table({"a": [1.0, None, 3.0], "b": [2.0, 2.0, 0.0]})
    bounds = [bind_text(text, table.schema) for text in ("a + b", "b / 2.0D", "b / b")]
    assert Direct(bounds[:1]).run(table) is None
    assert Direct(bounds[1:2]).run(table) is not None
    assert Direct(bounds[2:]).run(table) is None
    total, half, ratio = Evaluator(bounds)(table)
    assert total.values.to_pylist() == [3.0, None, 3.0]
    assert half.values.to_pylist() == [1.0, 1.0, 0.0]
    assert ratio.values.to_pylist() == [1.0, 1.0, None]
    assert ratio.errors is not None
    assert ratio.errors.to_pylist() == [False, False, True]


def test_batches_that_differ_are_told_apart() -> None:
    evaluate = Evaluator([bind_text("a / b", pa.schema([("a", pa.float64()), ("b", pa.int64())]))])
    for divisors, expected in (([2, 4], [0.5, 0.25]), ([2, 0], [0.5, None]), ([1, 2], [1.0, 0.5])):
        [ratio] = evaluate(pa.table({"a": [1.0, 1.0], "b": divisors}))
        assert ratio.values.to_pylist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a > b",
        "n + n",
        "n / NULL",
        "CAST(NULL AS DOUBLE) + a",
        "sqrt(a) + b",
        "f + f",
        "1 / 2",
    ],
)
def test_all_else_is_left_to_polars(text: str) -> None:
    assert not is_direct(bind_text(text, _numbers(np.random.default_rng(0), 1).schema))


def test_long_expressions_are_left_to_polars() -> None:
    schema = pa.schema([("a", pa.float64())])
    assert is_direct(bind_text(" + ".join(["a"] * 30), schema))
    assert not is_direct(bind_text(" + ".join(["a"] * 50), schema))
