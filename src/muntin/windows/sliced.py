"""Sliced windows: the three ways to cut a window into slices, and their composition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import gcd, lcm

from muntin.errors import WindowError
from muntin.windows.spec import Window

# Slices that are written out one by one; beyond this a SliceManager is the answer.
MAX_SLICES = 1_000_000


@dataclass(frozen=True)
class Sliced:
    """A repeating vector of slice lengths that cuts a stream without overlap.

    The first slice starts at `phase`, and the whole vector repeats every `period`, before the
    phase as well as after it. Definition 2 of "On-the-Fly Sharing for Streamed Aggregation".

    >>> Sliced((12, 3)).edges, Sliced((12, 3)).period
    ((12, 15), 15)
    """

    slices: tuple[int, ...]
    phase: int = 0

    def __post_init__(self) -> None:
        if not self.slices or min(self.slices) <= 0:
            raise WindowError(
                f"slices {self.slices} are not all positive", hint="give at least one, each above 0"
            )
        object.__setattr__(self, "phase", self.phase % self.period)

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def period(self) -> int:
        """After how long the slices repeat."""
        return sum(self.slices)

    @property
    def edges(self) -> tuple[int, ...]:
        """Where slices end, counted from the phase; the last edge is the period."""
        return tuple(accumulate(self.slices))

    def edges_over(self, period: int) -> Iterator[int]:
        """The edges in [0, period) of time, unsorted; `period` is a multiple of its own."""
        return (
            (self.phase + repeat + edge) % period
            for repeat in range(0, period, self.period)
            for edge in self.edges
        )


def panes(window: Window) -> Sliced:
    """Slices of equal length, the greatest common divisor of range and slide.

    From "No Pane, No Gain".

    >>> panes(Window(18, 15)).slices
    (3, 3, 3, 3, 3)
    """
    pane = gcd(window.range, window.period)
    count = window.period // pane
    _check_size(count, f"the panes of {window!r}")
    return Sliced((pane,) * count, window.phase)


def pairs(window: Window) -> Sliced:
    """One slice, or two whose second is as long as the range is over a multiple of the slide.

    No slicing from which whole windows can be put together has fewer edges. Paired windows of
    "On-the-Fly Sharing for Streamed Aggregation".

    >>> pairs(Window(18, 15)).slices, pairs(Window(30, 15)).slices
    ((12, 3), (15,))
    """
    second = window.range % window.period
    first = window.period - second
    return Sliced((first, second) if second else (first,), window.phase)


def cutty(window: Window) -> Sliced:
    """Slices that start where windows start, and nowhere else.

    When the range is no multiple of the slide, windows end inside a slice: the answer takes the
    part of that slice seen so far, so it must be read at that very moment. Cutty-slicing as
    described in "Algorithms and Optimizations for Incremental Window-Based Aggregations".

    >>> cutty(Window(5, 3))
    Sliced(slices=(3,), phase=1)
    """
    return Sliced((window.period,), window.phase - window.range)


def compose(*sliced: Sliced) -> Sliced:
    """The slices cut by all edges of all given ones, written out over their common period.

    The first slice starts where the first argument's does. The common period is the least common
    multiple, which grows fast: beyond a million slices this is refused, and a `SliceManager`,
    which gives the same edges one by one, is the way.

    >>> compose(Sliced((12, 3)), Sliced((6, 3))).slices
    (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
    """
    if not sliced:
        raise WindowError("nothing to compose", hint="pass at least one sliced window")
    period = lcm(*(one.period for one in sliced))
    _check_size(sum(period // one.period * len(one) for one in sliced), f"period {period}")
    phase = sliced[0].phase
    edges = {(edge - phase) % period for one in sliced for edge in one.edges_over(period)}
    return Sliced(tuple(b - a for a, b in pairwise([*sorted(edges), period])), phase)


def _check_size(slices: int, what: str) -> None:
    if slices > MAX_SLICES:
        raise WindowError(
            f"{what} would take {slices} slices",
            hint="use a SliceManager, which never writes them out",
        )
