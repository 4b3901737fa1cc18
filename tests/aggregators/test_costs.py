"""Counted operations in steady state, against the thesis: Table 4, single and max-multi-query."""

import math

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create, info, names, rings
from muntin.aggregators.choice import operations
from muntin.aggregators.operators import Least, Sum
from muntin.aggregators.registry import state_class

WINDOWS = [*range(1, 18), 31, 32, 33, 64, 100, 128, 255, 256, 257, 1000, 1024, 2048, 4095, 4096]
MANY = [1, 2, 3, 4, 5, 8, 13, 16, 31, 32, 64]
# Those that compiled loops of numbers count; marks of values are counted by their own test.
COUNTED = [name for name in names() if info(name).needs != "distinct"]
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
    "running_totals": lambda n: 2,
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
    "running_totals": lambda n: 2,
}
MULTI = {
    "panes": lambda n: n * (n - 1) / 2,
    "flatfat": lambda n: n * log2(n),
    "bint": lambda n: n * log2(n),
    "flatfit": lambda n: n - 1,
    "slickdeque_inv": lambda n: 2 * n,
    "slickdeque_noninv": lambda n: n + 2,
    "running_totals": lambda n: n + 1,
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


@pytest.mark.parametrize("name", COUNTED)
def test_one_range_costs_what_the_table_says(name):
    for n in WINDOWS:
        steps = min(3 * (n + 1), 1200)
        operations = counted(name, [n], steps)[:, 0]
        assert operations.max() <= WORST[name](n), n
        if 3 * (n + 1) <= 1200:
            assert operations.sum() <= AMORTISED[name](n) * steps + n, n


@pytest.mark.parametrize("name", [name for name in COUNTED if info(name).several_ranges])
def test_every_range_at_once_costs_what_the_table_says(name):
    for n in MANY:
        steps = 3 * (n + 1)
        operations, moves = counted(name, range(1, n + 1), steps).sum(axis=0)
        assert operations + moves <= MULTI[name](n) * steps, n


SETS = [
    [3], [7], [100], [1000], [3, 4], [50, 100], [60, 61], [1, 100], [5, 17, 90, 300],
    list(range(10, 401, 10)), list(range(1, 65)), [*range(1, 40, 3), 700],
]  # fmt: skip


@pytest.mark.parametrize("ranges", SETS, ids=lambda each: f"{len(each)} to {each[-1]}")
@pytest.mark.parametrize("name", COUNTED)
def test_what_is_estimated_is_what_is_counted(name, ranges):
    if len(ranges) > 1 and not info(name).several_ranges:
        return
    found = _settled(name, ranges)
    assert operations(name, ranges) == pytest.approx(found, rel=0.2)


def _settled(name, ranges):
    """Operations a slide, once pointers and deques lie as they will."""
    from muntin.aggregators.kernels import slide_compiled

    op = Least() if name == "slickdeque_noninv" else Sum()
    falling = np.array(ranges[::-1])
    state = state_class(name).create(op, ranges[-1], len(ranges), True)
    state = rings.grown(op, state, ranges[-1]) if isinstance(op, Least) else state
    answers = op.empty(len(RANDOM) * len(ranges))
    counts = []
    for _ in range(2):
        slide_compiled(op, state, falling, RANDOM, answers, 0)
        counts.append(int(state.head[0]))
    return (counts[1] - counts[0]) / len(RANDOM)


def test_windows_too_long_to_follow_are_estimated_by_shorter_ones():
    # A million pointers and more are not followed one by one.
    assert 40 < operations("flatfit", [k << 20 for k in range(1, 41)]) < 130


@pytest.mark.parametrize("n", [1, 5, 64])
def test_what_is_held_is_what_the_cards_say(n):
    # Numbers of a state but for its head: FlatFIT 3 n, SlickDeque (Inv) 3 n with every range.
    held = {
        name: sum(len(array) for array in state_class(name).create(Sum(), n, n, True)[:-1])
        for name in ("flatfit", "slickdeque_inv", "running_totals")
    }
    assert held == {"flatfit": 3 * n, "slickdeque_inv": 3 * n, "running_totals": n + 1}
    spaces = [info(name).space for name in held]
    assert spaces == ["3 n", "n + 2; 3 n with every range", "n + 1"]


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


def test_a_mark_moves_once_for_every_value():
    seen = create("last_seen", resolve("count_distinct", [pa.int64()]), [3, 100, 1000])
    seen.run(RANDOM[:2000] % 50)
    assert seen.operations == 2000
    assert operations("last_seen", [3, 100, 1000]) == 1
