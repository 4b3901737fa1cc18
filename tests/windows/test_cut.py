from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import DataError, WindowError
from muntin.windows import TIME_LIMIT, SliceManager, Window
from muntin.windows.cut import slice_numbers, slice_starts
from windows.strategies import slicings, windows

limits = st.integers(1 - TIME_LIMIT, TIME_LIMIT - 1)


@st.composite
def any_class(draw: st.DrawFn) -> tuple[int, int]:
    period = draw(st.integers(1, 50) | st.integers(1, TIME_LIMIT - 1))
    return period, draw(st.integers(0, period - 1))


def brute_start(t: int, classes: list[tuple[int, int]]) -> int:
    return max(t - (t - phase) % period for period, phase in classes)


def test_a_row_at_an_edge_starts_its_slice() -> None:
    #  slices  -3  0           12 15          27 30
    #          |---|------------|--|-----------|--|
    #  rows       ^^^          ^^ ^^            ^
    times = np.array([-1, 0, 1, 11, 12, 14, 15, 29])
    classes = Window(18, 15).edge_classes()
    assert slice_starts(times, classes).tolist() == [-3, 0, 0, 0, 12, 12, 15, 27]


@given(
    st.lists(st.integers(-200, 200) | limits, max_size=60),
    st.lists(any_class(), min_size=1, max_size=12),
    st.booleans(),
)
def test_every_time_gets_the_last_edge_before_it(
    values: list[int], classes: list[tuple[int, int]], in_order: bool
) -> None:
    times = np.array(sorted(values) if in_order else values, dtype=np.int64)
    expected = [brute_start(t, classes) for t in times.tolist()]
    assert slice_starts(times, classes).tolist() == expected
    numbered = slice_numbers(times, np.array(classes))
    if numbered is None:
        assert sorted(values) != values or not values
    else:
        numbers, starts = numbered
        assert starts[numbers].tolist() == expected
        assert sorted(set(expected)) == starts.tolist()


@pytest.mark.parametrize("time", [TIME_LIMIT, -TIME_LIMIT, 2**63 - 1])
def test_times_that_are_no_times_are_not_numbered(time: int) -> None:
    times = np.sort([0, 7, 8, time])
    assert slice_numbers(times, np.array([(15, 0), (1, 0)])) is None
    assert slice_numbers(np.array([0, time, 8]), np.array([(15, 0), (1, 0)])) is None


@given(st.lists(windows(), min_size=1, max_size=8), slicings, st.randoms())
def test_slices_are_those_of_the_manager(chosen: list[Window], slicing: str, random) -> None:
    manager = SliceManager(chosen, slicing)
    edges = manager.edges(-200, 201)
    times = np.array(random.sample(range(-100, 100), 150))
    expected = edges[np.searchsorted(edges, times, side="right") - 1]
    assert slice_starts(times, manager.classes).tolist() == expected.tolist()
    assert slice_starts(np.sort(times), manager.classes).tolist() == sorted(expected.tolist())


@pytest.mark.parametrize("order", ["sorted", "shuffled", "backwards", "two runs"])
@pytest.mark.parametrize("period", [1, 1000, 10**12])
def test_many_rows_in_any_order(order: str, period: int) -> None:
    random = np.random.default_rng(7)
    times = np.sort(random.integers(-(10**9), 10**9, 20_000))
    times = {
        "sorted": times,
        "shuffled": random.permutation(times),
        "backwards": times[::-1],
        "two runs": np.concatenate([times[::2], times[1::2]]),
    }[order]
    classes = [(period, 0), (period * 3, period * 2 - 1), (period * 7, 5 % period)]
    expected = [brute_start(t, classes) for t in times.tolist()]
    assert slice_starts(times, classes).tolist() == expected


def test_a_gap_of_years_costs_nothing() -> None:
    year = 365 * 86_400_000_000
    times = np.array([0, 1, 100_000 * year, 100_000 * year + 3])
    classes = [(2, 0), (6, 1)]
    assert slice_starts(times, classes).tolist() == [0, 1, 100_000 * year, 100_000 * year + 2]


def test_arrays_that_are_empty_read_only_or_strided() -> None:
    classes = np.array([[15, 0], [15, 12]])
    times = np.array([13, 99, 16, 99, 2, 99])[::2]
    times.flags.writeable = False
    assert slice_starts(times, classes).tolist() == [12, 15, 0]
    assert slice_starts(times[:0], classes).tolist() == []


@pytest.mark.parametrize("time", [TIME_LIMIT, -TIME_LIMIT, 2**63 - 1, -(2**63)])
def test_times_beyond_the_limit_are_refused(time: int) -> None:
    with pytest.raises(DataError) as refused:
        slice_starts(np.array([0, time, 0]), [(15, 0)])
    assert str(refused.value) == (
        f"time {time} is out of range\nHint: times lie within 2**62 of the epoch"
    )


@pytest.mark.parametrize("classes", [[(0, 0)], [(5, 5)], [(5, -1)], [(TIME_LIMIT, 0)], []])
def test_classes_that_are_none_are_refused(classes: list[tuple[int, int]]) -> None:
    with pytest.raises(WindowError, match="edge"):
        slice_starts(np.array([0]), classes)


def test_the_package_does_not_import_numba() -> None:
    code = "import sys, muntin.windows; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
