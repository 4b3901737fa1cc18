"""Random windows, and what a window is, written out time by time."""

from __future__ import annotations

from math import gcd

from hypothesis import strategies as st

from muntin.windows import SLICINGS, Window


@st.composite
def windows(draw: st.DrawFn, longest: int = 40) -> Window:
    lengths = st.integers(1, longest)
    return Window(
        draw(lengths),
        draw(lengths),
        offset=draw(st.integers(-100, 100)),
        align=draw(st.sampled_from(["end", "start"])),
    )


slicings = st.sampled_from(SLICINGS)


def is_end(window: Window, t: int) -> bool:
    shift = window.range if window.align == "start" else 0
    return (t - shift - window.offset) % window.slide == 0


def is_start(window: Window, t: int) -> bool:
    return is_end(window, t + window.range)


def is_edge(window: Window, slicing: str, t: int) -> bool:
    if slicing == "cutty":
        return is_start(window, t)
    if slicing == "pairs":
        return is_start(window, t) or is_end(window, t)
    pane = gcd(window.range, window.slide)
    return any(is_end(window, t + i * pane) for i in range(window.slide // pane))


def brute_edges(chosen: list[Window], slicing: str, lo: int, hi: int) -> list[int]:
    return [t for t in range(lo, hi) if any(is_edge(each, slicing, t) for each in chosen)]


def brute_windows_of(window: Window, t: int) -> list[tuple[int, int]]:
    """The windows that hold a row at t, as (start, end)."""
    ends = [end for end in range(t + 1, t + window.range + 1) if is_end(window, end)]
    return [(end - window.range, end) for end in ends]
