"""Orders of rows: those of numpy's sorts, whatever the hashes, the times and the number of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from muntin._typing import Ints
from muntin.operators.state.radix_sort import order_of, order_of_codes

BOUNDS = np.iinfo(np.int64)
HASHES: dict[str, Callable[[np.random.Generator, int], Ints]] = {
    "spread": lambda rng, size: rng.integers(BOUNDS.min, BOUNDS.max, size),
    "of few keys": lambda rng, size: rng.integers(BOUNDS.min, BOUNDS.max, 40)[
        rng.integers(0, 40, size)
    ],
    "of one key": lambda _, size: np.full(size, -7),
    "equal in their leading bits": lambda rng, size: rng.integers(-5, 5, size),
    "at both ends": lambda rng, size: rng.choice([BOUNDS.min, -1, 0, BOUNDS.max], size),
}
TIMES: dict[str, Callable[[np.random.Generator, int], Ints]] = {
    "in order": lambda rng, size: np.sort(rng.integers(0, size, size)),
    "in no order": lambda rng, size: rng.integers(-size, size, size),
    "almost in order": lambda rng, size: np.arange(size) + rng.integers(0, 9, size),
    "all the same": lambda _, size: np.zeros(size, np.int64),
}


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("hashes", HASHES)
def test_rows_are_in_order_of_hash_and_time(hashes: str, times: str) -> None:
    # Below and above the size from which on digits are counted.
    for size in (0, 1, 100, (1 << 12) - 1, 1 << 12, 100_000):
        rng = np.random.default_rng(size)
        words, start = HASHES[hashes](rng, size), TIMES[times](rng, size)
        before = words.copy()
        order, found = order_of(words, start)
        np.testing.assert_array_equal(order, np.lexsort((start, words)))
        np.testing.assert_array_equal(found, words[order])
        np.testing.assert_array_equal(words, before)


@pytest.mark.parametrize("most", [1, 2, 3000, 5_000_000])
def test_rows_are_in_order_of_codes(most: int) -> None:
    for size in (0, 1, 100, 1 << 12, 100_000):
        codes = np.random.default_rng(size).integers(0, most, size)
        np.testing.assert_array_equal(order_of_codes(codes, most), np.argsort(codes, kind="stable"))
