"""Moments of two numbers, and higher ones: nothing cancels, and answers are within 2 ulp."""

import math
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from aggregates.cases import answers, empty_columns, update_all
from muntin.aggregates import resolve
from muntin.testing.aggregates import compute

ONE = ["skewness", "kurtosis"]
TWO = ["covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"]
DRAWS = {
    "near": (pa.float64(), lambda rng: 1e9 + rng.randrange(4)),
    "wide": (pa.float64(), lambda rng: rng.choice([5e-324, 1e300, -1e-300, 0.0, -0.0, 1.0])),
    "unit": (pa.float64(), lambda rng: rng.uniform(-1, 1)),
    "single": (pa.float32(), lambda rng: float(np.float32(rng.gauss(0, 1)))),
    "small": (pa.int64(), lambda rng: rng.randrange(-3, 4)),
    "large": (pa.int64(), lambda rng: rng.choice([-(2**63), 2**63 - 1, rng.randrange(2**62)])),
    "unsigned": (pa.uint64(), lambda rng: rng.randrange(2**64)),
    "short": (pa.decimal128(10, 2), lambda rng: Decimal(rng.randrange(-999, 999)).scaleb(-2)),
    "long": (pa.decimal128(30, 4), lambda rng: Decimal(rng.randrange(-(10**25), 10**25))),
}


def ulps(found: float | None, exact: float | None) -> float:
    if found is None or exact is None or math.isnan(found) or math.isnan(exact):
        return 0.0 if str(found) == str(exact) else math.inf
    return 0.0 if found == exact else abs(found - exact) / math.ulp(exact)


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_answers_are_within_two_ulps_of_the_exact_ones(name: str) -> None:
    rng = random.Random(name)
    for _ in range(60):
        drawn = [rng.choice([*DRAWS.values()]) for _ in range(1 if name in ONE else 2)]
        resolved = resolve(name, [kind for kind, _ in drawn])
        size = rng.randrange(9)
        rows = [
            tuple(None if rng.random() < 0.1 else draw(rng) for _, draw in drawn)
            for _ in range(size)
        ]
        args = tuple(pa.array([row[i] for row in rows], kind) for i, (kind, _) in enumerate(drawn))
        columns = empty_columns(resolved, 1)
        update_all(columns, np.zeros(size, np.int64), args, None)
        ((found, _),) = answers(resolved, columns)
        assert ulps(found, compute(resolved, [(0, *row) for row in rows])) <= 2, rows


@pytest.mark.parametrize("name", TWO)
def test_nan_leaves_with_its_row(name: str) -> None:
    resolved = resolve(name, [pa.float64(), pa.float64()])
    algebra = resolved.algebra
    rows = [(1.0, 2.0), (4.0, 3.0), (9.0, 5.0)]
    wrong = [(math.nan, 1.0), (2.0, math.inf)]
    both = algebra.identity
    for row in [*rows, *wrong]:
        both = algebra.combine(both, algebra.partial(row))
    assert math.isnan(algebra.lower(both))
    for row in wrong:
        both = algebra.inverse(both, algebra.partial(row))
    assert algebra.lower(both) == algebra.of(rows)


def test_shapes_share_the_sums_of_the_variance() -> None:
    parts = resolve("kurtosis", [pa.float64()]).parts
    assert {*resolve("var_pop", [pa.float64()]).parts} <= {*parts}
    assert {*resolve("skewness", [pa.float64()]).parts} <= {*parts}
    both = [pa.float64(), pa.int64()]
    assert {*resolve("covar_pop", both).parts} <= {*resolve("regr_slope", both).parts}
    assert {*resolve("regr_slope", both).parts} <= {*resolve("corr", both).parts}


def test_a_spread_far_from_zero_does_not_cancel() -> None:
    base = 1e15
    rows = [(base + y, base + x) for y, x in [(0, 0), (1, 2), (2, 1), (3, 3)]]
    assert resolve("corr", [pa.float64(), pa.float64()]).algebra.of(rows) == 0.8
    values = [base + x for x in (0, 0, 0, 4)]
    skewness = resolve("skewness", [pa.float64()]).algebra.of(values)
    assert skewness == pytest.approx(1.1547005383792515)
