"""Numbers cut into limbs: sums of them are rounded once, to the nearest double."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create
from muntin.aggregators.encodings import lowering
from muntin.aggregators.encodings.limbs import Limbs

SUM = resolve("sum", [pa.float64()])


def nearest(limbs, row):
    """Python's own division of integers rounds correctly."""
    exact = sum(Fraction(limb) * Fraction(2) ** (limbs.base + limbs.width * k) for k, limb in row)
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@pytest.mark.parametrize("width", [20, 39, 49, 53])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("base", [-1074, -700, -60, 0, 300, 800])
def test_sums_of_limbs_are_rounded_to_the_nearest_double(width, count, base):
    rng = np.random.default_rng(width * count)
    limbs, size = Limbs(width, base, count), 2 ** min(width + 7, 60)
    lanes = rng.integers(-size, size, (400, count))
    # Few bits and zeros make ties, and answers far below the top limb.
    lanes[100:200] = rng.integers(-2, 3, (100, count))
    lanes[200:300] = 1 << rng.integers(0, width, (100, count))
    lanes[300:, count // 2 :] = rng.integers(-1, 1, (100, count - count // 2))
    out = np.empty(len(lanes))
    lowering.lower(SUM.algebra, (lanes, 0, limbs), (lanes, 0, None), lanes[:, 0], None, out)
    assert out.tolist() == [nearest(limbs, list(enumerate(row))) for row in lanes.tolist()]


@pytest.mark.parametrize("window", [16, 1024])
def test_a_short_run_leaves_room_for_smaller_and_larger_values(window):
    values = np.random.default_rng(0).normal(100.0, 20.0, 100_000)
    fed = create("slickdeque_inv", SUM, [window])
    fed.run(values[: window + 1])
    at_once = create("slickdeque_inv", SUM, [window])
    at_once.run(values)
    fed.run(values)
    assert fed.window.encoding.lanes == at_once.window.encoding.lanes == 2
