"""Counted operations in steady state, against the thesis: Table 4, single and max-multi-query."""

import math

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create, info, names, rings
from muntin.aggregators.operators import Least, Sum
from muntin.aggregators.registry import state_class

WINDOWS = [*range(1, 18), 31, 32, 33, 64, 100, 128, 255, 256, 257, 1000, 1024, 2048, 4095, 4096]
MANY = [1, 2, 3, 4, 5, 8, 13, 16, 31, 32, 64]
RANDOM = np.random.default_rng(4).integers(0, 2**40, 40_000)


def log2(n):
    return max(1, math.ceil(math.log2(n))) if n > 1 else 0


AMORTISED = {
    "panes": lambda n: n - 1,
    "panes_inv": lambda n: 2,
    "flatfat": log2,
    "bint": log2,
    "flatfit": lambda n: 3,
    "two_stacks": lambda n: 3,
    "two_stacks_lite": lambda n: 3,
    "daba": lambda n: 5,
    "daba_lite": lambda n: 4,
    "slickdeque_inv": lambda n: 2,
    "slickdeque_noninv": lambda n: 2,
}
WORST = {
    "panes": lambda n: n - 1,
    "panes_inv": lambda n: 2,
    "flatfat": log2,
    # Half of it is the window that starts and ends amid intervals.
    "bint": lambda n: log2(n) if n & (n - 1) == 0 else 2 * log2(n),
    "flatfit": lambda n: n - 1,
    "two_stacks": lambda n: n,
    "two_stacks_lite": lambda n: n,
    "daba": lambda n: 8,
    "daba_lite": lambda n: 6,
    "slickdeque_inv": lambda n: 2,
    "slickdeque_noninv": lambda n: n,
}
MULTI = {
    "panes": lambda n: n * (n - 1) / 2,
    "flatfat": lambda n: n * log2(n),
    "bint": lambda n: n * log2(n),
    "flatfit": lambda n: 3 * n,
    "slickdeque_inv": lambda n: 2 * n,
    "slickdeque_noninv": lambda n: n + 2,
}


def counted(name, ranges, steps, values=RANDOM):
    """Operations, and moves along the deque, of each of the steps after three windows."""
    from muntin.aggregators.kernels import slide_compiled

    op = Least() if name == "slickdeque_noninv" else Sum()
    falling = np.array(sorted(ranges, reverse=True))
    window = int(falling[0])
    state = state_class(name).create(op, window, len(ranges), True)
    state = rings.grown(op, state, window) if isinstance(op, Least) else state
    answers = op.empty(4 * window * len(ranges))
    warm = values[: 3 * window]
    slide_compiled(op, state, falling, warm, answers, 0)
    counts = np.zeros((steps + 1, 2), np.int64)
    counts[0] = state.head[:2]
    for i in range(steps):
        at = (3 * window + i) % len(values)
        slide_compiled(op, state, falling, values[at : at + 1], answers, 0)
        counts[i + 1] = state.head[:2]
    return np.diff(counts, axis=0)


@pytest.mark.parametrize("name", names())
def test_one_range_costs_what_the_table_says(name):
    for n in WINDOWS:
        steps = min(3 * (n + 1), 1200)
        operations = counted(name, [n], steps)[:, 0]
        assert operations.max() <= WORST[name](n), n
        if 3 * (n + 1) <= 1200:
            assert operations.sum() <= AMORTISED[name](n) * steps + n, n


@pytest.mark.parametrize("name", [name for name in names() if info(name).several_ranges])
def test_every_range_at_once_costs_what_the_table_says(name):
    for n in MANY:
        steps = 3 * (n + 1)
        operations, moves = counted(name, range(1, n + 1), steps).sum(axis=0)
        assert operations + moves <= MULTI[name](n) * steps, n


@pytest.mark.parametrize("n", WINDOWS)
def test_the_exact_costs(n):
    assert set(counted("panes", [n], 5)[:, 0]) == {n - 1}
    assert set(counted("panes_inv", [n], 5)[:, 0]) == {2}
    assert set(counted("slickdeque_inv", [n], 5)[:, 0]) == {2}
    several = [n, max(1, n // 2), 1]
    assert set(counted("panes", several, 5)[:, 0]) == {sum(size - 1 for size in several)}
    assert set(counted("slickdeque_inv", several, 5)[:, 0]) == {6}
    if n & (n - 1) == 0:
        levels = n.bit_length() - 1
        assert set(counted("flatfat", [n], 40)[:, 0]) == {levels}
        assert set(counted("bint", [n], 40)[:, 0]) == {levels}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 100, 1024, 4096])
def test_flatfit_takes_three_rounds_of_operations_in_one_more_slide(n):
    operations = counted("flatfit", [n], n + 1)[:, 0]
    assert operations.sum() == 3 * (n - 1)
    assert operations.max() == n - 1


def test_the_deque_grows_slower_than_its_window():
    maximum = create("slickdeque_noninv", resolve("max", [pa.int64()]), [4096])
    maximum.run(RANDOM)
    assert maximum.operations < 2 * len(RANDOM)
    assert maximum.nbytes < 4096
    # The mean length on uniform input is the harmonic sum, 4.74 for a window of 64.
    walked = counted("slickdeque_noninv", range(1, 65), 5000)[:, 1].mean()
    assert 3.4 < walked < 4.1


def test_falling_input_fills_the_deque_and_one_value_empties_it():
    falling = np.concatenate([np.arange(100, 0, -1), [1000]])
    maximum = create("slickdeque_noninv", resolve("max", [pa.int64()]), [64])
    maximum.run(falling[:-1])
    before = maximum.operations
    assert maximum.run(falling[-1:]).tolist() == [[1000]]
    assert maximum.operations - before == 63


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
def test_no_step_of_daba_is_slow(name):
    worst = {n: int(counted(name, [n], 4 * n + 50)[:, 0].max()) for n in range(1, 80)}
    assert max(worst.values()) == (8 if name == "daba" else 6)
