"""Pairs of words hold, add up and round exactly what columns of limbs hold."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact.limbs import ONE_LIMB, ORIGIN
from muntin.aggregates.exact.pairs import pairs_of, round_pair, scales, to_pair

WORD = 2**64
LIMBS = [0, 1, -1, 2**32 - 1, -(2**32), 2**63 - 1, -(2**63), 2**62 + 12345]


def split(value: int) -> tuple[np.uint64, np.int64]:
    return np.uint64(value % WORD), np.int64(value // WORD)


@pytest.mark.parametrize("base", [ONE_LIMB, ONE_LIMB - 2, ONE_LIMB + 3, 37, 94])
def test_a_pair_is_rounded_to_the_nearest_double(base: int) -> None:
    rng = random.Random(base)
    factors = scales(base)
    assert factors is not None
    unit = Fraction(2) ** (32 * base - ORIGIN)
    for _ in range(4000):
        value = rng.getrandbits(rng.randrange(1, 125))
        if rng.random() < 0.4:
            # At a half between two doubles, or one unit off.
            value = (rng.getrandbits(54) << rng.randrange(70)) + rng.choice([-1, 0, 1])
        value *= rng.choice([1, -1])
        got = round_pair(*split(value), factors)
        assert got == float(value * unit), value
        assert math.copysign(1, got) == (-1 if value < 0 else 1)


@pytest.mark.parametrize("base", [0, 36, 97, 120])
def test_units_whose_sums_may_be_no_normal_doubles_have_no_scales(base: int) -> None:
    assert scales(base) is None


def test_a_row_of_limbs_is_a_pair_where_it_fits() -> None:
    rng = random.Random(5)
    fitting = 0
    for _ in range(3000):
        row = [rng.choice([*LIMBS, rng.randrange(2**32)]) for _ in range(rng.randrange(7))]
        value = sum(limb << (32 * k) for k, limb in enumerate(row))
        low, high, fits = to_pair(np.array(row, np.int64), 0)
        assert fits == (-(2**127) <= value < 2**127)
        if fits:
            fitting += 1
            assert int(high) * WORD + int(low) == value
    assert 1000 < fitting < 3000


def test_sums_of_pairs_are_those_of_the_values() -> None:
    rng = random.Random(6)
    values = [round(rng.uniform(-1e6, 1e6), rng.randrange(4)) for _ in range(300)]
    column = SumColumn.empty(Part("sum", (pa.float64(),)), 300)
    column.update(np.arange(300), (pa.array(values),))
    found = pairs_of(column.limbs, column.base, whole=False)
    assert found is not None
    pairs, base = found
    factors = scales(base)
    assert factors is not None
    for _ in range(200):
        first, last = sorted(rng.choices(range(301), k=2))
        total = sum(int(low) + WORD * int(np.int64(high)) for low, high in pairs[first:last])
        assert round_pair(*split(total), factors) == math.fsum(values[first:last])


def test_what_may_not_fit_a_pair_is_refused() -> None:
    column = SumColumn.empty(Part("sum", (pa.float64(),)), 2)
    column.update(np.array([0, 1]), (pa.array([1e-30, 1e30]),))
    assert pairs_of(column.limbs, column.base, whole=False) is None
    large = np.zeros((4, 4), np.int64)
    large[:, 3] = 2**26
    assert pairs_of(large, ONE_LIMB, whole=True) is not None
    large[:, 3] = 2**27
    assert pairs_of(large, ONE_LIMB, whole=True) is None
