"""Approximate aggregates: within what they promise, and the same bits however rows are cut."""

import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import resolve
from muntin.aggregates.columns import by_part
from muntin.errors import AggregateError

DRAWS = {
    "uniform": lambda rng, n: rng.uniform(-5, 5, n),
    "skewed": lambda rng, n: rng.lognormal(0, 4, n),
    "sorted": lambda rng, n: np.sort(rng.normal(1e6, 1e5, n)),
    "tiny": lambda rng, n: rng.choice([5e-324, 1e-310, 2e-308, -3e-320], n),
    "equal": lambda rng, n: np.full(n, 7.25),
    "integers": lambda rng, n: rng.integers(-(2**63), 2**63 - 1, n),
    "counts": lambda rng, n: rng.integers(-130, 130, n),
    "tinier": lambda rng, n: rng.integers(60, 140, n) * 5e-324,
    "tiny floats": lambda rng, n: (rng.integers(60, 140, n) * 2.0**-149).astype(np.float32),
    "large floats": lambda rng, n: rng.uniform(3.3e38, 3.4e38, n).astype(np.float32),
    "cents": lambda rng, n: [Decimal(k).scaleb(-2) for k in rng.integers(60, 5000, n).tolist()],
    "tenths": lambda rng, n: [Decimal(k).scaleb(-1) for k in rng.integers(-99, 99, n).tolist()],
}


def lowered(resolved, pieces):
    """The answer for pieces that are kept apart, and merged."""
    columns = []
    for part in resolved.parts:
        whole = by_part.empty(part, 1)
        for piece in pieces:
            column = by_part.empty(part, 1)
            column.update(np.zeros(len(piece), np.int64), (piece,))
            whole.merge(np.zeros(1, np.int64), column)
        columns.append(whole)
    return resolved.lower(columns).values.to_pylist()[0]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("error", [0.01, 0.1, 0.5, 1000])
def test_percentiles_are_within_their_error(draw: str, error: float) -> None:
    rng = np.random.default_rng(len(draw))
    fractions = (0.0, 0.01, 0.5, 0.95, 1.0)
    for size in (1, 2, 999):
        values = DRAWS[draw](rng, size)
        resolved = resolve("approx_percentile", [pa.array(values).type], [fractions, error])
        found = lowered(resolved, [pa.array(values)])
        ordered = sorted(pa.array(values).to_pylist())
        most = Fraction(repr(error)) if error < 1 else 1 / Fraction(error)
        for p, value in zip(fractions, found, strict=True):
            exact = ordered[max(math.ceil(size * p) - 1, 0)]
            off = abs(Fraction(value) - Fraction(exact))
            assert off <= most * abs(Fraction(exact)), (p, value, exact)
        assert (found[0], found[-1]) == (ordered[0], ordered[-1])


def test_zero_signs_infinities_and_nan_have_buckets_of_their_own() -> None:
    values = pa.array([-math.inf, -2.0, -0.0, 0.0, 5e-324, math.inf, math.nan])
    fractions = tuple(k / 7 for k in range(1, 8))
    found = lowered(resolve("approx_percentile", [pa.float64()], [fractions]), [values])
    assert str(found) == "[-inf, -2.015625, 0.0, 0.0, 5e-324, inf, nan]"


def test_distinct_values_are_exact_up_to_256() -> None:
    for size in (0, 1, 255, 256):
        values = pa.array([f"v{k}" for k in range(size)] * 3, pa.string())
        assert lowered(resolve("approx_count_distinct", [pa.string()]), [values]) == size
    several = pa.array([0.0, -0.0, math.nan, -math.nan, 1.0, None])
    assert lowered(resolve("approx_count_distinct", [pa.float64()]), [several]) == 3


@pytest.mark.parametrize("rsd", [0.02, 0.05, 0.2])
def test_estimates_lie_within_three_deviations(rsd: float) -> None:
    rng = np.random.default_rng(5)
    resolved = resolve("approx_count_distinct", [pa.int64()], [rsd])
    beyond = 0
    for _ in range(100):
        size = int(10 ** rng.uniform(2.5, 4.7))
        values = pa.array(rng.integers(0, 2**62, size))
        beyond += abs(lowered(resolved, [values]) - size) > 3 * rsd * size
    assert beyond <= 1


@pytest.mark.parametrize(
    ("name", "constants"), [("approx_count_distinct", ()), ("approx_percentile", ((0.1, 0.9),))]
)
def test_cuts_and_order_leave_no_trace(name: str, constants: tuple) -> None:
    rng = random.Random(name)
    values = [rng.randrange(3000) for _ in range(5000)]
    resolved = resolve(name, [pa.int64()], constants)
    whole = lowered(resolved, [pa.array(values)])
    for pieces in (2, 7, 60):
        rng.shuffle(values)
        cut = sorted(rng.sample(range(1, len(values)), pieces - 1))
        bounds = zip([0, *cut], [*cut, len(values)], strict=True)
        assert lowered(resolved, [pa.array(values[a:b]) for a, b in bounds]) == whole


def test_python_partials_have_the_same_registers() -> None:
    values = [(k * 7919) % 100_003 for k in range(400)]
    resolved = resolve("approx_count_distinct", [pa.int64()])
    assert resolved.algebra.of(values) == lowered(resolved, [pa.array(values)]) != 400


def test_windows_of_many_values_equal_those_that_are_alone() -> None:
    rng = np.random.default_rng(3)
    size = 4000
    rows = pa.table(
        {
            "t": np.sort(rng.integers(0, 1000, size)),
            "g": rng.integers(0, 2, size),
            "u": rng.integers(0, 1500, size),
        }
    )
    sql = "SELECT g, approx_count_distinct(u) AS n FROM s [RANGE 300 SLIDE 50] GROUP BY g"
    found = muntin.aggregate(rows, sql, time="t")["q1"]
    resolved = resolve("approx_count_distinct", [pa.int64()])
    times, groups, values = (rows[name].to_numpy() for name in ("t", "g", "u"))
    for row in found.to_pylist():
        held = (times >= row["window_start"]) & (times < row["window_end"])
        alone = pa.array(values[held & (groups == row["g"])])
        assert row["n"] == lowered(resolved, [alone])


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("approx_percentile", (1.5,), "a fraction from 0 to 1"),
        ("approx_percentile", (0.5, -1), "a relative error from 0.0001 on, not -1"),
        ("approx_percentile", (), "approx_percentile lacks p after its arguments"),
        ("percentile", (), "percentile lacks p after its arguments"),
        ("percentile", (0.5, True, 7), "takes at most p, descending after its arguments, not 3"),
        ("approx_count_distinct", (0.5,), r"deviation from 0\.005 to 0\.4, not 0\.5"),
    ],
)
def test_constants_that_make_no_sense_are_refused(name, constants, message) -> None:
    with pytest.raises(AggregateError, match=message):
        resolve(name, [pa.float64()], constants)
