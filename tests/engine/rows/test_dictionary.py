"""Distinct values as small integers, whatever their type and wherever they lie."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine.rows.dictionary import encode

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "values",
    [
        [7],
        [3, 1, 3, 2, 1],
        [-5, 5, -5, 0],
        [10**12, 10**12 + 3, 10**12],
        [LEAST, MOST, LEAST],
        [LEAST, -1, LEAST + 1],
        [0, MOST, 0],
        [random.Random(1).getrandbits(63) for _ in range(500)] * 2,
        [random.Random(2).randrange(-200, 200) for _ in range(500)],
    ],
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", "UTC")], ids=str)
def test_whole_numbers_are_numbered_and_found_again(values: list[int], kind: pa.DataType) -> None:
    column = pa.array([0, *values, 0], pa.int64()).view(kind).slice(1, len(values))
    codes, distinct = encode(column)
    assert distinct.type == kind
    assert len(distinct) == len(set(values))
    assert distinct.take(pa.array(codes)).view(pa.int64()).to_pylist() == values
    assert sorted(set(codes.tolist())) == list(range(len(distinct)))


def test_numbers_that_lie_close_come_in_order() -> None:
    codes, distinct = encode(pa.array(np.array([9, 4, 9, 6])))
    assert (codes.tolist(), distinct.to_pylist()) == ([2, 0, 2, 1], [4, 6, 9])


def test_null_is_a_value_like_any_other() -> None:
    codes, distinct = encode(pa.array([5, None, 5, None]))
    assert distinct.take(pa.array(codes)).to_pylist() == [5, None, 5, None]
    assert len(distinct) == 2
    assert len(encode(pa.array([], pa.int64()))[0]) == 0
