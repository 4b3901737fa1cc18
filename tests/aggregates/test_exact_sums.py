"""Sums of doubles equal math.fsum bit for bit, in any order, split and window."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aggregates.cases import relaxed
from muntin.aggregates import resolve
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns import by_part
from muntin.aggregates.columns.sums import LOAD_LIMIT
from muntin.errors import DataError

DOUBLE = resolve("sum", [pa.float64()])
BIGINT = resolve("sum", [pa.int64()])
many = settings(relaxed, max_examples=200)


def bits(value: float) -> int:
    return int(np.float64(value).view(np.int64)) if not math.isnan(value) else -1


def double_sum(values, cuts=()):
    """The sum of one cell, fed in pieces, each merged from a column of its own."""
    total = by_part.empty(DOUBLE.parts[0], 1)
    for piece in np.split(np.array(values, np.float64), sorted(cuts)):
        part = by_part.empty(DOUBLE.parts[0], 1)
        part.update(np.zeros(len(piece), np.int64), (pa.array(piece),))
        total.merge(np.zeros(1, np.int64), part)
    return float(total.doubles()[0])


extremes = [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e16, 1.0, 2.0**-30, 1e-300]
doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(extremes + [-value for value in extremes]),
)


@many
@given(st.lists(doubles, max_size=30), st.lists(st.integers(0, 30), max_size=4), st.randoms())
@example([1e16, 1.0, 1.0, -1e16], [2], random.Random(0))
@example([1.7976931348623157e308, 9.9792015476736e291], [], random.Random(0))
@example([1.7976931348623157e308, 9.979201547673599e291], [], random.Random(0))
@example([2.0**-1074, 2.0**-1074], [1], random.Random(0))
@example([-0.0, -0.0], [], random.Random(0))
@example([1.0, 2.0**-53], [], random.Random(0))
@example([1.0, 2.0**-53, 2.0**-1074], [], random.Random(0))
@example([1.0 + 2.0**-52, 2.0**-53], [], random.Random(0))
def test_any_order_and_split_is_fsum(values, cuts, rng):
    try:
        wanted = math.fsum(values)
    except OverflowError:
        # fsum also refuses sums whose partial sums overflow; the algebra does not.
        wanted = DOUBLE.algebra.of(values) if values else 0.0
    cuts = [min(cut, len(values)) for cut in cuts]
    assert bits(double_sum(values, cuts)) == bits(wanted)
    assert bits(double_sum(values)) == bits(wanted)
    rng.shuffle(values)
    assert bits(double_sum(values, cuts)) == bits(wanted)


@many
@given(st.lists(st.floats(), max_size=8))
def test_special_values_follow_ieee(values):
    special = [value for value in values if not math.isfinite(value)]
    if special:
        assert bits(double_sum(values)) == bits(sum(special))


@many
@given(st.lists(st.floats(), min_size=1, max_size=40), st.integers(1, 40))
def test_what_left_the_window_leaves_no_trace(values, length):
    column = by_part.empty(DOUBLE.parts[0], len(values))
    column.update(np.arange(len(values)), (pa.array(values, pa.float64()),))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - length, 0)
    sums = column.slide(starts, ends).doubles()
    for start, end, found in zip(starts, ends, sums, strict=True):
        assert bits(found) == bits(DOUBLE.algebra.of(values[start:end]))


def test_numbers_of_all_sizes_in_random_cells():
    rng = np.random.default_rng(7)
    values = rng.normal(size=100_000) * 10.0 ** rng.integers(-200, 200, 100_000)
    cells = rng.integers(0, 50, len(values))
    column = by_part.empty(DOUBLE.parts[0], 50)
    column.update(cells, (pa.array(values),))
    wanted = [math.fsum(values[cells == cell]) for cell in range(50)]
    assert column.doubles().tolist() == wanted


def test_the_window_of_exponents_widens_on_demand():
    column = by_part.empty(DOUBLE.parts[0], 2)
    zeros = np.zeros(1, np.int64)
    widths = []
    for value in [1.0, 1.5, 2.0**40, 2.0**-40, 1e300, 5e-324, 0.0]:
        column.update(zeros, (pa.array([value]),))
        widths.append(column.limbs.shape[1])
    assert widths == sorted(widths)
    assert widths[0] == widths[1] == 3
    assert widths[-1] == widths[-2]
    assert column.doubles().tolist() == [1e300, 0.0]


def test_zeros_alone_need_no_limbs():
    column = by_part.empty(DOUBLE.parts[0], 1)
    column.update(np.zeros(3, np.int64), (pa.array([0.0, -0.0, 0.0]),))
    assert column.nbytes == 0
    assert column.doubles().tolist() == [0.0]


@pytest.mark.parametrize("value", [-1.7976931348623157e308, 5e-324, -3.0, 0.1])
def test_carries_are_settled_before_a_limb_overflows(value):
    """Doubling a sum 80 times passes 2**31 numbers a limb more than twice."""
    column = by_part.empty(DOUBLE.parts[0], 3)
    column.update(np.arange(3), (pa.array([value, -value, value]),))
    for _ in range(80):
        column.merge(np.arange(3), column.take(np.arange(3)))
        assert column.load <= LOAD_LIMIT
    grown = [DOUBLE.algebra.lift(x).total.units * 2**80 for x in (value, -value, value)]
    shift = 2176 - 1074
    assert [column.units(cell) for cell in range(3)] == [units << shift for units in grown]
    column.slide(np.array([0]), np.array([3]))
    assert column.slide(np.array([0, 0]), np.array([2, 3])).doubles()[0] == 0.0


def test_integers_pass_64_bits_and_come_back():
    column = by_part.empty(BIGINT.parts[0], 1)
    count = by_part.empty(BIGINT.parts[1], 1)
    largest = pa.array([2**63 - 1] * 3)
    cells = np.zeros(3, np.int64)
    column.update(cells, (largest,))
    count.update(cells, (largest,))
    values, errors = BIGINT.lower([column, count])
    assert (values.to_pylist(), errors.to_pylist()) == ([None], [True])
    column.update(cells, (pa.array([-(2**63), -(2**63), 2]),))
    values, errors = BIGINT.lower([column, count])
    assert (values.to_pylist(), errors) == ([2**63 - 1], None)


def test_a_load_near_its_limit_settles_first():
    column = by_part.empty(Part("sum", (pa.int64(),)), 2)
    column.update(np.array([0, 1]), (pa.array([2**63 - 1, -(2**63)]),))
    column.limbs[0, 0] += 2**62
    column.load = LOAD_LIMIT - 1
    column.update(np.array([0, 0]), (pa.array([1, 1]),))
    assert column.load == 3
    assert column.units(0) >> 2176 == 2**63 - 1 + 2**62 + 2
    assert column.units(1) >> 2176 == -(2**63)


def test_a_batch_beyond_the_limit_is_refused():
    column = by_part.empty(Part("sum", (pa.int64(),)), 1)
    with pytest.raises(DataError, match="rows in one batch"):
        column._reserve(2**31)


def test_float32_arguments_are_summed_as_doubles():
    narrow = resolve("sum", [pa.float32()])
    assert narrow.type == pa.float64()
    column = by_part.empty(narrow.parts[0], 1)
    values = pa.array([0.1, 0.2, 0.3], pa.float32())
    column.update(np.zeros(3, np.int64), (values,))
    assert column.doubles()[0] == math.fsum(values.to_pylist())
