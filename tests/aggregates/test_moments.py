"""Variances are the exact ones, rounded once."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates.cases import relaxed
from muntin.aggregates import resolve
from muntin.aggregates.columns import by_part


def variance_of(name, values, kind):
    resolved = resolve(name, [kind])
    cols = [by_part.empty(part, 1) for part in resolved.parts]
    for column in cols:
        column.update(np.zeros(len(values), np.int64), (pa.array(values, kind),))
    return resolved.lower(cols).values.to_pylist()[0]


def exact_variance(values, ddof):
    mean = Fraction(sum(map(Fraction, values)), len(values))
    return float(sum((Fraction(x) - mean) ** 2 for x in values) / (len(values) - ddof))


@settings(relaxed, max_examples=200)
@given(st.lists(st.floats(-1e150, 1e150), min_size=2, max_size=20), st.sampled_from([0, 1]))
def test_doubles(values, ddof):
    name = ("var_pop", "var_samp")[ddof]
    assert variance_of(name, values, pa.float64()) == exact_variance(values, ddof)


@settings(relaxed, max_examples=100)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=20))
def test_decimals(units):
    values = [Decimal(unit).scaleb(-7) for unit in units]
    found = variance_of("var_samp", values, pa.decimal128(20, 7))
    assert found == exact_variance(values, 1)


def test_nothing_cancels():
    values = [1e15 + offset for offset in (4.0, 7.0, 13.0, 16.0)]
    assert variance_of("var_samp", values, pa.float64()) == 30.0
    assert variance_of("stddev_pop", [0.1] * 10, pa.float64()) == 0.0


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_more_rows_than_the_kernel_divides_by(kind):
    resolved = resolve("var_pop", [kind])
    cols = [by_part.empty(part, 1) for part in resolved.parts]
    for column in cols:
        column.update(np.zeros(2, np.int64), (pa.array([1, 3], kind),))
        for _ in range(34):
            column.merge(np.zeros(1, np.int64), column.take(np.zeros(1, np.int64)))
    assert cols[2].counts[0] == 2**35
    assert resolved.lower(cols).values.to_pylist() == [1.0]
