from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import WindowError
from muntin.windows import TIME_LIMIT, Window, edges_between, next_edge, reduce_classes
from windows.strategies import brute_edges, slicings, windows


@st.composite
def classes(draw: st.DrawFn) -> tuple[int, int]:
    period = draw(st.integers(1, 30))
    return period, draw(st.integers(0, period - 1))


@given(windows(), slicings)
def test_classes_have_the_edges_of_the_definition(window: Window, slicing: str) -> None:
    found = window.edge_classes(slicing)
    assert len(set(found)) == len(found)
    assert edges_between(found, -90, 90).tolist() == brute_edges([window], slicing, -90, 90)


@given(st.lists(classes()), st.integers(-200, 200), st.integers(-10, 200))
def test_edges_between_are_sorted_unique_and_half_open(
    chosen: list[tuple[int, int]], lo: int, length: int
) -> None:
    hi = lo + length
    expected = [t for t in range(lo, hi) if any((t - at) % every == 0 for every, at in chosen)]
    found = edges_between(chosen, lo, hi)
    assert found.dtype == np.int64
    assert found.tolist() == expected


@given(st.lists(classes(), max_size=12))
def test_reduced_classes_have_the_same_edges(chosen: list[tuple[int, int]]) -> None:
    reduced = reduce_classes(chosen)
    assert set(reduced) <= set(chosen)
    assert edges_between(reduced, -99, 999).tolist() == edges_between(chosen, -99, 999).tolist()
    for one in reduced:
        others = [other for other in reduced if other != one]
        assert not any(one[0] % every == 0 and one[1] % every == at for every, at in others)


@given(classes(), st.integers(-300, 300))
def test_next_edge_is_the_first_strictly_after(edge_class: tuple[int, int], at: int) -> None:
    after = range(at + 1, at + 1 + edge_class[0])
    expected = [t for t in after if (t - edge_class[1]) % edge_class[0] == 0]
    assert [next_edge(edge_class, at)] == expected


def test_a_gap_of_years_costs_only_its_edges() -> None:
    year = 365 * 86_400_000_000
    edges = edges_between([(year // 5, 0), (year // 2, 7)], 0, 2**55)
    assert np.all(np.diff(edges) > 0)
    assert len(edges) == 2**55 // (year // 5) + 1 + (2**55 - 8) // (year // 2) + 1


@given(st.integers(2**55, TIME_LIMIT - 1), st.integers(0, 10**6))
def test_long_periods_are_counted_exactly(period: int, phase: int) -> None:
    found = edges_between([(period, phase)], -TIME_LIMIT, TIME_LIMIT)
    first = phase - (phase + TIME_LIMIT) // period * period
    assert found.tolist() == list(range(first, TIME_LIMIT, period))


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(WindowError) as refused:
        edges_between([(1, 0)], 0, 10**9)
    assert str(refused.value) == (
        "[0, 1000000000) holds up to 1000000000 edges\n"
        "Hint: ask for the edges near the rows only, and seek past a gap"
    )


def test_bounds_beyond_the_limit_are_refused() -> None:
    with pytest.raises(WindowError) as refused:
        edges_between([(1, 0)], 0, 2**63)
    assert str(refused.value) == (
        "time 9223372036854775808 is out of range\nHint: times lie between -2**62 and 2**62"
    )
