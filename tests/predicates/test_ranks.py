"""Compiled ranks against counting cuts one by one."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions import bind_text
from muntin.predicates import Ranked
from muntin.predicates.order import Code, double_code, double_of, order_of
from muntin.predicates.ranks import ranker
from muntin.predicates.ranks.numbers import Buckets, LookUp

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-300, 300)


def check(kind: pa.DataType, cuts: list[Code], values: list[object]) -> None:
    cuts = sorted(set(cuts))
    array = pa.array(values, kind)
    order = order_of(kind)
    plain = values
    if pa.types.is_decimal(kind):
        plain = [int(Context(prec=76).scaleb(value, kind.scale)) for value in values]
    expected = [bisect_right(cuts, order.code(value)) for value in plain]
    assert ranker(kind, cuts)(array).tolist() == expected
    assert ranker(kind, cuts)(array[3:]).tolist() == expected[3:]


@given(st.lists(INT64 | SMALL, min_size=1, max_size=50), st.lists(INT64 | SMALL))
def test_integers(cuts: list[int], values: list[int]) -> None:
    cuts = [cut for cut in cuts if cut > -(2**63)] or [0]
    check(pa.int64(), cuts, [*values, *cuts, *(cut - 1 for cut in cuts)])


@given(st.lists(SMALL, min_size=1), st.lists(st.integers(-(2**31), 2**31 - 1) | SMALL))
def test_small_ranges_of_integers(cuts: list[int], values: list[int]) -> None:
    assert isinstance(ranker(pa.int32(), sorted(cuts)), LookUp)
    check(pa.int32(), cuts, values)


@given(st.lists(st.floats(), min_size=1, max_size=50), st.lists(st.floats()))
def test_doubles(cuts: list[float], values: list[float]) -> None:
    codes = [double_code(cut) for cut in cuts]
    check(pa.float64(), codes, [*values, *cuts, *map(double_of, (code - 1 for code in codes))][:99])


@given(st.lists(st.floats(width=32), min_size=1), st.lists(st.floats(width=32)))
def test_floats(cuts: list[float], values: list[float]) -> None:
    check(pa.float32(), [double_code(cut) for cut in cuts], values)


@pytest.mark.parametrize("digits", [9, 18, 30, 38])
@given(data=st.data())
def test_decimals(digits: int, data: st.DataObject) -> None:
    unscaled = st.integers(1 - 10**digits, 10**digits - 1) | SMALL
    cuts = data.draw(st.lists(unscaled, min_size=1))
    values = data.draw(st.lists(unscaled))
    kind = pa.decimal128(digits, 2)
    check(kind, cuts, [Decimal((value < 0, _digits(value), -2)) for value in [*cuts, *values]])


def _digits(value: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(value))))


TEXTS = (
    st.text(max_size=12)
    | st.text("ab\0", max_size=10)
    | st.just("12345678").flatmap(
        lambda head: st.text("ab\0", max_size=3).map(lambda tail: head + tail)
    )
)


@given(st.lists(TEXTS, min_size=1, max_size=40), st.lists(TEXTS))
def test_strings(cuts: list[str], values: list[str]) -> None:
    codes: list[Code] = [cut.encode() for cut in cuts]
    codes = [code for code in codes if code] or [b"a"]
    check(pa.string(), codes, [*values, *cuts])
    expected = ranker(pa.string(), sorted(set(codes)))(pa.array([*values, *cuts], pa.string()))
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        array = pa.array([*values, *cuts], pa.string()).cast(kind)
        np.testing.assert_array_equal(ranker(pa.string(), sorted(set(codes)))(array), expected)


def test_cuts_close_together_far_apart() -> None:
    cuts = [*range(1000), *range(2**62, 2**62 + 3000), 2**63 - 1]
    values = [0, 1, 999, 1000, 2**61, 2**62 - 1, 2**62, 2**62 + 1500, 2**62 + 5000, 2**63 - 1]
    assert isinstance(ranker(pa.int64(), cuts), Buckets)
    check(pa.int64(), list(cuts), list(values))


def test_null_and_failed_values_have_ranks() -> None:
    ratio = bind_text("a / b", pa.schema([("a", pa.float64()), ("b", pa.float64())]))
    dimension = Ranked(ratio, (double_code(1.0),), can_fail=True)
    values = pa.array([0.5, 1.0, None, None])
    errors = pa.array([False, False, False, True])
    assert dimension.ranks(values, errors).tolist() == [0, 1, 2, 3]
    flags = Ranked(ratio, (), can_fail=True)
    assert flags.ranks(values, errors).tolist() == [0, 0, 1, 2]


KINDS = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.decimal128(9), pa.decimal128(38)]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_arrays(kind: pa.DataType) -> None:
    cuts: list[Code] = [b"a"] if kind == pa.string() else [1]
    assert ranker(kind, cuts)(pa.array([], kind)).tolist() == []
