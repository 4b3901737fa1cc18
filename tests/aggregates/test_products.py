"""Products and geometric means against exact fractions, logarithms against integers."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aggregates.cases import relaxed
from muntin.aggregates import resolve
from muntin.aggregates.columns import by_part
from muntin.aggregates.exact.logarithms import LN2, ln_ratio
from muntin.aggregates.products import exp2_units, log2_units

PRODUCT = resolve("product", [pa.float64()])
GEO_MEAN = resolve("geo_mean", [pa.float64()])
many = settings(relaxed, max_examples=200)
positive = st.floats(min_value=5e-324, allow_infinity=False)
plain = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0)


def log2_exact(x: float) -> int:
    """log2 of a positive double in units of 2**-96, by integer arithmetic alone."""
    numerator, denominator = x.as_integer_ratio()
    exponent = numerator.bit_length() - denominator.bit_length()
    if Fraction(x) < Fraction(2) ** exponent:
        exponent -= 1
    mantissa = Fraction(x) / Fraction(2) ** exponent
    return (exponent << 96) + (ln_ratio(mantissa.numerator, mantissa.denominator) << 96) // LN2


def nearest(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@many
@given(positive)
@example(1.0)
@example(0.9999999999999999)
@example(1.0000000000000002)
@example(5e-324)
@example(1.7976931348623157e308)
def test_logarithms_are_right_to_a_unit_of_the_grid(x):
    assert abs(log2_units(x) - log2_exact(x)) <= 1


@many
@given(plain)
def test_a_product_of_one_value_is_that_value(x):
    assert PRODUCT.algebra.of([x]) == x


@pytest.mark.parametrize("exponent", [-1074, -1022, -1, 0, 1, 1023])
def test_powers_of_two_are_exact(exponent):
    assert log2_units(math.ldexp(1.0, exponent)) == exponent << 96
    assert exp2_units(exponent << 96) == math.ldexp(1.0, exponent)


@many
@given(st.lists(st.integers(1, 1000).flatmap(lambda n: st.sampled_from([n, -n])), max_size=5))
def test_small_products_of_integers_are_exact(values):
    wanted = float(math.prod(values)) if values else None
    assert PRODUCT.algebra.of(values) == wanted


@many
@given(st.lists(plain, min_size=1, max_size=20))
@example([1e-200, 1e-120])
@example([1e-162, 3e-162])
@example([1e200, 1e200])
@example([3.0, 1 / 3])
@example([49.0, 1 / 49])
def test_products_are_within_one_unit_in_the_last_place(values):
    true = nearest(math.prod(map(Fraction, values)))
    found = PRODUCT.algebra.of(values)
    assert found == true or abs(found - true) <= math.ulp(true)
    assert math.copysign(1, found) == math.copysign(1, true) or found == 0


@many
@given(st.lists(positive, min_size=1, max_size=20))
def test_geometric_means_are_close_to_the_root(values):
    found = GEO_MEAN.algebra.of(values)
    wanted = math.fsum(map(math.log2, values)) / len(values)
    # A denormal has few bits: its logarithm is as far off as one of its units.
    unit = math.ulp(found) / found
    assert math.isclose(math.log2(found), wanted, rel_tol=1e-12, abs_tol=1e-12 + 2 * unit)
    assert min(values) <= found * (1 + 1e-15) + 5e-324
    assert max(values) >= found * (1 - 1e-15) - 5e-324


@pytest.mark.parametrize(
    ("values", "product", "geo_mean"),
    [
        ([2.0, 0.0], 0.0, 0.0),
        ([-2.0, 3.0], -6.0, math.nan),
        ([-2.0, 0.0], 0.0, math.nan),
        ([math.inf, 0.5], math.inf, math.inf),
        ([-math.inf, 0.5], -math.inf, math.nan),
        ([math.inf, 0.0], math.nan, math.nan),
        ([math.nan, 1.0], math.nan, math.nan),
        ([1e308, 1e308], math.inf, 1e308),
        ([5e-324, 0.25], 0.0, math.ldexp(1.0, -538)),
    ],
)
def test_values_without_a_logarithm(values, product, geo_mean):
    for resolved, wanted in ((PRODUCT, product), (GEO_MEAN, geo_mean)):
        cols = [by_part.empty(part, 1) for part in resolved.parts]
        for column in cols:
            column.update(np.zeros(2, np.int64), (pa.array(values),))
        (found,) = resolved.lower(cols).values.to_pylist()
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))


def test_a_mean_over_more_values_than_the_kernel_divides_by():
    cols = [by_part.empty(part, 1) for part in GEO_MEAN.parts]
    cols[0].update(np.zeros(2, np.int64), (pa.array([2.0, 2.0]),))
    for _ in range(40):
        cols[0].merge(np.zeros(1, np.int64), cols[0].take(np.zeros(1, np.int64)))
    cols[1].counts[0] = 2**41
    assert GEO_MEAN.lower(cols).values.to_pylist() == [2.0]
