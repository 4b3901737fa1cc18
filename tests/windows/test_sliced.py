from __future__ import annotations

from math import ceil, lcm

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from muntin.errors import WindowError
from muntin.windows import Sliced, Window, compose, cutty, pairs, panes
from windows.strategies import brute_edges, windows

SLICED = {"panes": panes, "pairs": pairs, "cutty": cutty}


def edges_of(sliced: Sliced, lo: int, hi: int) -> list[int]:
    """Straight from the definition of a sliced window."""
    ends = {edge % sliced.period for edge in sliced.edges}
    return [t for t in range(lo, hi) if (t - sliced.phase) % sliced.period in ends]


def slices_of(window: Window, sliced: Sliced, k: int) -> list[int]:
    """The lengths of the slices between the bounds of window k, the last one cut at its end."""
    start, end = window.start(k), window.end(k)
    edges = edges_of(sliced, start, end)
    assert edges[0] == start
    return [b - a for a, b in zip(edges, [*edges[1:], end], strict=True)]


def test_pairs_and_panes_of_18_by_15() -> None:
    # "On-the-Fly Sharing for Streamed Aggregation", Figure 1
    #         0           12 15          27 30
    #  pairs  |------------|--|-----------|--|
    #  panes  |--|--|--|---|--|--|--|--|--|--|
    window = Window(18, 15)
    assert pairs(window) == Sliced((12, 3))
    assert panes(window) == Sliced((3, 3, 3, 3, 3))
    assert slices_of(window, pairs(window), 2) == [3, 12, 3]
    assert slices_of(window, panes(window), 2) == [3] * 6


def test_composition_of_two_pairs() -> None:
    # "On-the-Fly Sharing for Streamed Aggregation", Figure 3; the vector in its text adds up
    # to 51, the common period is 45.
    #  U  |------------|--|------------|--|------------|--|
    #  V  |------|--|------|--|------|--|------|--|------|--|
    u, v = Sliced((12, 3)), Sliced((6, 3))
    w = compose(u, v)
    assert w.slices == (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
    assert w.period == 45
    assert set(w.edges) >= {12, 15, 27, 30, 42, 45} | {6, 9, 15, 18, 24, 27, 33, 36, 42, 45}


def test_pairs_of_7_by_5() -> None:
    # "Algorithms and Optimizations for Incremental Window-Based Aggregations", on fragments
    assert pairs(Window(7, 5)) == Sliced((3, 2))


def test_pairs_of_14_by_8() -> None:
    # The same thesis, Figure 3
    #     -6      0  2      8  10     16
    #      |------|--|------|--|------|
    #  k=1 [================)
    #  k=2           [================)
    window = Window(14, 8)
    assert pairs(window) == Sliced((2, 6))
    assert slices_of(window, pairs(window), 2) == [6, 2, 6]


def test_cutty_slices_of_5_by_3() -> None:
    # The same thesis, Figure 4
    #      1     4   6 7   9
    #      |-----|-----|-----
    #  k=2 [=========)          one whole slice, and 2 of the next
    #  k=3       [=========)
    window = Window(5, 3)
    assert cutty(window) == Sliced((3,), phase=1)
    assert slices_of(window, cutty(window), 2) == [3, 2]


@given(windows(), st.sampled_from(sorted(SLICED)))
def test_slices_have_the_edges_of_the_definition(window: Window, slicing: str) -> None:
    sliced = SLICED[slicing](window)
    assert edges_of(sliced, -90, 90) == brute_edges([window], slicing, -90, 90)


@given(windows(), st.integers(-5, 5))
def test_each_window_is_put_together_from_whole_slices(window: Window, k: int) -> None:
    for slicing in (panes, pairs):
        sliced = slicing(window)
        assert window.end(k) in edges_of(sliced, window.end(k), window.end(k) + 1)
        assert set(slices_of(window, sliced, k)) <= set(sliced.slices)


@given(windows(), st.integers(-5, 5))
def test_cutty_windows_end_in_a_part_of_a_slice(window: Window, k: int) -> None:
    *whole, part = slices_of(window, cutty(window), k)
    assert set(whole) <= {window.slide}
    assert 0 < part <= window.slide


@given(windows())
def test_partials_per_window(window: Window) -> None:
    # Table 1 of the thesis
    assume(window.range >= window.slide)
    quotient, rest = divmod(window.range, window.slide)
    expected = quotient if rest == 0 else 2 * quotient + 1
    assert len(slices_of(window, pairs(window), 1)) == expected
    assert len(slices_of(window, cutty(window), 1)) == ceil(window.range / window.slide)
    assert len(slices_of(window, panes(window), 1)) == window.range // panes(window).slices[0]


@given(st.lists(windows(12), min_size=1, max_size=3))
def test_composition_has_all_edges_and_no_others(chosen: list[Window]) -> None:
    composed = compose(*map(pairs, chosen))
    assert composed.period == lcm(*(window.slide for window in chosen))
    assert edges_of(composed, -99, 99) == brute_edges(chosen, "pairs", -99, 99)


@given(st.lists(windows(12), min_size=1, max_size=3))
def test_composed_pairs_never_have_more_slices_than_composed_panes(chosen: list[Window]) -> None:
    # Theorem 1 of "On-the-Fly Sharing for Streamed Aggregation"
    assert len(compose(*map(pairs, chosen))) <= len(compose(*map(panes, chosen)))


@given(windows())
def test_composing_one_changes_nothing(window: Window) -> None:
    assert compose(pairs(window)) == pairs(window)
    assert compose(pairs(window), pairs(window)) == pairs(window)


def test_phase_is_taken_modulo_the_period() -> None:
    assert Sliced((12, 3), -1) == Sliced((12, 3), 14)


def test_golden_messages() -> None:
    with pytest.raises(WindowError) as refused:
        compose(*(Sliced((prime,)) for prime in (9973, 9967, 9949)))
    assert str(refused.value) == (
        "period 988939464559 would take 297783951 slices\n"
        "Hint: use a SliceManager, which never writes them out"
    )
    with pytest.raises(WindowError) as refused:
        panes(Window("12 minutes 1 us", "5 minutes"))
    assert str(refused.value) == (
        "the panes of Window('12 minutes 1 microsecond', '5 minutes') would take 300000000 slices\n"
        "Hint: use a SliceManager, which never writes them out"
    )
    with pytest.raises(WindowError) as refused:
        Sliced((3, 0))
    assert str(refused.value) == (
        "slices (3, 0) are not all positive\nHint: give at least one, each above 0"
    )
    with pytest.raises(WindowError, match="nothing to compose"):
        compose()
