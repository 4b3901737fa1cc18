from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import WindowError
from muntin.windows import TIME_LIMIT, Window
from muntin.windows.duration import MINUTE
from windows.strategies import brute_windows_of, is_end, is_start, windows

times = st.integers(-300, 300)


def windows_of(window: Window, t: int) -> list[tuple[int, int]]:
    numbers = range(window.first_index(t), window.last_index(t) + 1)
    return [(window.start(k), window.end(k)) for k in numbers]


def test_a_row_at_an_edge_belongs_to_the_window_that_starts_there() -> None:
    #        0         10        20        30
    #        |---------|---------|---------|
    #  k=1   [=========)
    #  k=2             [=========)
    #  row             ^ 10: in k=2 only
    window = Window(10, 10)
    assert windows_of(window, 9) == [(0, 10)]
    assert windows_of(window, 10) == [(10, 20)]
    assert window.kind == "tumbling"


def test_overlapping_windows_share_rows() -> None:
    #       -3   0           12 15          27 30
    #        |---|------------|--|-----------|--|
    #  k=1   [===================)
    #  k=2                    [=================)
    #  rows                   ^ 12, 14 in both   ^ 15 in k=2 only
    window = Window(18, 15)
    assert windows_of(window, 11) == [(-3, 15)]
    assert windows_of(window, 12) == [(-3, 15), (12, 30)]
    assert windows_of(window, 14) == [(-3, 15), (12, 30)]
    assert windows_of(window, 15) == [(12, 30)]
    assert window.kind == "overlapping"


def test_hopping_windows_leave_gaps() -> None:
    #        0      7  10     17 20
    #        |------|--|------|--|
    #  k=1          [==)
    #  k=2                    [==)
    #  row      ^ 5: in none
    window = Window(3, 10)
    assert windows_of(window, 5) == []
    assert windows_of(window, 6) == []
    assert windows_of(window, 7) == [(7, 10)]
    assert windows_of(window, 10) == []
    assert window.kind == "hopping"


def test_aligning_starts_moves_windows_when_range_is_no_multiple_of_slide() -> None:
    #              0    3    5    8    10   12
    #              |----|----|----|----|----|
    #  end, k=2         [==============)         ends on the slide
    #  start       [=============)               starts on the slide
    ends, starts = Window(7, 5), Window(7, 5, align="start")
    assert windows_of(ends, 6) == [(3, 10)]
    assert windows_of(starts, 6) == [(0, 7), (5, 12)]
    assert (ends.phase, starts.phase) == (0, 2)
    assert Window(10, 5).phase == Window(10, 5, align="start").phase


def test_windows_before_the_epoch() -> None:
    #      -15     -10     -5      0
    #       |-------|-------|------|
    #  k=-1 [===============)
    #  k=0          [==============)
    #  row             ^ -8 in both
    window = Window(10, 5)
    assert windows_of(window, -8) == [(-15, -5), (-10, 0)]
    assert windows_of(window, -5) == [(-10, 0), (-5, 5)]


def test_offset_moves_all_windows() -> None:
    #        2         12        22
    #        |---------|---------|
    #        [=========)
    assert windows_of(Window(10, 10, offset=2), 11) == [(2, 12)]
    assert windows_of(Window(10, 10, offset=-8), 11) == [(2, 12)]
    assert windows_of(Window(10, 10, offset=12, align="start"), 11) == [(2, 12)]


@given(windows(), times)
def test_a_row_is_in_exactly_the_windows_that_cover_it(window: Window, t: int) -> None:
    assert windows_of(window, t) == brute_windows_of(window, t)


@given(windows(), st.integers(-50, 50))
def test_ends_and_starts_lie_where_the_definition_says(window: Window, k: int) -> None:
    assert is_end(window, window.end(k))
    assert is_start(window, window.start(k))
    assert window.end(k) - window.start(k) == window.range
    assert window.end(k + 1) - window.end(k) == window.slide
    assert 0 <= window.phase < window.slide


@given(windows(), st.lists(times))
def test_arrays_give_what_integers_give(window: Window, values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    for method in (window.first_index, window.last_index, window.end, window.start):
        result = method(array)
        assert result.dtype == np.int64
        assert result.tolist() == [method(value) for value in values]


@given(
    st.integers(1, TIME_LIMIT - 1),
    st.integers(1, TIME_LIMIT - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-TIME_LIMIT + 1, TIME_LIMIT - 1),
)
def test_extreme_times_do_not_overflow(length: int, slide: int, offset: int, t: int) -> None:
    window = Window(length, slide, offset=offset)
    array = np.array([t], dtype=np.int64)
    assert window.first_index(array).tolist() == [window.first_index(t)]
    assert window.last_index(array).tolist() == [window.last_index(t)]


def test_durations_become_microseconds_in_every_spelling() -> None:
    window = Window("12 minutes", "5 minutes")
    assert (window.range, window.slide, window.unit) == (12 * MINUTE, 5 * MINUTE, "duration")
    assert window == Window(timedelta(minutes=12), "INTERVAL '5' MINUTE", offset=0)
    assert window == Window(np.timedelta64(12, "m"), "300s", offset="0 seconds")
    assert hash(window) == hash(Window("12m", "5m"))


def test_plain_numbers_are_another_unit_than_durations() -> None:
    assert Window(12, 5).unit == "plain"
    assert Window(12, 5, offset="0s").unit == "plain"
    assert Window("12 us", "5 us") != Window(12, 5)
    assert Window(12, 5, unit="duration") == Window("12 us", "5 us")


def test_on_demand_windows_have_a_range_only() -> None:
    window = Window("12 minutes")
    assert (window.slide, window.kind, window.periodic) == (None, "on_demand", False)
    for refused in (lambda: window.phase, lambda: window.end(1), window.edge_classes):
        with pytest.raises(WindowError, match="no periodic edges"):
            refused()


def test_rows_windows_count_rows() -> None:
    window = Window(100, 10, measure="rows")
    assert (window.unit, window.slide_measure, window.kind) == ("plain", "rows", "overlapping")
    assert Window(100, measure="rows").kind == "on_demand"


def test_a_range_of_time_may_slide_by_rows() -> None:
    window = Window("12 minutes", 1, slide_measure="rows")
    assert (window.unit, window.kind, window.periodic) == ("duration", "by_rows", False)
    assert (window.range, window.slide) == (12 * MINUTE, 1)
    with pytest.raises(WindowError, match="no periodic edges"):
        window.edge_classes()


ALL_KINDS = [
    Window(18, 15),
    Window(18),
    Window("12 minutes", "5 minutes"),
    Window("1.5 s", "1 day", offset="-7 ms", align="start"),
    Window(100, 10, offset=3, measure="rows"),
    Window("12 minutes", 1, slide_measure="rows"),
]


@pytest.mark.parametrize("window", ALL_KINDS, ids=repr)
def test_windows_are_values(window: Window) -> None:
    assert eval(repr(window), {"Window": Window}) == window
    assert pickle.loads(pickle.dumps(window)) == window
    assert copy.deepcopy(window) == window
    assert dataclasses.replace(window) == window
    with pytest.raises(dataclasses.FrozenInstanceError):
        window.range = 1


def test_replace_keeps_the_unit() -> None:
    moved = dataclasses.replace(Window("12 minutes", "5 minutes"), offset="1 minute")
    assert repr(moved) == "Window('12 minutes', '5 minutes', offset='1 minute')"


REFUSED = [
    (lambda: Window(0), "range 0 is not positive\nHint: give a range above zero"),
    (
        lambda: Window("12 minutes", "-5 minutes"),
        "slide '-5 minutes' is not positive\nHint: give a slide above zero",
    ),
    (
        lambda: Window(2**62, 1),
        "range 4611686018427387904 is too long\nHint: a range lies below 2**62, 146,000 years",
    ),
    (
        lambda: Window("12 minutes", 5),
        (
            "range '12 minutes' is a duration, but slide 5 is a plain number\n"
            "Hint: give all as durations for a timestamp column, all as integers for an integer one"
        ),
    ),
    (
        lambda: Window(12, 5, offset="1 s"),
        (
            "offset '1 s' is a duration, but range 12 is a plain number\n"
            "Hint: give all as durations for a timestamp column, all as integers for an integer one"
        ),
    ),
    (
        lambda: Window("12 s", "5 s", unit="plain"),
        (
            "range '12 s' is a duration, but the unit 'plain' asks for a plain number\n"
            "Hint: give all as durations for a timestamp column, all as integers for an integer one"
        ),
    ),
    (
        lambda: Window("12 s", "5 s", measure="rows"),
        "range '12 s' does not count rows\nHint: give it as an integer, such as 100",
    ),
    (
        lambda: Window("12 s", "5 s", slide_measure="rows"),
        "slide '5 s' does not count rows\nHint: give it as an integer, such as 100",
    ),
    (
        lambda: Window(100, 5, measure="rows", slide_measure="time"),
        (
            "a window that counts rows cannot slide by time\n"
            "Hint: give the slide as a number of rows, or the range as a duration"
        ),
    ),
    (
        lambda: Window(100, 5, measure="rows", unit="duration"),
        "rows are not a duration\nHint: leave out the unit",
    ),
    (
        lambda: Window("12 s", offset="1 s"),
        (
            "offset '1 second' has nothing to move\n"
            "Hint: only a window that slides in its own measure has an offset"
        ),
    ),
    (
        lambda: Window(12, 5, align="stat"),
        "align must be one of end, start, not 'stat'\nHint: did you mean start?",
    ),
    (
        lambda: Window(12, 5, measure="tuple"),
        "measure must be one of time, rows, not 'tuple'\nHint: known names: rows, time",
    ),
    (
        lambda: Window(12, 5).edge_classes("pair"),
        "unknown slicing 'pair'\nHint: did you mean pairs?",
    ),
    (
        lambda: Window("12 minutes").phase,
        "Window('12 minutes') has no periodic edges\nHint: give it a slide in its own measure",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[line[:40] for _, line in REFUSED])
def test_golden_messages(build: object, message: str) -> None:
    with pytest.raises(WindowError) as refused:
        build()
    assert str(refused.value) == message
