"""The Slice Manager: the edges of a changing set of windows, for those who drive windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from muntin.errors import WindowError
from muntin.windows.edges import (
    EdgeClass,
    Slicing,
    check_slicing,
    edge_after,
    edges_between,
    reduce_classes,
)
from muntin.windows.spec import Window

Key = TypeVar("Key")


def cut_classes(windows: Iterable[Window], slicing: Slicing) -> tuple[EdgeClass, ...]:
    """The fewest edge classes that cut a stream for a set of windows, shared by all of them.

    Plans cut by these, and so does the Slice Manager.

    >>> cut_classes([Window(18, 15), Window(33, 15), Window(5, 5)], "pairs")
    ((5, 0), (15, 12))
    """
    return reduce_classes(each for window in windows for each in window.edge_classes(slicing))


class SliceManager:
    """Gives the edges of a set of windows in order, while windows come and go.

    An interface over the edge classes that plans cut by: every edge comes from the arithmetic
    that the engine seals slices with, and `cut` is the engine's own. Every edge given lies
    strictly after `position`, and moves it there. Windows with equal edges share them. A window
    added on the way is aligned to the epoch like all others, so its first edge is its first after
    the position. It gives what Algorithm 1 of "On-the-Fly Sharing for Streamed Aggregation" gives,
    without a queue: an edge costs one division per class, and nothing is ever written out over a
    common period.

    Args:
        windows: The first windows; the same window may be added several times.
        slicing: How each window is cut, "panes", "pairs" or "cutty".
        position: Edges are given after this time.

    >>> manager = SliceManager([Window(18, 15), Window(12, 9)])
    >>> [manager.advance() for _ in range(5)]
    [6, 9, 12, 15, 18]
    """

    def __init__(
        self, windows: Iterable[Window] = (), slicing: Slicing = "pairs", position: int = 0
    ) -> None:
        check_slicing(slicing)
        self.slicing = slicing
        self._position = int(position)
        self._windows: Counter[Window] = Counter()
        self._classes: tuple[EdgeClass, ...] | None = None
        for window in windows:
            self.add(window)

    @property
    def position(self) -> int:
        """The time after which the next edge lies."""
        return self._position

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows in the order they came, each as often as it was added."""
        return tuple(self._windows.elements())

    @property
    def classes(self) -> tuple[EdgeClass, ...]:
        """The fewest edge classes that hold all edges."""
        if self._classes is None:
            self._classes = cut_classes(self._windows, self.slicing)
        return self._classes

    def __len__(self) -> int:
        return self._windows.total()

    def add(self, window: Window) -> None:
        """Let a window contribute its edges after the position."""
        self._check_measure(window)
        window.edge_classes(self.slicing)  # refuses a window without any
        self._windows[window] += 1
        self._classes = None

    def remove(self, window: Window) -> None:
        """Drop the edges that this window alone contributed."""
        if window not in self._windows:
            raise WindowError(
                f"{window!r} is not among the windows", hint="remove a window once per add"
            )
        _decrement(self._windows, window)
        self._classes = None

    def peek(self) -> int:
        """The next edge, without moving there."""
        if not self._windows:
            raise WindowError("there are no windows, so no edges", hint="add a window first")
        return edge_after(self.classes, self._position)

    def advance(self) -> int:
        """Move to the next edge and return it; edges of several windows there count once."""
        self._position = self.peek()
        return self._position

    def seek(self, t: int) -> None:
        """Move, forward or back, so that the next edge is the first at t or after.

        Costs the same however far it is.

        >>> manager = SliceManager([Window(18, 15)])
        >>> manager.seek(15_000_000_000_012)
        >>> manager.advance(), manager.advance()
        (15000000000012, 15000000000015)
        """
        self._position = int(t) - 1

    def cut(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The start of the slice that each time lies in; does not move the position.

        >>> SliceManager([Window(18, 15)]).cut(np.array([-1, 0, 11, 12, 14, 15])).tolist()
        [-3, 0, 0, 12, 12, 15]
        """
        from muntin.windows.cut import slice_starts  # noqa: PLC0415 - it imports numba

        return slice_starts(times, self.classes)

    def edges(self, lo: int, hi: int) -> npt.NDArray[np.int64]:
        """All edges in [lo, hi), sorted and without repeats; does not move the position.

        >>> SliceManager([Window(18, 15)]).edges(0, 28).tolist()
        [0, 12, 15, 27]
        """
        return edges_between(self.classes, lo, hi)

    def _check_measure(self, window: Window) -> None:
        other = next(iter(self._windows), window)
        if (other.measure, other.unit) != (window.measure, window.unit):
            raise WindowError(
                f"{window!r} does not measure what {other!r} does",
                hint="windows over one stream all use durations, plain numbers, or rows",
            )


def _decrement(counter: Counter[Key], key: Key) -> None:
    # Counter's own subtraction goes through all keys.
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
